package dispatcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Carry carries an admitted attempt out, to its end.
type Carry func(ctx context.Context, a *admission.Admitted, accepted ingress.Accepted) (kernel.State, error)

// Step is what a tick did about one work order, or why it did nothing.
type Step struct {
	WorkOrder workorder.ID
	// Attempt is the attempt that was carried out, empty if none was.
	Attempt workorder.AttemptID
	// State is where attempt and work order stand afterwards.
	State kernel.State
	// Waits says what the work order waits for; empty for one that was attempted.
	Waits string
	// Until is the reading of the clock that it waits for, zero for none.
	Until lifecycle.Observation
	// Err says why the attempt could not be carried out: a *admission.DeniedError, or
	// another refusal, which the journal holds too.
	Err error
}

// Tick attempts every work order that may be attempted now, one after the other, and says
// what each of the others waits for. Whatever it does is recorded with the delivery that
// caused it; where nothing is to be done, nothing is recorded. The error is that of a
// journal of which nothing is known any more.
func (d *Dispatcher) Tick(ctx context.Context, accepted ingress.Accepted, carry Carry) ([]Step, error) {
	index, err := d.Index.Index(ctx)
	if err != nil {
		return nil, err
	}
	steps, err := d.attempt(ctx, index, accepted, carry)
	if err == nil && ctx.Err() == nil && d.Desk != nil {
		// What woke it before it began is carried out by it.
		_, err = d.Desk.Resume(ctx, index.Pending, true)
	}
	return steps, err
}

func (d *Dispatcher) attempt(ctx context.Context, index *projection.Index, accepted ingress.Accepted, carry Carry) ([]Step, error) {
	var steps []Step
	var ids []workorder.ID
	for _, o := range index.Orders {
		ids = append(ids, o.ID)
	}
	for _, id := range ids {
		o := index.Order(id)
		if d.Ledger.Kernel().Transitions().Latest(kernel.WorkOrderMachine).Terminal(o.State) {
			continue
		}
		if ctx.Err() != nil {
			return steps, nil
		}
		step, err := d.step(ctx, index, *o, accepted, carry)
		if doubtful(err) {
			return append(steps, step), fmt.Errorf("tick at %s: %w", o.ID, err)
		}
		step.WorkOrder, step.Err = o.ID, err
		steps = append(steps, step)
		if step.Attempt == "" || step.Waits != "" {
			continue
		}
		// What was carried out may be what a later one waits for. Work orders that came
		// meanwhile are for the next tick.
		now, err := d.Index.Index(context.WithoutCancel(ctx))
		if err != nil {
			return steps, err
		}
		index = now
	}
	return steps, nil
}

// step attempts one work order, or says what it waits for.
func (d *Dispatcher) step(ctx context.Context, index *projection.Index, o projection.Order, accepted ingress.Accepted, carry Carry) (Step, error) {
	a := index.Attempt(o.Last)
	if a != nil && !d.Ledger.Kernel().Transitions().Latest(kernel.AttemptMachine).Terminal(a.State) {
		closed, over, err := d.Expire(ctx, o.Last, accepted)
		switch {
		case err != nil:
			return Step{Attempt: o.Last}, err
		case !over && closed.Waits != "":
			return Step{Attempt: o.Last, Waits: closed.Waits}, nil
		case !over:
			return Step{Attempt: o.Last, Waits: "its attempt, which is " + string(a.State)}, nil
		case closed.State.Bundle != nil || d.Ledger.Kernel().OrderClosed(closed.State):
			return Step{Attempt: o.Last, State: closed.State, Waits: closed.Waits}, nil
		}
		// Its reservation ran out, and nothing had begun: the next attempt follows at once.
	}
	if o.Doubted && o.State != "unknown_terminal" {
		return Step{Waits: o.Waits}, nil
	}
	if dep := d.Ledger.Kernel().Depends(o.ID, capability.Mode(o.Mode), o.DependsOn, index.Look); dep != nil {
		return d.depend(ctx, o.ID, *dep, accepted)
	}
	switch o.State {
	case "submitted", "ready", "blocked_dependency":
		if a != nil && a.State == "unknown_terminal" && !a.Terminal(d.Ledger.Kernel().Transitions()) {
			// Something of it may live, whatever a person says: none begins beside it.
			return Step{Attempt: o.Last, Waits: o.Waits}, nil
		}
	case "retry_wait":
		now := d.Ledger.Now()
		clock, err := d.Ledger.Clock(ctx, now.Domain)
		if err != nil {
			return Step{}, err
		}
		// A clock that stands before the failure went back: waiting for it is waiting for nothing.
		if due := clock.Due(*o.Retry); !now.Reached(due) && !clock.WentBack(now, o.Retry.Begun()) {
			return Step{Waits: o.Waits, Until: due}, nil
		}
		clock, err = d.observe(ctx, accepted, o.Retry.Begun())
		switch {
		case err != nil:
			return Step{}, err
		case !clock.Steady():
			return Step{Waits: blockedClock(clock)}, nil
		}
	case "blocked_budget":
		if wait, err := d.blocked(ctx, o, accepted); wait != "" || err != nil {
			return Step{Waits: wait}, err
		}
	case "blocked_policy":
		changed, err := d.Admission.Changed(ctx, o.Decision)
		if err != nil || !changed {
			return Step{Waits: o.Waits}, err
		}
	default:
		return Step{Waits: o.Waits}, nil
	}
	step, err := d.Attempt(ctx, o.ID, accepted, carry)
	if refusal, ok := reason.As(err); ok && refusal.Code == reason.BudgetBlocked {
		return Step{Waits: "a budget: " + refusal.What}, nil
	}
	return step, err
}

