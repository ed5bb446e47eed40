package dispatcher_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/dispatcher"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

const lease = time.Duration(fixture.Lease) * time.Millisecond

// watched is an attempt under a clock that is set by hand, and whoever watches it.
type watched struct {
	*life
	clock      *fixture.Hand
	dispatcher *dispatcher.Dispatcher
	accepted   ingress.Accepted
	// waits are how long the watch looks away each time, wakes ends that.
	waits   chan time.Duration
	wakes   chan time.Time
	revoked chan workorder.AttemptID
}

func (l *life) watched() *watched {
	l.t.Helper()
	w := &watched{life: l, clock: &fixture.Hand{}, waits: make(chan time.Duration), wakes: make(chan time.Time), revoked: make(chan workorder.AttemptID, 1)}
	l.Ledger = ledger.New(l.Store, l.Ledger.Kernel(), w.clock)
	var err error
	w.accepted, err = ingress.NewGate("uid:0").Accept("uid:0", ingress.Delivery{ID: fixture.Delivery(1), Channel: "cli", Verb: ingress.Tick})
	if err != nil {
		l.t.Fatal(err)
	}
	w.dispatcher = &dispatcher.Dispatcher{
		Ledger: l.Ledger, Index: projection.NewView(l.Store, l.Ledger.Kernel().Transitions()), Providers: environment.NewProviders(l.provider),
		Revoked: func(id workorder.AttemptID) { w.revoked <- id },
		After:   func(wait time.Duration) <-chan time.Time { w.waits <- wait; return w.wakes },
	}
	return w
}

// expire looks at the attempt once.
func (w *watched) expire() (dispatcher.Closed, bool) {
	w.t.Helper()
	closed, over, err := w.dispatcher.Expire(w.t.Context(), fixture.Attempt, w.accepted)
	if err != nil {
		w.t.Fatal(err)
	}
	return closed, over
}

// families are those of all events of the attempt, in their order.
func (w *watched) families() (all []lifecycle.Family) {
	w.t.Helper()
	events, err := w.Store.Events(w.t.Context(), lifecycle.Of(kernel.AttemptMachine, string(fixture.Attempt)))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range events {
		all = append(all, e.Family)
	}
	return all
}

// A supervisor that hangs is left behind: once the lease of its attempt is over, and not
// before, the attempt is fenced, its worker is ended, and it is closed as lost. What the hung
// one still has to say is kept, and moves nothing.
func TestAHungSupervisorIsLeftBehind(t *testing.T) {
	l := newHost(t).newLife(t)
	w := l.watched()
	l.launch()
	old, hung := l.State.Fence(), make(chan struct{})
	defer close(hung)
	done := make(chan kernel.State, 1)
	go func() {
		s, err := w.dispatcher.Supervise(t.Context(), fixture.Attempt, w.accepted, func() (kernel.State, error) { <-hung; return kernel.State{}, nil })
		if err != nil {
			t.Error(err)
		}
		done <- s
	}()
	if wait := <-w.waits; wait != lease {
		t.Errorf("the watch looks away for %s", wait)
	}
	w.clock.Set(lease - time.Second)
	w.wakes <- time.Time{}
	if wait := <-w.waits; wait != time.Second {
		t.Errorf("before the end the watch looks away for %s", wait)
	}
	if got := w.families(); slices.Contains(got, "attempt.lease_expired") {
		t.Fatalf("too early: %v", got)
	}
	w.clock.Set(lease)
	w.wakes <- time.Time{}
	<-w.waits // It waits for the supervisor, which is stuck.
	if id := <-w.revoked; id != fixture.Attempt {
		t.Errorf("revoked was %s", id)
	}
	w.wakes <- time.Time{}
	s := <-done
	if r := s.Result; r == nil || r.Conclusion != workorder.Lost || r.Code != reason.AttemptLeaseExpired || s.Of(kernel.EnvironmentMachine).State != "destroyed" || s.Generation != 2 {
		t.Errorf("the attempt came to %+v, generation %d, environment %s", r, s.Generation, s.Of(kernel.EnvironmentMachine).State)
	}
	if s.Retry == nil {
		t.Error("no attempt follows")
	}
	if got := w.families(); !slices.Contains(got, "attempt.lease_expired") || !slices.Contains(got, "attempt.fenced") {
		t.Errorf("it went %v", got)
	}
	out := <-l.guest
	if out.Code != reason.EnvironmentDead {
		t.Errorf("the guest ended %s: %s", out.Code, out.Detail)
	}
	if left, err := os.ReadDir(l.workspaces); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// The old one comes back with a permit and an answer.
	late := l.Run(l.permits[0], never{t})
	if late.Outcome.Code != reason.KernelStaleFence {
		t.Errorf("a stale permit came to %+v", late.Outcome)
	}
	before := s.Of(kernel.ExecutionMachine)
	opened, err := l.Ledger.Commit(t.Context(), ledger.Turn{Fence: old, Commands: []kernel.Command{late}, Actor: "uid:0"})
	if err != nil || opened.State.Of(kernel.ExecutionMachine) != before {
		t.Errorf("a late answer: %v, %v", opened.State.Of(kernel.ExecutionMachine), err)
	}
	if _, err := l.Ledger.Commit(t.Context(), ledger.Turn{Fence: old, Commands: []kernel.Command{kernel.Accept{}}, Actor: "uid:0"}); !reason.Is(err, reason.KernelStaleFence) {
		t.Errorf("under the old fence: %v", err)
	}
	if _, over := w.expire(); over {
		t.Error("it ended twice")
	}
}

