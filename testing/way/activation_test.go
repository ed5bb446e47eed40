package way_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/testing/way"
)

// witness is a journal that looks, before and after each turn is taken, at what there is of an attempt
// outside the journal.
type witness struct {
	journal.Store
	look func() []string
	// before is what there was when a turn up to the activating one was not yet taken; activated says that the
	// activating one was seen, and after is what there was at any later turn.
	before, after []string
	activated     bool
}

func (w *witness) Append(ctx context.Context, batches ...journal.Batch) ([]journal.Result, error) {
	if w.activated {
		w.after = append(w.after, w.look()...)
		return w.Store.Append(ctx, batches...)
	}
	w.before = append(w.before, w.look()...)
	for _, b := range batches {
		w.activated = w.activated || slices.ContainsFunc(b.Events, func(e lifecycle.Event) bool { return e.Family == "work_order.activated" })
	}
	return w.Store.Append(ctx, batches...)
}

// Until the turn that activates an attempt is taken there is no worker, no adapter and no workspace of it (B13).
// That turn is where its activation receipt becomes a fact.
func TestNothingIsThereBeforeActivation(t *testing.T) {
	state := t.TempDir()
	seen := &witness{look: func() []string {
		left, err := os.ReadDir(filepath.Join(state, "workspaces"))
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		found := sealedChildren(t)
		for range left {
			found = append(found, "workspace")
		}
		return found
	}}
	w, err := way.OpenThrough(t.Context(), dist(t), state, func(s journal.Store) journal.Store {
		seen.Store = s
		return seen
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	carry(t, w, way.EmptyOrder(), t.TempDir())
	if !seen.activated || len(seen.before) != 0 {
		t.Errorf("activated: %v; before it there were %v", seen.activated, seen.before)
	}
	// It would have been seen: afterwards it is.
	for _, what := range []string{"workspace", "writ-wasm", "reference-local"} {
		if !slices.ContainsFunc(seen.after, func(s string) bool { return strings.Contains(s, what) }) {
			t.Errorf("after the activation there was no %s, but %v", what, seen.after)
		}
	}
}

// sealedChildren names the programs of the living children of this process that run from sealed memory, as
// workers and adapters do.
func sealedChildren(t *testing.T) (found []string) {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Error(err)
	}
	for _, e := range all {
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // It is no process, or has ended.
		}
		// pid (name) state ppid; the name may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		exe, err := os.Readlink(filepath.Join("/proc", e.Name(), "exe"))
		if err == nil && fields[1] == strconv.Itoa(os.Getpid()) && strings.HasPrefix(exe, "/memfd:") {
			found = append(found, exe)
		}
	}
	return found
}