// blocked says what a work order that has no budget still waits for; empty if its account
// has room now, or never will.
func (d *Dispatcher) blocked(ctx context.Context, o projection.Order, accepted ingress.Accepted) (string, error) {
	account, err := d.Admission.Account(ctx, o.Budget.Account, accepted)
	if err != nil {
		return "", err
	}
	if refusal, ok := reason.As(account.Room(o.Budget.Asked)); ok && refusal.Code == reason.BudgetBlocked {
		return "a budget: " + refusal.What, nil
	}
	return "", nil
}

// observe records a reading of the host's clock, and returns the clock as it then stands. seen
// is one that is recorded with what waits for it.
func (d *Dispatcher) observe(ctx context.Context, accepted ingress.Accepted, seen lifecycle.Observation) (kernel.Clock, error) {
	clock, err := d.Ledger.Clock(ctx, d.Ledger.Now().Domain)
	if err != nil {
		return kernel.Clock{}, err
	}
	return d.Ledger.Observe(context.WithoutCancel(ctx), clock, seen, ledger.Turn{
		Blobs: []journal.Blob{accepted.Blob}, Actor: accepted.Receipt.Principal, Cause: accepted.Receipt.ID,
	})
}

// depend records why a work order cannot be attempted, and says so.
func (d *Dispatcher) depend(ctx context.Context, id workorder.ID, dep kernel.Dependency, accepted ingress.Accepted) (Step, error) {
	order, err := d.Ledger.Order(ctx, id)
	if err != nil {
		return Step{}, err
	}
	_, err = d.Ledger.CommitOrder(context.WithoutCancel(ctx), order, id, ledger.Turn{
		Commands: []kernel.Command{kernel.Depend{Dependency: dep}}, Blobs: []journal.Blob{accepted.Blob},
		Actor: accepted.Receipt.Principal, Cause: accepted.Receipt.ID,
	})
	switch {
	case err != nil:
		return Step{}, err
	case dep.Code != reason.DependencyWaiting:
		return Step{}, reason.New(dep.Code, dep.Why, string(id), "submit what it depends on, and then the work order anew")
	}
	return Step{Waits: "another work order: " + dep.Why}, nil
}

// Attempt makes the next attempt at one work order.
func (d *Dispatcher) Attempt(ctx context.Context, id workorder.ID, accepted ingress.Accepted, carry Carry) (Step, error) {
	order, err := d.Ledger.Order(ctx, id)
	if err != nil {
		return Step{}, err
	}
	if order.Retry != nil {
		clock, err := d.observe(ctx, accepted, order.Retry.Begun())
		if err != nil {
			return Step{}, err
		}
		opened, err := d.Ledger.CommitOrder(context.WithoutCancel(ctx), order, id, ledger.Turn{
			Commands: []kernel.Command{kernel.RetryReady{Clock: clock}}, Blobs: []journal.Blob{accepted.Blob},
			Actor: accepted.Receipt.Principal, Cause: accepted.Receipt.ID,
		})
		if err != nil {
			return Step{}, err
		}
		order = opened.State
	}
	admitted, err := d.Admission.Again(ctx, order, accepted)
	if err != nil {
		var denied *admission.DeniedError
		if errors.As(err, &denied) {
			return Step{Attempt: denied.Attempt}, err
		}
		return Step{}, err
	}
	state, err := carry(ctx, admitted, accepted)
	if err != nil && !doubtful(err) {
		// Whoever carried it out has given up on it, and nobody else would close it.
		closed, also := d.close(context.WithoutCancel(ctx), admitted.State.Attempt, accepted)
		if err = errors.Join(err, also); also == nil {
			state = closed.State
		}
	}
	d.Ledger.Forget(admitted.State.Attempt)
	return Step{Attempt: admitted.State.Attempt, State: state}, err
}

// doubtful reports whether nothing can be done any more before the journal is reopened.
func doubtful(err error) bool {
	var doubt *ledger.InDoubtError
	return errors.As(err, &doubt) || reason.Is(err, reason.JournalHalted)
}