// On a clock that went back or jumped no lease ends until a person has said from when on it
// counts; it is measured from there then.
func TestNoLeaseEndsOnABlockedClock(t *testing.T) {
	for name, wrong := range map[string]time.Duration{"back": -time.Hour, "far ahead": 91 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			l := newHost(t).newLife(t)
			w := l.watched()
			l.begin()
			w.clock.Set(wrong)
			closed, over := w.expire()
			if over || !strings.Contains(closed.Waits, "a person: the clock") {
				t.Fatalf("over: %v, it waits for %q", over, closed.Waits)
			}
			w.clock.Set(2 * lease)
			if _, over := w.expire(); over {
				t.Fatal("the lease ended on a blocked clock")
			}
			clock, err := l.Ledger.Clock(t.Context(), fixture.At(0).Domain)
			if err != nil {
				t.Fatal(err)
			}
			err = l.Ledger.CommitClock(t.Context(), clock, ledger.Turn{Actor: "uid:0", Commands: []kernel.Command{kernel.ReconcileClock{
				Clock: clock, Ingress: fixture.Digest("ingress"), ClockReconciliation: kernel.ClockReconciliation{
					From: fixture.At(2 * lease), ExpectedVersion: clock.At.Version, Principal: "uid:0", Reason: "set right",
				}}}})
			if err != nil {
				t.Fatal(err)
			}
			w.clock.Set(3*lease - time.Millisecond)
			if _, over := w.expire(); over {
				t.Fatal("the lease is shorter than it is long")
			}
			w.clock.Set(3 * lease)
			if closed, over := w.expire(); !over || closed.State.Result.Conclusion != workorder.Lost {
				t.Errorf("over: %v, %+v", over, closed.State.Result)
			}
		})
	}
}

// A reservation that ran out before it was activated ends as that, and is no attempt that was
// abandoned; one that has time is left alone. What is refused for it is recorded as it.
func TestAReservationThatRanOut(t *testing.T) {
	h := newHost(t)
	for name, end := range map[string]func(w *watched) kernel.State{
		"found by a tick": func(w *watched) kernel.State {
			closed, over := w.expire()
			if !over {
				t.Error("it goes on")
			}
			return closed.State
		},
		"at its activation": func(w *watched) kernel.State {
			_, err := w.Ledger.Commit(t.Context(), ledger.Turn{Fence: w.State.Fence(), Commands: []kernel.Command{w.Activation()}, Actor: "uid:0"})
			if !reason.Is(err, reason.BundleExpired) {
				t.Errorf("the activation: %v", err)
			}
			s, why := w.dispatcher.Unactivated(t.Context(), fixture.Attempt, w.accepted, err)
			if !reason.Is(why, reason.BundleExpired) {
				t.Errorf("told %v", why)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := h.newLife(t).watched()
			w.clock.Set(time.Minute - time.Millisecond)
			if _, over := w.expire(); over {
				t.Fatal("too early")
			}
			w.clock.Set(time.Minute)
			s := end(w)
			if at := s.Of(kernel.AttemptMachine).State; at != "expired_no_effect" || s.Of(kernel.ReservationMachine).State != "expired" {
				t.Errorf("attempt and reservation are %s and %s", at, s.Of(kernel.ReservationMachine).State)
			}
			if s.Of(kernel.WorkOrderMachine).State != "submitted" || s.Result.Code != reason.BundleExpired {
				t.Errorf("the order is %s, the attempt came to %+v", s.Of(kernel.WorkOrderMachine).State, s.Result)
			}
		})
	}
}

