package supervisor_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

const lease = time.Duration(fixture.Lease) * time.Millisecond

// timed puts the attempt under a clock that is moved by hand.
func (r *rig) timed() *fixture.Hand {
	h := &fixture.Hand{}
	r.Ledger = ledger.New(r.Store, r.Ledger.Kernel(), h)
	r.attempt.Ledger = r.Ledger
	return h
}

// leases are the leases that the attempt was given, in their order, and whether one ran out.
func (r *rig) leases() (renewed int, over bool) {
	r.t.Helper()
	events, err := r.Store.Events(r.t.Context(), lifecycle.Of(kernel.AttemptMachine, string(fixture.Attempt)))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range events {
		switch e.Family {
		case "attempt.lease_renewed":
			renewed++
		case "attempt.lease_expired":
			over = true
		}
	}
	return renewed, over
}

// empty fails the test if anything of the attempt is left.
func (r *rig) empty() {
	r.t.Helper()
	if left, err := os.ReadDir(r.workspaces); err != nil || len(left) != 0 {
		r.t.Errorf("left behind: %v, %v", left, err)
	}
}

// held keeps the tool from running until the test lets it go, and moves the clock with each poll.
func (r *rig) held(polls int, poll func(n int)) {
	free := make(chan struct{})
	r.launching = func(func([]byte)) { <-free }
	n := 0
	r.polled = func(adapter func() (executor.Status, error)) (executor.Status, error) {
		if n++; n > polls {
			return adapter()
		}
		if poll(n); n == polls {
			close(free)
		}
		return executor.Status{}, nil
	}
}

// A lease is renewed while its attempt gets on, once half of it is over and no sooner; a short
// attempt renews none.
func TestALeaseIsRenewedWhileTheWorkGetsOn(t *testing.T) {
	h := newHost(t)
	for name, test := range map[string]struct {
		by      time.Duration // with each of six polls
		renewed int
	}{
		"short": {time.Second, 0}, "long": {lease / 4, 3}, "longer": {lease / 2, 6},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.newRig(t, nil)
			clock := r.timed()
			r.held(6, func(int) { clock.Move(test.by) })
			s := r.run()
			if s.Result == nil || s.Result.Conclusion != workorder.Succeeded {
				t.Errorf("the attempt came to %+v", s.Result)
			}
			if renewed, over := r.leases(); renewed != test.renewed || over {
				t.Errorf("renewed %d times, over: %v", renewed, over)
			}
		})
	}
}

// A supervisor that was away for longer than its lease, as in a process that was stopped, does
// not go on: it ends what it started, and closes the attempt as lost.
func TestWhoeverWasAwayTooLongDoesNotGoOn(t *testing.T) {
	h := newHost(t)
	for name, away := range map[string]func(r *rig, clock *fixture.Hand){
		"while the tool runs": func(r *rig, clock *fixture.Hand) { r.held(1, func(int) { clock.Move(lease) }) },
		"before a turn": func(r *rig, clock *fixture.Hand) {
			r.launching = func(func([]byte)) { clock.Move(lease) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.newRig(t, nil)
			away(r, r.timed())
			s := r.run()
			if res := s.Result; res == nil || res.Conclusion != workorder.Lost || res.Code != reason.AttemptLeaseExpired || s.Retry == nil {
				t.Errorf("the attempt came to %+v", res)
			}
			if renewed, over := r.leases(); renewed != 0 || !over {
				t.Errorf("renewed %d times, over: %v", renewed, over)
			}
			if s.Of(kernel.EnvironmentMachine).State != "destroyed" {
				t.Errorf("the environment is %s", s.Of(kernel.EnvironmentMachine).State)
			}
			r.empty()
		})
	}
}

// A clock that is wrong renews nothing, and stops nobody.
func TestAWrongClockStopsNobody(t *testing.T) {
	r := newHost(t).newRig(t, nil)
	clock := r.timed()
	r.held(2, func(n int) {
		if n == 1 {
			clock.Move(91 * 24 * time.Hour)
		} else {
			clock.Move(-91 * 24 * time.Hour)
		}
	})
	s := r.run()
	if renewed, over := r.leases(); s.Result.Conclusion != workorder.Succeeded || renewed != 0 || over {
		t.Errorf("the attempt came to %+v, renewed %d times, over: %v", s.Result, renewed, over)
	}
}

// A renewal that is refused because somebody else closed the attempt stops the work: the tool
// is ended, what is known is told and moves nothing, and nothing is left.
func TestARaisedFenceStopsTheWork(t *testing.T) {
	r := newHost(t).newRig(t, nil)
	clock := r.timed()
	ended := make(chan struct{})
	r.launching = func(func([]byte)) { <-ended }
	r.polled = func(func() (executor.Status, error)) (executor.Status, error) {
		s, err := r.Ledger.State(t.Context(), fixture.Attempt)
		if err == nil && s.Generation == 1 {
			_, err = r.Ledger.Commit(t.Context(), ledger.Turn{Fence: s.Fence(), Commands: []kernel.Command{kernel.Fence{Why: "test"}}, Actor: "uid:0"})
		}
		if err != nil {
			t.Error(err)
		}
		clock.Move(lease / 2)
		close(ended)
		return executor.Status{}, nil
	}
	s := r.run()
	if s.Generation != 2 || s.Of(kernel.AttemptMachine).State != "reconciling" {
		t.Errorf("the attempt is %s, generation %d", s.Of(kernel.AttemptMachine).State, s.Generation)
	}
	for _, o := range s.Operations() {
		if o.State == "intended" {
			t.Errorf("nothing was told of %s", o.Intent.Key)
		}
	}
	if s.Of(kernel.ExecutionMachine).State != "lost" {
		t.Errorf("a late answer moved the execution to %s", s.Of(kernel.ExecutionMachine).State)
	}
	r.empty()
}

// A supervisor that made something after whoever closed its attempt had looked ends that itself.
func TestWhatWasMadeTooLateIsEnded(t *testing.T) {
	r := newHost(t).newRig(t, nil)
	r.timed()
	r.attempt.Environment = stealing{r.attempt.Environment.(between), r}
	s := r.run()
	if s.Generation != 2 {
		t.Errorf("the fence is at generation %d", s.Generation)
	}
	r.empty()
}

// stealing is an environment whose attempt is fenced, and looked for, just before it is made.
type stealing struct {
	between
	rig *rig
}

func (e stealing) Provision() ledger.Effect { return stolen{e.between.Provision(), e.rig} }

type stolen struct {
	ledger.Effect
	rig *rig
}

func (e stolen) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	s, err := e.rig.Ledger.State(ctx, fixture.Attempt)
	if err == nil {
		_, err = e.rig.Ledger.Commit(ctx, ledger.Turn{Fence: s.Fence(), Commands: []kernel.Command{kernel.Fence{Why: "test"}}, Actor: "uid:0"})
	}
	if err != nil {
		e.rig.t.Error(err)
	}
	out := e.Effect.Perform(ctx, p)
	if left, err := os.ReadDir(e.rig.workspaces); err != nil || len(left) != 1 {
		e.rig.t.Errorf("it made %v, %v", left, err)
	}
	return out
}
