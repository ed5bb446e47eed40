package ledger

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/killpoint"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// State returns what the journal says about an attempt. The error is a
// *reason.Refusal for an attempt that it does not know.
func (l *Ledger) State(ctx context.Context, id workorder.AttemptID) (kernel.State, error) {
	a := l.attempt(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := l.load(ctx, id, a); err != nil {
		return kernel.State{}, err
	}
	return *a.state, nil
}

func (l *Ledger) attempt(id workorder.AttemptID) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.attempts[id]
	if a == nil {
		a = new(attempt)
		l.attempts[id] = a
	}
	return a
}

// Forget drops what the ledger remembers of a closed attempt; the journal has it.
func (l *Ledger) Forget(id workorder.AttemptID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.attempts, id)
}

// load rebuilds the state of an attempt unless it is remembered. Preconditions: a.mu
// is held.
func (l *Ledger) load(ctx context.Context, id workorder.AttemptID, a *attempt) error {
	if a.state != nil {
		return nil
	}
	s, err := Load(ctx, l.journal, l.kernel, id)
	if err != nil {
		return err
	}
	a.state = &s
	return nil
}

// Order returns what the journal says about a work order, without any of its attempts. The
// error is a *reason.Refusal for a work order that it does not know.
func (l *Ledger) Order(ctx context.Context, id workorder.ID) (kernel.State, error) {
	return LoadOrder(ctx, l.journal, l.kernel, id)
}

// Clock returns what the journal says about a clock; one that was never read stands at
// nothing.
func (l *Ledger) Clock(ctx context.Context, domain string) (kernel.Clock, error) {
	return LoadClock(ctx, l.journal, l.kernel, domain)
}

// LoadClock rebuilds the state of a clock from the journal alone.
func LoadClock(ctx context.Context, j journal.Reader, k kernel.Kernel, domain string) (kernel.Clock, error) {
	c := kernel.Clock{Domain: domain}
	events, err := j.Events(ctx, c.Subject())
	for _, e := range events {
		if c, err = k.ReduceClock(c, e.Event); err != nil {
			return kernel.Clock{}, fmt.Errorf("replay of the clock %s at turn %d: %w", domain, e.Sequence, err)
		}
	}
	return c, err
}

// LoadOrder rebuilds the state of a work order from the journal alone.
func LoadOrder(ctx context.Context, j journal.Reader, k kernel.Kernel, id workorder.ID) (kernel.State, error) {
	return LoadOrderBefore(ctx, j, k, id, forever)
}

// LoadOrderBefore is LoadOrder by the turns before one.
func LoadOrderBefore(ctx context.Context, j journal.Reader, k kernel.Kernel, id workorder.ID, turn uint64) (kernel.State, error) {
	events, err := j.Events(ctx, lifecycle.Of(kernel.WorkOrderMachine, string(id)))
	if err != nil {
		return kernel.State{}, err
	}
	if events = before(events, turn); len(events) == 0 {
		return kernel.State{}, reason.New(reason.IDUnknown, "no work order has this id", string(id), "list the work orders with `writ status`")
	}
	return replay(k, string(id), events)
}

// Load rebuilds the state of an attempt from the journal alone.
func Load(ctx context.Context, j journal.Reader, k kernel.Kernel, id workorder.AttemptID) (kernel.State, error) {
	return LoadBefore(ctx, j, k, id, forever)
}

// forever is after every turn.
const forever = math.MaxUint64

// before leaves out the events of a turn and of all after it.
func before(events []journal.Recorded, turn uint64) []journal.Recorded {
	return slices.DeleteFunc(events, func(e journal.Recorded) bool { return e.Sequence >= turn })
}

// LoadBefore is Load by the turns before one.
func LoadBefore(ctx context.Context, j journal.Reader, k kernel.Kernel, id workorder.AttemptID, turn uint64) (kernel.State, error) {
	subject := lifecycle.Of(kernel.AttemptMachine, string(id))
	events, err := j.Events(ctx, subject)
	if err != nil {
		return kernel.State{}, err
	}
	if events = before(events, turn); len(events) == 0 {
		return kernel.State{}, reason.New(reason.IDUnknown, "no attempt has this id", string(id), "list the attempts with `writ status`")
	}
	var born kernel.Born
	if err := canonical.Decode(events[0].Body, &born); err != nil {
		return kernel.State{}, fmt.Errorf("%s: %w", subject, err)
	}
	subjects := []lifecycle.Subject{
		lifecycle.Of(kernel.WorkOrderMachine, string(born.WorkOrder)),
		lifecycle.Of(kernel.ReservationMachine, string(born.Reservation)),
		lifecycle.Of(kernel.BudgetMachine, string(born.Reservation)),
		lifecycle.Of(kernel.ExecutionMachine, string(id)),
		lifecycle.Of(kernel.EnvironmentMachine, string(id)),
	}
	operations, err := j.Subjects(ctx, string(lifecycle.Of(kernel.OperationMachine, Namespace+"/"+string(id)+"/")), maxOperations)
	if err != nil {
		return kernel.State{}, err
	}
	proposals, err := j.Subjects(ctx, string(lifecycle.Of(kernel.OutboxMachine, string(id)+"/")), maxOperations)
	if err != nil {
		return kernel.State{}, err
	}
	for _, s := range slices.Concat(subjects, operations, proposals) {
		more, err := j.Events(ctx, s)
		if err != nil {
			return kernel.State{}, err
		}
		events = append(events, before(more, turn)...)
	}
	return replay(k, string(id), events)
}

// replay reduces events in the order in which they were recorded.
func replay(k kernel.Kernel, what string, events []journal.Recorded) (kernel.State, error) {
	slices.SortFunc(events, journal.Order)
	plain := make([]lifecycle.Event, len(events))
	for i, e := range events {
		plain[i] = e.Event
	}
	s, n, err := k.Replay(kernel.State{}, plain...)
	if err != nil {
		return kernel.State{}, fmt.Errorf("replay of %s at turn %d: %w", what, events[n].Sequence, err)
	}
	for _, e := range plain {
		killpoint.Reduced(e)
	}
	return s, nil
}

// maxOperations bounds the operations of one attempt.
const maxOperations = 10_000
