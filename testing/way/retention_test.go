package way_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/environment/wasm"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/retention"
	"github.com/writ-runtime/writ/testing/way"
)

// keeping is a work order whose workspace is kept for a week.
func keeping() []byte {
	return slices.Concat(way.EmptyOrder(), []byte("retention: {keep: true, days: 7}\n"))
}

// What a work order says of its workspace stands in the bundle, and is what is done: no turn
// more is taken for it (B6, L5).
func TestAWorkspaceIsKept(t *testing.T) {
	state := t.TempDir()
	w := open(t, state)
	a := carry(t, w, keeping(), t.TempDir())
	b := a.State.Bundle.Bundle()
	if b.Outputs.Retention != b.Environment.Retention || protocol.RetentionParameters(b.Environment.Retention) != (protocol.RetentionParameters{Keep: true, Days: 7}) {
		t.Errorf("the bundle keeps %+v, its environment %+v", b.Outputs.Retention, b.Environment.Retention)
	}
	kept := a.State.Retained
	if len(a.Commits) != 6 || a.State.Of(kernel.EnvironmentMachine).State != "retained" || kept == nil || kept.Files != 1 {
		t.Fatalf("%d commits, the environment is %s, kept is %+v", len(a.Commits), a.State.Of(kernel.EnvironmentMachine).State, kept)
	}
	if _, err := os.Stat(filepath.Join(retention.Where(state, a.State.Resource), "files", "ok")); err != nil {
		t.Error(err)
	}
	if a = carry(t, w, way.EmptyOrder(), t.TempDir()); a.State.Retained != nil || a.State.Of(kernel.EnvironmentMachine).State != "destroyed" {
		t.Errorf("an order that keeps nothing keeps %+v", a.State.Retained)
	}
}

// forgetful is a provider whose environments can keep nothing.
type forgetful struct{ environment.Provider }

func (f forgetful) Capabilities() environment.Capabilities {
	c := f.Provider.Capabilities()
	c.Retention = false
	return c
}

// An environment that cannot keep is refused before anything is recorded, and so is what the
// deployment does not allow to be kept as long.
func TestWhatCannotBeKeptIsRefused(t *testing.T) {
	w := open(t, t.TempDir())
	real, err := w.Admission.Providers.Find(wasm.Name)
	if err != nil {
		t.Fatal(err)
	}
	w.Admission.Providers = environment.NewProviders(forgetful{real})
	if _, err := w.Carry(t.Context(), keeping(), t.TempDir()); !reason.Is(err, reason.EnvironmentUnsupported) {
		t.Errorf("got %v", err)
	}
	index, err := projection.Build(t.Context(), w.Journal, w.Ledger.Kernel().Transitions())
	if err != nil || len(index.Orders) > 0 {
		t.Errorf("%+v is recorded, %v", index.Orders, err)
	}
	w.Admission.Providers = environment.NewProviders(real)
	long := slices.Concat(way.EmptyOrder(), []byte("retention: {keep: true, days: 91}\n"))
	if _, err := w.Carry(t.Context(), long, t.TempDir()); !reason.Is(err, reason.PolicyDenied) {
		t.Errorf("got %v", err)
	}
}
