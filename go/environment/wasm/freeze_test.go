package wasm_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/parts"
)

// A workspace is frozen once its guest has ended, and not before, whatever the journal
// says of the launch (F3).
func TestNothingIsFrozenBeforeItsGuestEnded(t *testing.T) {
	t.Run("not launched", func(t *testing.T) {
		set := parts.Pin(t, parts.Worker(t, programs), parts.Empty(t, programs))
		r := newRig(t, set, set, "empty")
		r.launching()
		launch, freeze := r.claimed()
		r.refused(freeze, reason.KernelWrongState)
		if out := r.env.Launch(r.accepted, nil).Perform(t.Context(), launch); out.Knowledge != operation.Applied || out.Code != "" {
			t.Fatalf("launch ended %s, %s: %s", out.Knowledge, out.Code, out.Detail)
		}
		f := r.env.FreezeOutputs(r.artifacts())
		if out := f.Perform(t.Context(), freeze); out.Knowledge != operation.Applied {
			t.Errorf("after its end: %s, %s: %s", out.Knowledge, out.Code, out.Detail)
		}
		if entries := f.Frozen().Manifest.Entries; len(entries) != 1 || entries[0].Path != "ok" {
			t.Errorf("froze %+v", entries)
		}
		// What a dead worker held is gone with it.
		if _, err := r.env.Stop(t.Context(), r.State.Resource); err != nil {
			t.Fatal(err)
		}
		r.refused(freeze, reason.EnvironmentDead)
	})
	t.Run("running", func(t *testing.T) {
		set := parts.Pin(t, parts.Worker(t, programs), parts.BadTools(t, programs))
		r := newRig(t, set, set, "badtools", "loop")
		r.launching()
		launch, freeze := r.claimed()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan operation.Outcome, 1)
		go func() { ended <- r.env.Launch(r.accepted, nil).Perform(ctx, launch) }()
		r.running()
		r.refused(freeze, reason.KernelWrongState)
		stop()
		if out := <-ended; out.Knowledge != operation.Applied {
			t.Errorf("the launch ended %s, %s: %s", out.Knowledge, out.Code, out.Detail)
		}
		// It was killed: that is no end of which anything could be kept.
		r.refused(freeze, reason.KernelWrongState)
	})
}

// claimed has the journal say that the launch has ended, though the guest has not, and
// returns the permits of launch and freeze.
func (r *rig) claimed() (launch, freeze ledger.Permit) {
	r.t.Helper()
	launch = r.permits[1]
	ended := protocol.LaunchResult{Tool: r.Bundle.Bundle().Pins.Tools[0].Digest, Ended: protocol.EndedExited}
	r.permits = r.Next(
		r.Run(r.permits[0], done{protocol.StartResult{Handle: "h"}}), r.Run(launch, done{ended}),
		kernel.Complete{Report: protocol.CompletionReport{
			Handle: "h", Launches: []operation.Key{launch.Intent().Key}, Ended: []protocol.LaunchResult{ended},
		}},
	).Permits
	return launch, r.permits[0]
}

// refused fails the test unless the freeze is refused with the code, and froze nothing.
func (r *rig) refused(p ledger.Permit, code reason.Code) {
	r.t.Helper()
	f := r.env.FreezeOutputs(r.artifacts())
	if out := f.Perform(r.t.Context(), p); out.Knowledge != operation.NotApplied || out.Code != code {
		r.t.Errorf("freeze ended %s, %s: %q; want %s", out.Knowledge, out.Code, out.Detail, code)
	}
	if frozen := f.Frozen(); frozen.Result != (protocol.FreezeResult{}) || len(frozen.Blobs) != 0 {
		r.t.Errorf("froze %+v", frozen.Result)
	}
}

func (r *rig) artifacts() *artifact.Store {
	r.t.Helper()
	store, err := artifact.Open(r.Dir, r.Store, artifact.Options{Write: true})
	if err != nil {
		r.t.Fatal(err)
	}
	return store
}

// running waits until the guest was asked to run.
func (r *rig) running() {
	r.t.Helper()
	for late := time.Now().Add(time.Minute); gone(r.t, r.env, r.State.Resource); runtime.Gosched() {
		if time.Now().After(late) {
			r.t.Fatal("the guest does not run")
		}
	}
}

func gone(t testing.TB, e environment.Environment, resource string) bool {
	t.Helper()
	is, err := e.Gone(t.Context(), resource)
	if err != nil {
		t.Fatal(err)
	}
	return is
}
