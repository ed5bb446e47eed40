package supervisor

import (
	"context"
	"sync"

	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// heart renews the lease of one attempt, for as long as whoever supervises it gets on: each
// turn beats it, and each poll that was answered. Nothing else does, so that it stands still
// with what it stands for.
type heart struct {
	attempt *Attempt

	// mu guards what follows: the polling beats beside the turns.
	mu    sync.Mutex
	lease kernel.Lease
	fence workorder.Fence
	// over is why the attempt may not be gone on with, nil as long as it may.
	over error
}

// follow takes what a turn left of the lease.
func (h *heart) follow(s kernel.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease, h.fence = kernel.Lease{}, s.Fence()
	if s.Leased() {
		h.lease = s.Lease
	}
}

// beat renews the lease if half of it is over. It returns why the attempt may not be gone on
// with: the lease ran out, or somebody else closed the attempt. On a clock that cannot be
// counted with nothing is renewed, and nothing runs out.
func (h *heart) beat(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.attempt.Ledger.Now()
	if h.over != nil || h.lease == (kernel.Lease{}) || now.Reached(h.lease.At) && !h.lease.Fading(now) {
		return h.over
	}
	ctx = context.WithoutCancel(ctx)
	clock, err := h.attempt.Ledger.Clock(ctx, h.lease.At.Domain)
	if err != nil {
		return nil // What is wrong with the journal is for the next turn to say.
	}
	opened, err := h.attempt.Ledger.Commit(ctx, ledger.Turn{
		Fence: h.fence, Commands: []kernel.Command{kernel.RenewLease{Clock: clock, Now: now}}, Actor: h.attempt.Actor, Cause: h.attempt.Cause,
	})
	switch {
	case err == nil:
		h.lease = opened.State.Lease
	case reason.Is(err, reason.ClockBlocked), reason.Is(err, reason.JournalConflict):
		return nil // The next beat tries again.
	default:
		h.over = err
	}
	return h.over
}

// stopped reports whether the attempt may not be gone on with.
func (h *heart) stopped() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over != nil
}

// term is the lease as it was renewed last.
func (h *heart) term() kernel.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

// revive has the heart try again.
func (h *heart) revive() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = nil
}

// alive has the drive go on only under its lease. One that ran out while nobody looked, as in a
// process that was stopped, is ended like any other that was lost.
func (d *drive) alive() error {
	err := d.heart.beat(d.ctx)
	if !reason.Is(err, reason.AttemptLeaseExpired) {
		return err
	}
	preview, err := d.attempt.Ledger.Kernel().Decide(d.state, d.pending...)
	if err != nil || !preview.State.Leased() {
		return err // What is known closes it.
	}
	l, lease := d.attempt.Ledger, d.heart.term() // Polls have renewed it since the last turn.
	clock, err := l.Clock(d.closing(), lease.At.Domain)
	if err == nil {
		clock, err = l.Observe(d.closing(), clock, clock.Read(lease), ledger.Turn{Actor: d.attempt.Actor, Cause: d.attempt.Cause})
	}
	switch {
	case err != nil:
		return err
	case !clock.Steady() || !clock.Last.Reached(clock.Ends(lease)):
		d.heart.revive() // The clock is not what it was: nothing runs out by it.
		return nil
	}
	d.pending = append(d.pending, kernel.ExpireLease{Clock: clock}, kernel.Fence{Why: Silent, Code: reason.AttemptLeaseExpired})
	return nil
}

// Silent is why an attempt is closed whose lease ran out.
const Silent = "its supervisor did not renew its lease in time"

// yield leaves an attempt that somebody else closes. What is known is told, which moves nothing
// any more; and what bears its name is ended, which may have been made after the other looked.
func (d *drive) yield() (kernel.State, error) {
	ctx, l := d.closing(), d.attempt.Ledger
	var facts []kernel.Command
	for _, c := range d.pending {
		if _, fact := c.(kernel.Settle); fact {
			facts = append(facts, c)
		}
	}
	if len(facts) > 0 {
		if _, err := l.Commit(ctx, ledger.Turn{Fence: d.state.Fence(), Commands: facts, Actor: d.attempt.Actor, Cause: d.attempt.Cause}); err != nil {
			return d.state, err
		}
	}
	defer l.Alone(d.state.Attempt)()
	if d.state.Resource != "" {
		environment.Look(ctx, d.attempt.Provider, d.state)
	}
	return l.State(ctx, d.state.Attempt)
}
