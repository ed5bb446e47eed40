package way_test

import (
	"slices"
	"testing"

	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/environment/wasm"
	workerwire "github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/way"
)

// offering is a work order that takes checkpoints, of a tool that offers none.
func offering() []byte {
	return slices.Concat(way.EmptyOrder(), []byte("checkpoint: {policy: offered}\n"))
}

// An attempt that could take checkpoints and is offered none takes no more turns for it.
func TestNoOfferCostsNoTurn(t *testing.T) {
	a := carry(t, open(t, t.TempDir()), offering(), t.TempDir())
	if len(a.Commits) != 6 || len(a.Steps) != 9 || a.State.Checkpoint != nil {
		t.Errorf("%d commits, steps %v, checkpoint %+v", len(a.Commits), a.Steps, a.State.Checkpoint)
	}
}

// deaf is a provider in whose environments nothing can offer a checkpoint.
type deaf struct{ environment.Provider }

func (d deaf) Capabilities() environment.Capabilities {
	c := d.Provider.Capabilities()
	c.Checkpoint = false
	return c
}

// An environment that cannot take checkpoints is refused before anything is recorded (R7).
func TestAnEnvironmentWithoutCheckpointsIsRefused(t *testing.T) {
	w := open(t, t.TempDir())
	real, err := w.Admission.Providers.Find(wasm.Name)
	if err != nil {
		t.Fatal(err)
	}
	w.Admission.Providers = environment.NewProviders(deaf{real})
	if _, err := w.Carry(t.Context(), offering(), t.TempDir()); !reason.Is(err, reason.EnvironmentUnsupported) {
		t.Errorf("got %v", err)
	}
	index, err := projection.Build(t.Context(), w.Journal, w.Ledger.Kernel().Transitions())
	if err != nil || len(index.Orders) > 0 {
		t.Errorf("%+v is recorded, %v", index.Orders, err)
	}
	if a := carry(t, w, way.EmptyOrder(), t.TempDir()); len(a.Commits) != 6 {
		t.Errorf("without checkpoints it takes %d turns", len(a.Commits))
	}
}

// A payload that the bundle allows passes each part of the channel, and is kept beside its
// turn: each part says so in a constant of its own.
func TestTheBoundsOfAPayloadAgree(t *testing.T) {
	for name, bound := range map[string]int64{
		"worker": workerwire.MaxOffer, "adapter": wire.MaxCheckpoint, "journal": journal.MaxBlob,
	} {
		if bound != attemptbundle.MaxCheckpointBytes {
			t.Errorf("the bound of the %s is %d, that of the bundle %d", name, bound, attemptbundle.MaxCheckpointBytes)
		}
	}
}
