package ledger

import (
	"context"
	"fmt"
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
	return a.state, nil
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
	if a.loaded {
		return nil
	}
	s, err := Load(ctx, l.journal, l.kernel, id)
	if err != nil {
		return err
	}
	a.state, a.loaded = s, true
	return nil
}

// Load rebuilds the state of an attempt from the journal alone.
func Load(ctx context.Context, j journal.Reader, k kernel.Kernel, id workorder.AttemptID) (kernel.State, error) {
	subject := lifecycle.Of(kernel.AttemptMachine, string(id))
	events, err := j.Events(ctx, subject)
	if err != nil {
		return kernel.State{}, err
	}
	if len(events) == 0 {
		return kernel.State{}, reason.New(reason.IDUnknown, "no attempt has this id", string(id), "list the attempts with `writ status`")
	}
	var born kernel.Born
	if err := canonical.Decode(events[0].Body, &born); err != nil {
		return kernel.State{}, fmt.Errorf("%s: %w", subject, err)
	}
	subjects := []lifecycle.Subject{
		lifecycle.Of(kernel.WorkOrderMachine, string(born.WorkOrder)),
		lifecycle.Of(kernel.ReservationMachine, string(born.Reservation)),
		lifecycle.Of(kernel.ExecutionMachine, string(id)),
		lifecycle.Of(kernel.EnvironmentMachine, string(id)),
	}
	operations, err := j.Subjects(ctx, string(lifecycle.Of(kernel.OperationMachine, Namespace+"/"+string(id)+"/")), maxOperations)
	if err != nil {
		return kernel.State{}, err
	}
	for _, s := range append(subjects, operations...) {
		more, err := j.Events(ctx, s)
		if err != nil {
			return kernel.State{}, err
		}
		events = append(events, more...)
	}
	slices.SortFunc(events, journal.Order)
	var s kernel.State
	for _, e := range events {
		if s, err = k.Reduce(s, e.Event); err != nil {
			return kernel.State{}, fmt.Errorf("replay of %s at turn %d: %w", id, e.Sequence, err)
		}
		killpoint.Reduced(e.Event)
	}
	return s, nil
}

// maxOperations bounds the operations of one attempt.
const maxOperations = 10_000
