package dispatcher

import (
	"context"
	"fmt"

	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
)

// Expired is what became of what was kept of one environment, or what it waits for.
type Expired struct {
	Attempt workorder.AttemptID
	Kept    protocol.Retention
	// Until is the reading of the clock at which its time is over, while it is not; Waits
	// says what else it waits for. Both are zero for what was removed now.
	Until lifecycle.Observation
	Waits string
}

// ExpireRetentions removes everything that was kept and whose time is over, by the recorded clock,
// and says what the rest waits for. Whatever it does is recorded with the delivery that
// caused it; where nothing is to be done, nothing is recorded but, once a month, a reading
// of the clock that it waits for. Ending ctx is a request to begin no more. The error is that
// of a journal of which nothing is known any more.
func (d *Dispatcher) ExpireRetentions(ctx context.Context, accepted ingress.Accepted) ([]Expired, error) {
	stop := ctx.Err
	ctx = context.WithoutCancel(ctx)
	index, err := d.Index.Index(ctx)
	if err != nil {
		return nil, err
	}
	var all []Expired
	for _, a := range index.Attempts {
		if a.Retention == nil || a.Retention.Ended {
			continue
		}
		if stop() != nil {
			return all, nil
		}
		e := &expiry{dispatcher: d, accepted: accepted, expired: Expired{Attempt: a.ID, Kept: a.Retention.Kept}}
		err := e.run(ctx)
		d.Ledger.Forget(a.ID)
		if doubtful(err) {
			return all, fmt.Errorf("remove what was kept of %s: %w", a.ID, err)
		}
		if err != nil {
			e.expired.Waits = err.Error() // The next tick tries again.
		}
		all = append(all, e.expired)
	}
	return all, nil
}

// expiry removes what was kept of one environment.
type expiry struct {
	dispatcher *Dispatcher
	state      kernel.State
	accepted   ingress.Accepted
	expired    Expired
}

func (e *expiry) run(ctx context.Context) (err error) {
	d := e.dispatcher
	if e.state, err = d.Ledger.State(ctx, e.expired.Attempt); err != nil {
		return err
	}
	provider, err := d.Providers.Find(e.state.Bundle.Bundle().Environment.Provider.Name)
	if err != nil {
		return err
	}
	byName := environment.ByName{Provider: provider}
	if e.state.Retained.Expired != nil {
		return e.resolve(ctx, byName)
	}
	due, clock, err := e.due(ctx)
	if err != nil || !due {
		return err
	}
	opened, err := e.turn(ctx, kernel.ExpireRetention{Clock: clock})
	if err != nil {
		return err
	}
	for _, p := range opened.Permits {
		settle, err := d.Ledger.Run(ctx, p, byName)
		if err != nil {
			return err
		}
		if err := e.settle(ctx, settle); err != nil {
			return err
		}
	}
	return nil
}

// due reports whether the time of what is kept is over, by a clock whose newest reading is
// recorded and counts. What is not due says until when, or for whom, it waits.
func (e *expiry) due(ctx context.Context) (bool, kernel.Clock, error) {
	d, kept := e.dispatcher, e.state.Retained.Retention
	now := d.Ledger.Now()
	clock, err := d.Ledger.Clock(ctx, now.Domain)
	if err != nil {
		return false, clock, err
	}
	// A clock that stands before the keeping went back: waiting for it is waiting for nothing.
	if until := clock.KeptUntil(kept); !now.Reached(until) && !clock.WentBack(now, kept.At) && !clock.Stale(now) {
		e.expired.Until = until
		return false, clock, nil
	}
	clock, err = d.observe(ctx, e.accepted, kept.At)
	switch {
	case err != nil:
		return false, clock, err
	case !clock.Steady():
		e.expired.Waits = fmt.Sprintf("a person: the clock %s went back or jumped, and is blocked at event %d", clock.Domain, clock.At.Version)
		return false, clock, nil
	}
	if until := clock.KeptUntil(kept); !clock.Last.Reached(until) {
		e.expired.Until = until
		return false, clock, nil
	}
	return true, clock, nil
}

// resolve asks again about a removal that was begun and is not known to have worked. As
// long as nothing else becomes known of it than before, nothing is recorded.
func (e *expiry) resolve(ctx context.Context, byName environment.ByName) error {
	for _, o := range e.state.Operations() {
		if o.Intent.Kind != operation.Destroy || o.Intent.Key.Purpose() != protocol.RetentionPurpose {
			continue
		}
		asking, cancel := environment.ReconciliationContext(ctx, e.state)
		defer cancel()
		settle, err := e.dispatcher.Ledger.Resolve(asking, e.state, o.Intent, byName)
		if err != nil {
			return err
		}
		if o.State == "unknown" && settle.Outcome.Knowledge == operation.Unknown {
			e.expired.Waits = waitsFor(settle.Outcome)
			return nil
		}
		return e.settle(ctx, settle)
	}
	return nil
}

func (e *expiry) settle(ctx context.Context, s kernel.Settle) error {
	if s.Outcome.Knowledge != operation.Applied {
		e.expired.Waits = waitsFor(s.Outcome)
	}
	_, err := e.turn(ctx, s)
	return err
}

// waitsFor says why something is still kept.
func waitsFor(out operation.Outcome) string { return "its removal, which does not work: " + out.Detail }

func (e *expiry) turn(ctx context.Context, commands ...kernel.Command) (ledger.Opened, error) {
	opened, err := e.dispatcher.Ledger.Commit(ctx, ledger.Turn{
		Fence: e.state.Fence(), Commands: commands, Blobs: []journal.Blob{e.accepted.Blob},
		Actor: e.accepted.Receipt.Principal, Cause: e.accepted.Receipt.ID,
	})
	if err == nil {
		e.state = opened.State
	}
	return opened, err
}
