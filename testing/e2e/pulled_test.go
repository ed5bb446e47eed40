package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// small is a work order of a tool that does next to nothing.
const small = `kind: writ.workorder.v1
title: Small
mode: observe
role: analyst
environment: {provider: wasm}
tool: {name: empty}
outputs: {max_count: 1, max_bytes: 1000, paths: [{path: ok, media_type: text/plain}]}
`

// TestPlugPulledAfterEachStep interrupts and kills an attempt after each line of its
// progress. However it ends, nothing lives on, the journal verifies, an interrupted
// attempt is closed at once, and a killed one with the next start.
func TestPlugPulledAfterEachStep(t *testing.T) {
	s := ready(t)
	dir := t.TempDir()
	state, order := filepath.Join(dir, "state"), filepath.Join(dir, "order.yaml")
	copyTree(t, s.cache, filepath.Join(state, "cache"))
	write(t, order, small)
	for _, step := range []string{"provision", "materialize", "prepare", "start", "launch", "freeze_outputs", "collect", "cleanup", "destroy"} {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
			status := pull(t, s, state, order, step, signal)
			if err := orphansGone(); err != nil {
				t.Errorf("%v after %s: %v", signal, step, err)
			}
			// It may have ended before it heard the signal.
			may := []int{0, 23}
			if signal == syscall.SIGKILL {
				may = []int{0, 128 + int(signal)}
			}
			if !slices.Contains(may, status) {
				t.Errorf("%v after %s: exit status %d, want one of %v", signal, step, status, may)
			}
			if status, out, errs := s.output(t, "verify", "--state", state); status != 0 {
				t.Errorf("%v after %s: verify: exit status %d\n%s%s", signal, step, status, out, errs)
			}
			if signal == syscall.SIGINT {
				closed(t, s, state)
			}
		}
	}
	if status, out, errs := s.output(t, "run", "--state", state, order); status != 0 {
		t.Errorf("exit status %d\n%s%s", status, out, errs)
	}
	closed(t, s, state)
	if left, err := os.ReadDir(filepath.Join(state, "workspaces")); err != nil || len(left) > 0 {
		t.Errorf("left in workspaces: %v, %v", left, err)
	}
}

// pull runs an order, sends the signal once the step is over, and returns the exit status.
func pull(t *testing.T, s *suite, state, order, step string, signal syscall.Signal) int {
	t.Helper()
	cmd := exec.Command(filepath.Join(s.bin, "writ"), "run", "--state", state, order)
	cmd.Env = s.environ()
	r, err := begin(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.await("writ: " + step + ": applied"); err != nil {
		t.Fatal(err)
	}
	// It may be gone already.
	_ = cmd.Process.Signal(signal)
	status, err := r.end()
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// closed demands that every attempt has come to a result and has nothing open.
func closed(t *testing.T, s *suite, state string) {
	t.Helper()
	status, out, errs := s.output(t, "status", "--json", "--state", state)
	var index struct {
		Attempts []struct {
			ID, State   string
			Environment string
			Result      *struct{}
			Open        int `json:"open_operations"`
		}
	}
	if err := json.Unmarshal([]byte(out), &index); err != nil || status != 0 {
		t.Fatalf("exit status %d, %v\n%s", status, err, errs)
	}
	for _, a := range index.Attempts {
		if a.Result == nil || a.Open > 0 || a.Environment != "" && a.Environment != "destroyed" {
			t.Errorf("%s stands at %s, its environment at %s, with %d open operations", a.ID, a.State, a.Environment, a.Open)
		}
	}
}
