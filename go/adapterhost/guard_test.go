package adapterhost_test

import (
	"errors"
	"testing"

	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// B14: a host service call that lacks the activated bundle, attempt, fence or operation, or has another, is refused
// and launches nothing. The adapter passes on how it was refused.
func TestForeignCallsAreRefused(t *testing.T) {
	for mode, want := range map[string]reason.Code{
		"foreignfence":   reason.KernelStaleFence,
		"foreignbundle":  reason.BundleDigestMismatch,
		"foreignattempt": reason.AdapterForeignCall,
		"foreignparent":  reason.AdapterForeignCall,
		"foreignkey":     reason.AdapterForeignCall,
		"otherdigest":    reason.AdapterProtocol,
		"nocall":         reason.AdapterProtocol,
	} {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t, config(t, mode, bad(t)))
			c, q := r.call(operation.Start)
			if _, err := r.session.Start(t.Context(), c, q, "handle"); !reason.Is(err, want) {
				t.Errorf("got %v, want %s", err, want)
			}
			if len(r.desk.launches) != 0 || len(r.session.Launches(c.Operation)) != 0 {
				t.Error("something was launched")
			}
		})
	}
}

// What the workload has offered is read on behalf of a checkpoint call and of no other.
func TestOffersAreForCheckpoints(t *testing.T) {
	r := newRig(t, config(t, "stealoffer", bad(t)))
	r.desk.offered = []byte("{}")
	c, q := r.call(operation.Start)
	if a, err := r.session.Start(t.Context(), c, q, "handle"); err != nil || a.Refusal == nil || a.Refusal.Code != reason.AdapterForeignCall {
		t.Errorf("an offer read by a start: %v, %v", err, a.Refusal)
	}
}

// The other direction: the host makes no call that the session was not activated for.
func TestForeignCallsAreNotMade(t *testing.T) {
	r := newRig(t, config(t, "reference-local", reference(t)))
	c, q := r.call(operation.Prepare)
	other := c
	other.Fence.Generation = 9
	if _, err := r.session.Prepare(t.Context(), other, q); !reason.Is(err, reason.KernelStaleFence) {
		t.Errorf("another fence: %v", err)
	}
	other = c
	other.Digest = other.Bundle
	if _, err := r.session.Prepare(t.Context(), other, q); !reason.Is(err, reason.AdapterProtocol) {
		t.Errorf("another digest: %v", err)
	}
	newer := r.fence
	newer.Generation++
	r.session.Fence(newer)
	if _, err := r.session.Prepare(t.Context(), c, q); !reason.Is(err, reason.KernelStaleFence) {
		t.Errorf("a revoked fence: %v", err)
	}
	c.Fence = newer
	if _, err := r.session.Prepare(t.Context(), c, q); err != nil {
		t.Errorf("the newer fence: %v", err)
	}
	r.session.Close()
	if _, err := r.session.Prepare(t.Context(), c, q); !reason.Is(err, reason.KernelWrongState) {
		t.Errorf("a closed session: %v", err)
	}
	_ = r.host.Close()
	if _, err := r.host.Activate(r.bundle, r.fence, r.desk); !reason.Is(err, reason.KernelWrongState) {
		t.Errorf("a closed host: %v", err)
	}
}

// What an adapter has to launch beyond its bundle reaches the services with another digest, and is a collision there.
func TestOtherLaunchReachesTheServicesAsItIs(t *testing.T) {
	r := newRig(t, config(t, "otherlaunch", bad(t)))
	ordered := newRig(t, config(t, "reference-local", reference(t)))
	c, q := r.call(operation.Start)
	if _, err := r.session.Start(t.Context(), c, q, "handle"); err != nil {
		t.Fatal(err)
	}
	d, q := ordered.call(operation.Start)
	if _, err := ordered.session.Start(t.Context(), d, q, "handle"); err != nil {
		t.Fatal(err)
	}
	if r.session.Launches(c.Operation)[0].Digest == ordered.session.Launches(d.Operation)[0].Digest {
		t.Error("other arguments have the same digest")
	}
}

// A completion that the host's own records contradict is a lie.
func TestLyingCompletion(t *testing.T) {
	r := newRig(t, config(t, "liereport", bad(t)))
	c, q := r.call(operation.Start)
	if _, err := r.session.Start(t.Context(), c, q, "handle"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.session.Poll(t.Context(), c, "handle", 0); !reason.Is(err, reason.AdapterLied) || !errors.As(err, new(*executor.Doubt)) {
		t.Errorf("while it runs: %v", err)
	}
	r.desk.end(t)
	if _, err := r.session.Poll(t.Context(), c, "handle", 0); !reason.Is(err, reason.AdapterLied) {
		t.Errorf("another end: %v", err)
	}
}

// The adapter itself refuses a fence that is older than one it has seen.
func TestAdapterRefusesAStaleFence(t *testing.T) {
	r := newRig(t, config(t, "reference-local", reference(t)))
	c, q := r.call(operation.Prepare)
	newer := r.fence
	newer.Generation++
	r.session.Fence(newer)
	later := c
	later.Fence = newer
	if _, err := r.session.Prepare(t.Context(), later, q); err != nil {
		t.Fatal(err)
	}
	r.session.Close()
	older, err := r.host.Activate(r.bundle, r.fence, r.desk)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := older.Prepare(t.Context(), c, q); !reason.Is(err, reason.KernelStaleFence) {
		t.Errorf("got %v", err)
	}
}
