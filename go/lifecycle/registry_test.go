package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/schemas"
)

func registry(t *testing.T) *lifecycle.Registry {
	t.Helper()
	names, err := fs.Glob(schemas.FS, "transitions/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var files [][]byte
	for _, name := range names {
		b, err := fs.ReadFile(schemas.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, b)
	}
	r, err := lifecycle.NewRegistry(files...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func event(m *lifecycle.Machine, family lifecycle.Family, receipts []string) lifecycle.Event {
	e := lifecycle.Event{Subject: lifecycle.Of(m.Name, "x"), Version: 1, Family: family, Machine: m.Version, Body: canonical.Raw("{}")}
	for _, name := range receipts {
		e.Guards = append(e.Guards, lifecycle.Guard{Name: name, Digest: canonical.Sum([]byte(name))})
	}
	return e
}

// Every registered edge is taken with its receipts and refused without any one of
// them, and every pair of state and family that is not registered is refused.
func TestEveryEdge(t *testing.T) {
	r := registry(t)
	for _, m := range r.Machines() {
		states := append([]lifecycle.State{""}, m.States()...)
		for _, tr := range m.Transitions {
			for _, from := range states {
				name := fmt.Sprintf("%s from %q", tr.Family, from)
				got, err := r.Apply(from, event(m, tr.Family, tr.Receipts))
				if !slices.Contains(tr.From, from) {
					// The same family may be registered from this state by another entry.
					if err == nil && !slices.Contains(got.From, from) {
						t.Errorf("%s: an edge that is not registered was taken", name)
					}
					continue
				}
				if err != nil || got.To != tr.To {
					t.Errorf("%s: got %q, %v; want %q", name, got.To, err, tr.To)
				}
				for i := range tr.Receipts {
					without := slices.Delete(slices.Clone(tr.Receipts), i, i+1)
					if _, err := r.Apply(from, event(m, tr.Family, without)); !reason.Is(err, reason.KernelMissingGuard) {
						t.Errorf("%s without its %s: %v", name, tr.Receipts[i], err)
					}
				}
			}
		}
	}
}

func TestAnInvalidDigestIsNoGuard(t *testing.T) {
	r := registry(t)
	e := event(r.Latest("environment"), "environment.provisioned", []string{"ProvisionReceipt"})
	e.Guards[0].Digest = "sha256:short"
	if _, err := r.Apply("requested", e); !reason.Is(err, reason.KernelMissingGuard) {
		t.Fatal(err)
	}
}

func TestForeignMachineOrVersion(t *testing.T) {
	r := registry(t)
	e := event(r.Latest("environment"), "environment.provisioned", []string{"ProvisionReceipt"})
	e.Machine = 2
	if _, err := r.Apply("requested", e); !reason.Is(err, reason.KernelIllegalTransition) {
		t.Fatal(err)
	}
	e.Machine, e.Subject = 1, "weather/x"
	if _, err := r.Apply("requested", e); !reason.Is(err, reason.KernelIllegalTransition) {
		t.Fatal(err)
	}
}

// The edges that SPEC-014 lists, in its own words: source, target.
func TestTheEdgesOfTheSpecification(t *testing.T) {
	r := registry(t)
	for machine, edges := range map[string]string{
		"environment": `
			requested provisioned|provisioned attested|attested materialized|materialized active|active freezing|freezing frozen
			|frozen retained|frozen destroying|destroying destroyed
			|requested failed|provisioned failed|attested failed|materialized failed|active failed|freezing failed
			|requested unknown|provisioned unknown|attested unknown|materialized unknown|active unknown|freezing unknown
			|unknown reconciling|reconciling provisioned|reconciling active|reconciling frozen|reconciling failed|reconciling unknown_terminal
			|failed retained|unknown_terminal retained|failed destroying|unknown_terminal destroying`,
		"execution": `
			prepared starting|starting running|running completion_reported|completion_reported collecting|collecting completed
			|running checkpoint_proposed|checkpoint_proposed running
			|prepared cancellation_requested|starting cancellation_requested|running cancellation_requested
			|completion_reported cancellation_requested|collecting cancellation_requested
			|cancellation_requested cancelling|cancelling cancelled|cancelling unknown
			|starting lost|running lost|completion_reported lost|collecting lost
			|starting unknown|running unknown|completion_reported unknown|collecting unknown
			|lost reconciling|unknown reconciling
			|reconciling completion_reported|reconciling cancelled|reconciling failed|reconciling unknown_terminal
			|prepared failed|starting failed|running failed|completion_reported failed|collecting failed`,
	} {
		m := r.Latest(machine)
		additions := map[string]bool{}
		registered := map[string]bool{}
		for _, tr := range m.Transitions {
			for _, from := range tr.From {
				edge := string(from) + " " + string(tr.To)
				registered[edge] = true
				if tr.Addition == "" && from != "" {
					additions[edge] = true
				}
			}
		}
		for _, edge := range strings.Split(edges, "|") {
			edge = strings.TrimSpace(edge)
			if !registered[edge] {
				t.Errorf("%s: SPEC-014's edge %q is missing", machine, edge)
			}
			delete(additions, edge)
		}
		for edge := range additions {
			t.Errorf("%s: %q is no edge of SPEC-014 and gives no reason", machine, edge)
		}
	}
}

func TestTerminalStatesOfTheSpecification(t *testing.T) {
	r := registry(t)
	for machine, states := range map[string][]lifecycle.State{
		"environment": {"retained", "destroyed"},
		"execution":   {"completed", "cancelled", "failed", "unknown_terminal"},
	} {
		m := r.Latest(machine)
		for _, s := range m.States() {
			if got, want := m.Terminal(s), slices.Contains(states, s); got != want {
				t.Errorf("%s: %q terminal is %v, want %v", machine, s, got, want)
			}
		}
	}
}

// Every terminal state of an execution leaves the obligation to retain or destroy.
func TestCleanupObligation(t *testing.T) {
	m := registry(t).Latest("execution")
	for _, tr := range m.Transitions {
		if tr.Terminal && tr.Cleanup != lifecycle.CleanupDestroyOrRetain {
			t.Errorf("%s ends with the obligation %q", tr.Family, tr.Cleanup)
		}
	}
}

// A second version of a machine does not change what the first one says.
func TestANewVersionLeavesTheOldOneAlone(t *testing.T) {
	old, err := fs.ReadFile(schemas.FS, "transitions/environment.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(old), `"version": 1`, `"version": 2`, 1)
	newer = strings.Replace(newer, `"to": "provisioned", "receipts": ["ProvisionReceipt"]`, `"to": "provisioned", "receipts": ["ProvisionReceipt", "EnvironmentAttestation"]`, 1)
	r, err := lifecycle.NewRegistry(old, []byte(newer))
	if err != nil {
		t.Fatal(err)
	}
	e := event(&lifecycle.Machine{Name: "environment", Version: 1}, "environment.provisioned", []string{"ProvisionReceipt"})
	if got, err := r.Apply("requested", e); err != nil || got.To != "provisioned" {
		t.Errorf("an old event is replayed to %q, %v", got.To, err)
	}
	e.Machine = 2
	if _, err := r.Apply("requested", e); !reason.Is(err, reason.KernelMissingGuard) {
		t.Errorf("a new event is not held to the new version: %v", err)
	}
	if r.Latest("environment").Version != 2 {
		t.Error("new events are not decided under the new version")
	}
}

func TestMalformedMachines(t *testing.T) {
	type transition = map[string]any
	edge := func(change func(transition)) []transition {
		base := transition{"from": []string{""}, "family": "m.born", "to": "a", "receipts": []string{}, "effect_class": "none", "terminal": false, "cleanup": "none", "projector": 1}
		second := transition{"from": []string{"a"}, "family": "m.ended", "to": "b", "receipts": []string{}, "effect_class": "none", "terminal": true, "cleanup": "none", "projector": 1}
		change(second)
		return []transition{base, second}
	}
	for name, transitions := range map[string][]transition{
		"foreign family":     edge(func(x transition) { x["family"] = "other.ended" }),
		"unreachable source": edge(func(x transition) { x["from"] = []string{"nowhere"} }),
		"edge twice":         append(edge(func(transition) {}), edge(func(transition) {})[1]),
		"terminal and not":   append(edge(func(transition) {}), edge(func(x transition) { x["family"], x["terminal"] = "m.again", false })[1]),
		"a terminal is left": append(edge(func(transition) {}), edge(func(x transition) {
			x["family"], x["from"], x["to"], x["terminal"] = "m.back", []string{"b"}, "a", false
		})[1]),
		"receipt without schema": edge(func(x transition) { x["receipts"] = []string{"Anything"} }),
		"unknown field":          edge(func(x transition) { x["colour"] = "blue" }),
	} {
		t.Run(name, func(t *testing.T) {
			b, err := json.Marshal(map[string]any{"kind": "writ.transitions.v1", "machine": "m", "version": 1, "summary": "", "receipt_schemas": []any{}, "transitions": transitions})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := lifecycle.ParseMachine(b); err == nil {
				t.Error("accepted")
			}
		})
	}
	if _, err := lifecycle.NewRegistry(); err != nil {
		t.Errorf("an empty registry: %v", err)
	}
}
