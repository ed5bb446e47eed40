package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/toolrun"
)

type chain struct {
	Rounds    int64  `json:"rounds"`
	Digest    string `json:"digest"`
	Computed  int64  `json:"computed"`
	StartedAt int64  `json:"started_at"`
}

func read(t *testing.T, r toolrun.Result) chain {
	t.Helper()
	if err := r.Exit.Err("hashchain"); err != nil {
		t.Fatal(err)
	}
	var c chain
	if err := json.Unmarshal([]byte(r.Outputs["chain.json"]), &c); err != nil {
		t.Fatalf("%v\n%v", err, r.Outputs)
	}
	return c
}

// The chain goes on from any of its checkpoints to the same end, and each is a checkpoint of
// the registered kind.
func TestTheChainGoesOn(t *testing.T) {
	r := toolrun.New(t, "WRIT_TEST_HASHCHAIN", "github.com/writ-runtime/writ/plugins/tools/hashchain")
	args := []string{"--input", "seed", "--rounds", "1000", "--every", "300"}
	seed := map[string]string{"seed/a": "a\n", "seed/b/c": "c\n"}
	whole := r.Run(t, seed, args...)
	want := read(t, whole)
	if want.Rounds != 1000 || want.Computed != 1000 || want.StartedAt != 0 || len(whole.Offers) != 3 {
		t.Fatalf("came to %+v with %d checkpoints", want, len(whole.Offers))
	}
	for i, payload := range whole.Offers {
		at := int64(300 * (i + 1))
		if position, err := workorder.CheckPayload(workorder.ToolProgressKind, []byte(payload)); err != nil || position != at {
			t.Errorf("checkpoint %d stands at %d: %v\n%s", i, position, err, payload)
		}
		seed["checkpoint/last.json"] = payload
		later := r.Run(t, seed, args...)
		got := read(t, later)
		if got.Digest != want.Digest || got.Computed != 1000-at || got.StartedAt != at || len(later.Offers) != 2-i {
			t.Errorf("from %d came %+v with %d checkpoints, want the end %s", at, got, len(later.Offers), want.Digest)
		}
	}
	again := r.Run(t, map[string]string{"seed/a": "a\n", "seed/b/c": "c\n"}, args...)
	if again.Outputs["chain.json"] != whole.Outputs["chain.json"] || strings.Join(again.Offers, "\n") != strings.Join(whole.Offers, "\n") {
		t.Error("a second run wrote or offered other bytes")
	}
}

func TestWhatCannotBeChained(t *testing.T) {
	r := toolrun.New(t, "WRIT_TEST_HASHCHAIN", "github.com/writ-runtime/writ/plugins/tools/hashchain")
	const other = `{"kind":"writ.checkpoint.tool_progress.v1","next_action":"x","position":5,"state":{"digest":"00","seed":"00"},"stop_condition":"x"}`
	for name, c := range map[string]struct {
		args       []string
		checkpoint string
	}{
		"no such input":        {args: []string{"--input", "other"}},
		"leads out":            {args: []string{"--input", "../work"}},
		"no rounds":            {args: []string{"--rounds", "0"}},
		"never":                {args: []string{"--every", "-1"}},
		"argument":             {args: []string{"seed"}},
		"another's checkpoint": {args: []string{"--rounds", "10"}, checkpoint: other},
		"no checkpoint at all": {args: []string{"--rounds", "10"}, checkpoint: "x"},
	} {
		inputs := map[string]string{"seed/a": "a\n"}
		if c.checkpoint != "" {
			inputs["checkpoint/last.json"] = c.checkpoint
		}
		res := r.Run(t, inputs, c.args...)
		if res.Exit.Kind != wire.ExitCode || res.Exit.Code != 1 || !strings.Contains(string(res.Exit.Stderr), "hashchain: ") || len(res.Outputs) != 0 {
			t.Errorf("%s: %+v, said %s, wrote %v", name, res.Exit.Exit, res.Exit.Stderr, res.Outputs)
		}
	}
}