// What was decided by a reading of a clock that was blocked meanwhile is not recorded: what is
// known of the clock comes first.
func TestNothingEndsByAClockThatMoved(t *testing.T) {
	w := newHost(t).newLife(t).watched()
	read := func() kernel.Clock {
		t.Helper()
		clock, err := w.Ledger.Clock(t.Context(), fixture.At(0).Domain)
		if err == nil {
			clock, err = w.Ledger.Observe(t.Context(), clock, lifecycle.Observation{}, ledger.Turn{Actor: "uid:0"})
		}
		if err != nil {
			t.Fatal(err)
		}
		return clock
	}
	w.clock.Set(time.Minute)
	steady := read()
	w.clock.Set(-time.Hour)
	if now := read(); now.Steady() {
		t.Fatal("the clock went back, and is steady")
	}
	s, err := w.Ledger.State(t.Context(), fixture.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Ledger.Commit(t.Context(), ledger.Turn{Fence: s.Fence(), Commands: []kernel.Command{kernel.ExpireReservation{Clock: steady}}, Actor: "uid:0"})
	if !reason.Is(err, reason.JournalConflict) {
		t.Errorf("it came to %v", err)
	}
	if got := w.families(); len(got) != 1 {
		t.Errorf("it went %v", got)
	}
}

// never fails the test if it is performed.
type never struct{ t *testing.T }

func (d never) Perform(_ context.Context, _ ledger.Permit) operation.Outcome {
	d.t.Error("it was performed")
	return operation.Outcome{}
}

func (d never) Resolve(context.Context, operation.Intent) operation.Outcome {
	return operation.Outcome{}
}

// What a person says of an order while an attempt at it is prepared ends that attempt and not
// the order: nothing of it had begun.
func TestAnOrderThatMovedWhileItWasPrepared(t *testing.T) {
	l := newHost(t).newLife(t)
	w := l.watched()
	s, err := l.Ledger.State(t.Context(), fixture.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	order, err := l.Ledger.Order(t.Context(), fixture.WorkOrder)
	if err != nil {
		t.Fatal(err)
	}
	resume := kernel.Resume{Resumed: kernel.Resumed{Principal: "uid:0", Reason: "looked"}, Ingress: w.accepted.Digest}
	if _, err := l.Ledger.CommitOrder(t.Context(), order, fixture.WorkOrder, ledger.Turn{Commands: []kernel.Command{resume}, Actor: "uid:0"}); err != nil {
		t.Fatal(err)
	}
	_, why := l.Ledger.Commit(t.Context(), ledger.Turn{Fence: s.Fence(), Commands: []kernel.Command{l.Activation()}, Actor: "uid:0"})
	if !reason.Is(why, reason.JournalConflict) {
		t.Fatalf("the activation is told %v", why)
	}
	if _, err := w.dispatcher.Unactivated(t.Context(), fixture.Attempt, w.accepted, why); !reason.Is(err, reason.JournalConflict) {
		t.Errorf("%v", err)
	}
	if order, err = l.Ledger.Order(t.Context(), fixture.WorkOrder); err != nil || order.Of(kernel.WorkOrderMachine).State != "submitted" {
		t.Errorf("the order is %s, %v", order.Of(kernel.WorkOrderMachine).State, err)
	}
	if got := w.families(); got[len(got)-1] != "attempt.abandoned" {
		t.Errorf("the attempt came to %v", got)
	}
}
