package lifecycle_test

import (
	"encoding/json"
	"testing"

	"github.com/writ-runtime/writ/go/lifecycle"
)

type transition = map[string]any

// small is a machine of two transitions with one thing changed.
func small(change func(machine, born, ended transition)) []byte {
	born := transition{"from": []string{""}, "family": "m.born", "to": "a", "receipts": []string{"Note"}, "effect_class": "none", "terminal": false, "cleanup": "none", "projector": 1}
	ended := transition{"from": []string{"a"}, "family": "m.ended", "to": "b", "receipts": []string{}, "effect_class": "none", "terminal": true, "cleanup": "none", "projector": 1}
	machine := transition{"kind": "writ.transitions.v1", "machine": "m", "version": 1, "summary": "",
		"receipt_schemas": []transition{{"name": "Note", "schema": "writ.note.v1"}}, "transitions": []transition{born, ended}}
	change(machine, born, ended)
	b, err := json.Marshal(machine)
	if err != nil {
		panic(err)
	}
	return b
}

// further adds an entry that differs from the last one.
func further(machine, ended transition, change func(transition)) {
	again := transition{}
	for k, v := range ended {
		again[k] = v
	}
	change(again)
	machine["transitions"] = append(machine["transitions"].([]transition), again)
}

func TestMalformedMachines(t *testing.T) {
	for name, change := range map[string]func(machine, born, ended transition){
		"another kind":       func(m, _, _ transition) { m["kind"] = "writ.other.v1" },
		"no version":         func(m, _, _ transition) { m["version"] = 0 },
		"no name":            func(m, _, _ transition) { m["machine"] = "" },
		"foreign family":     func(_, _, x transition) { x["family"] = "other.ended" },
		"no source":          func(_, _, x transition) { x["from"] = []string{} },
		"no target":          func(_, _, x transition) { x["to"] = "" },
		"receipts left out":  func(_, _, x transition) { delete(x, "receipts") },
		"projector left out": func(_, _, x transition) { delete(x, "projector") },
		"class left out":     func(_, _, x transition) { delete(x, "effect_class") },
		"cleanup left out":   func(_, _, x transition) { delete(x, "cleanup") },
		"unknown class":      func(_, _, x transition) { x["effect_class"] = "any" },
		"unknown obligation": func(_, _, x transition) { x["cleanup"] = "sweep" },
		"unknown field":      func(_, _, x transition) { x["colour"] = "blue" },
		"unreachable source": func(_, _, x transition) { x["from"] = []string{"nowhere"} },
		"a dead end":         func(_, _, x transition) { x["terminal"] = false },
		"receipt, no schema": func(_, _, x transition) { x["receipts"] = []string{"Anything"} },
		"receipt twice":      func(_, x, _ transition) { x["receipts"] = []string{"Note", "Note"} },
		"schema, no receipt": func(_, x, _ transition) { x["receipts"] = []string{} },
		"class, no outcome":  func(_, x, _ transition) { x["effect_class"] = "reconcilable" },
		"edge twice":         func(m, _, x transition) { further(m, x, func(transition) {}) },
		"terminal and not": func(m, _, x transition) {
			further(m, x, func(y transition) { y["family"], y["terminal"] = "m.again", false })
		},
		"two obligations": func(m, _, x transition) {
			further(m, x, func(y transition) { y["family"], y["cleanup"] = "m.again", "destroy_or_retain" })
		},
		"a terminal is left": func(m, _, x transition) {
			further(m, x, func(y transition) {
				y["family"], y["from"], y["to"], y["terminal"] = "m.back", []string{"b"}, "a", false
			})
		},
		"outcome, no class": func(m, x, _ transition) {
			m["receipt_schemas"] = []transition{{"name": "StartReceipt", "schema": "writ.receipt.v1"}}
			x["receipts"] = []string{"StartReceipt"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := lifecycle.ParseMachine(small(change)); err == nil {
				t.Error("accepted")
			}
		})
	}
	if _, err := lifecycle.ParseMachine(small(func(_, _, _ transition) {})); err != nil {
		t.Errorf("the machine that all of these differ from: %v", err)
	}
}

func TestMalformedRegistries(t *testing.T) {
	if _, err := lifecycle.NewRegistry(); err != nil {
		t.Errorf("an empty registry: %v", err)
	}
	one := small(func(_, _, _ transition) {})
	if _, err := lifecycle.NewRegistry(one, one); err == nil {
		t.Error("one version stands twice")
	}
	// The second version has no place for what the first left in a.
	moved := small(func(m, born, ended transition) { m["version"], born["to"], ended["from"] = 2, "c", []string{"c"} })
	if _, err := lifecycle.NewRegistry(one, moved); err == nil {
		t.Error("a new version strands subjects of the old one")
	}
}
