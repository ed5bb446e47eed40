package ledger_test

import (
	"sync"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
)

// later is the fixed clock, so long after Now.
type later struct {
	fixture.Clock
	by time.Duration
}

func (l later) Now() journal.Observation { return fixture.At(l.by) }

// However long ago an activation was decided, it counts with the time at which it is
// committed: whoever was away meanwhile finds its reservation expired, and its lease begins
// where it really begins.
func TestAnActivationIsDecidedWhenItIsCommitted(t *testing.T) {
	l := newLife(t)
	l.submit()
	fixture.Observe(t, l.ledger, fixture.At(-time.Hour))
	fixture.Observe(t, l.ledger, fixture.At(0))
	activate := kernel.Activate{Bundle: fixture.Bundle(t, l.ledger.Kernel(), l.state.Reserved, nil), Now: fixture.At(0)}
	turn := ledger.Turn{Fence: l.state.Fence(), Commands: []kernel.Command{activate}, Actor: "uid:0"}
	late := ledger.New(l.store, l.ledger.Kernel(), later{by: time.Minute})
	if _, err := late.Commit(t.Context(), turn); !reason.Is(err, reason.BundleExpired) {
		t.Fatalf("got %v", err)
	}
	opened, err := ledger.New(l.store, l.ledger.Kernel(), later{by: time.Minute - time.Millisecond}).Commit(t.Context(), turn)
	if err != nil {
		t.Fatal(err)
	}
	if got := opened.State.Lease; got.At != fixture.At(time.Minute-time.Millisecond) || got.Millis() != fixture.Lease || got.Clock != 2 {
		t.Errorf("the lease is %+v", got)
	}
}

// Of an activation and an expiry of one reservation, by many at once, one happened.
func TestAnActivationRacesAnExpiry(t *testing.T) {
	for range 4 {
		l := newLife(t)
		l.submit()
		clock := fixture.Observe(t, l.ledger, fixture.At(time.Minute))
		bundle := fixture.Bundle(t, l.ledger.Kernel(), l.state.Reserved, nil)
		var mu sync.Mutex
		n := 0
		won := race(t, l, func(one *ledger.Ledger, s kernel.State) (ledger.Opened, error) {
			mu.Lock()
			n++
			command := kernel.Command(kernel.Activate{Bundle: bundle, Now: fixture.At(0)})
			if n%2 == 0 {
				command = kernel.ExpireReservation{Clock: clock}
			}
			mu.Unlock()
			return one.Commit(t.Context(), ledger.Turn{Fence: s.Fence(), Commands: []kernel.Command{command}, Actor: "uid:0"})
		})
		s, err := ledger.Load(t.Context(), l.store, l.ledger.Kernel(), fixture.Attempt)
		if err != nil || len(won) == 0 {
			t.Fatalf("%d won, %v", len(won), err)
		}
		at := [2]lifecycle.State{s.Of(kernel.AttemptMachine).State, s.Of(kernel.ReservationMachine).State}
		if at != [2]lifecycle.State{"leased", "consumed"} && at != [2]lifecycle.State{"expired_no_effect", "expired"} {
			t.Errorf("attempt and reservation are %v", at)
		}
		for _, opened := range won {
			// Whoever asked for what the winner did is answered by it.
			if opened.State.Of(kernel.AttemptMachine) != s.Of(kernel.AttemptMachine) {
				t.Errorf("one was told %v, and it is %v", opened.State.Of(kernel.AttemptMachine), s.Of(kernel.AttemptMachine))
			}
		}
	}
}

// A permit that was handed out before the fence was raised permits nothing afterwards: whoever
// held it was away, and that nothing was done is the fact.
func TestNothingIsPerformedUnderARaisedFence(t *testing.T) {
	l := newLife(t)
	permits := l.activate().Permits
	old := l.state.Fence()
	l.turn(kernel.Fence{Why: "test"})
	e := applied(protocol.ProvisionResult{Provider: "wasm", Resource: "r"})
	s := l.run(permits[0], e)
	if e.performed != 0 || s.Outcome.Knowledge != operation.NotApplied || s.Outcome.Code != reason.KernelStaleFence {
		t.Errorf("performed %d times: %+v", e.performed, s.Outcome)
	}
	if _, err := l.ledger.Commit(t.Context(), ledger.Turn{Fence: old, Commands: []kernel.Command{s}}); err != nil {
		t.Errorf("a fact was refused: %v", err)
	}
}
