package projection

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/workorder"
)

// projector is the version of the transitions whose meaning an index holds.
const projector = 1

// Builder builds an index from the turns of a journal, in their order.
type Builder struct {
	journal  journal.Reader
	registry *lifecycle.Registry
	index    Index
	// open is where each subject stands that is not at its end: most are, and of the rest the
	// journal is asked.
	open     map[lifecycle.Subject]lifecycle.State
	orders   map[workorder.ID]*Order
	attempts map[workorder.AttemptID]*Attempt
	// recovered is the turn of the newest recovery that left turns out, 0 for none.
	recovered uint64
}

// NewBuilder returns a builder for a journal of which nothing was added yet.
func NewBuilder(j journal.Reader, registry *lifecycle.Registry) *Builder {
	return &Builder{
		journal: j, registry: registry, index: Index{Pending: []string{}}, open: map[lifecycle.Subject]lifecycle.State{},
		orders: map[workorder.ID]*Order{}, attempts: map[workorder.AttemptID]*Attempt{},
	}
}

// RefusedError says which event of a turn the registry, or a reader of it, refuses.
type RefusedError struct {
	Sequence uint64
	Event    lifecycle.Event
	Err      error
}

// Error names the turn.
func (e *RefusedError) Error() string { return fmt.Sprintf("replay of turn %d: %v", e.Sequence, e.Err) }

// Unwrap returns why.
func (e *RefusedError) Unwrap() error { return e.Err }

// Add takes the next turn. After an error the builder must be thrown away: a *RefusedError, or
// that of a journal that cannot be read.
func (b *Builder) Add(ctx context.Context, e journal.Entry) error {
	b.index.Sequence, b.index.Chain = e.Sequence, e.Chain
	for _, ev := range e.Events {
		before, err := b.before(ctx, ev)
		if err != nil {
			return err
		}
		if err := b.apply(ev, before, e.At.UnixMilli); err != nil {
			return &RefusedError{Sequence: e.Sequence, Event: ev, Err: err}
		}
	}
	return nil
}

// before is where the subject of an event stood before it.
func (b *Builder) before(ctx context.Context, ev lifecycle.Event) (lifecycle.State, error) {
	state, open := b.open[ev.Subject]
	if open || ev.Version <= 1 {
		return state, nil
	}
	events, err := b.journal.Events(ctx, ev.Subject)
	if err != nil {
		return "", err
	}
	for _, e := range events {
		if e.Version >= ev.Version {
			break
		}
		t, err := b.registry.Apply(state, e.Event, nil)
		if err != nil {
			return "", &RefusedError{Sequence: e.Sequence, Event: e.Event, Err: err}
		}
		state = t.To
	}
	return state, nil
}

func (b *Builder) apply(ev lifecycle.Event, before lifecycle.State, at int64) error {
	t, err := b.registry.Apply(before, ev, nil)
	if err == nil {
		err = t.Projected(projector)
	}
	if err != nil {
		return err
	}
	if t.Terminal {
		delete(b.open, ev.Subject)
	} else {
		b.open[ev.Subject] = t.To
	}
	if err := b.event(ev, before, t.To, at); err != nil {
		return fmt.Errorf("%s of %s: %w", ev.Family, ev.Subject, err)
	}
	return nil
}

func (b *Builder) event(e lifecycle.Event, before, now lifecycle.State, at int64) error {
	id := e.Subject.ID()
	switch e.Subject.Machine() {
	case kernel.JournalMachine:
		var r kernel.Recovered
		if err := canonical.Decode(e.Body, &r); err != nil {
			return err
		}
		if r.LeftOut > 0 {
			b.recovered = b.index.Sequence
		}
	case kernel.WorkOrderMachine:
		return b.order(workorder.ID(id), e, now, at)
	case kernel.AttemptMachine:
		return b.attempt(workorder.AttemptID(id), e, now, at)
	case kernel.ExecutionMachine:
		a := b.row(workorder.AttemptID(id), at)
		a.Execution = now
	case kernel.EnvironmentMachine:
		a := b.row(workorder.AttemptID(id), at)
		a.Environment, a.environmentMachine = now, e.Machine
		switch e.Family {
		case "environment.retained":
			a.Retention = new(Retention)
			return canonical.Decode(e.Body, &a.Retention.Kept)
		case "environment.retention_ended":
			// An index that was given out holds the old one.
			a.Retention = &Retention{Kept: a.Retention.Kept, Ended: true}
		}
	case kernel.OperationMachine:
		parts := strings.SplitN(id, "/", 3)
		if len(parts) < 3 {
			return nil
		}
		a := b.row(workorder.AttemptID(parts[1]), at)
		if !operation.Key(id).Kind().OfOutbox() {
			a.Open += unanswered(now) - unanswered(before)
		}
	case kernel.CommandMachine:
		i := slices.Index(b.index.Pending, id)
		switch pending := now == "received" || now == "decided"; {
		case pending && i < 0:
			b.index.Pending = append(b.index.Pending, id)
		case !pending && i >= 0:
			b.index.Pending = slices.Delete(b.index.Pending, i, i+1)
		}
	case kernel.OutboxMachine:
		attempt, _, _ := strings.Cut(id, "/")
		a := b.row(workorder.AttemptID(attempt), at)
		machine := b.registry.Machine(kernel.OutboxMachine, e.Machine)
		if before == "" {
			a.Unsent++
		}
		if machine.Terminal(now) {
			a.Unsent--
		}
		if machine.Terminal(now) && now != "sent" && now != "withdrawn" {
			a.Given++
		}
	}
	return nil
}

// unanswered is 1 for the state of an operation that nobody has answered yet. One that is
// unknown was asked about, and waits for nobody once its attempt is closed.
func unanswered(s lifecycle.State) int {
	if s == "intended" {
		return 1
	}
	return 0
}

func (b *Builder) row(id workorder.AttemptID, at int64) *Attempt {
	a := b.attempts[id]
	if a == nil {
		a = &Attempt{ID: id, Begun: at}
		b.attempts[id] = a
	}
	a.Changed = at
	return a
}

func (b *Builder) order(id workorder.ID, e lifecycle.Event, now lifecycle.State, at int64) error {
	o := b.orders[id]
	if o == nil {
		o = &Order{ID: id, Submitted: at, trusted: b.index.Sequence}
		b.orders[id] = o
	}
	o.State, o.Changed = now, at
	switch e.Family {
	case "work_order.submitted":
		var s kernel.Submitted
		if err := canonical.Decode(e.Body, &s); err != nil {
			return err
		}
		var w workorder.WorkOrder
		if err := canonical.Decode(s.Order, &w); err != nil {
			return err
		}
		o.Title, o.Mode, o.Tool, o.DependsOn = w.Title, w.Mode, w.Tool.Name, w.DependsOn
	case "work_order.blocked_policy":
		var blocked kernel.Blocked
		if err := canonical.Decode(e.Body, &blocked); err != nil {
			return err
		}
		// It waits for one thing at a time.
		o.Blocked, o.Decision, o.Dependency, o.Budget = blocked.Why, blocked.Decision, nil, nil
	case "work_order.blocked_dependency", "work_order.dependency_failed":
		o.Blocked, o.Dependency, o.Budget = "", new(kernel.Dependency), nil
		return canonical.Decode(e.Body, o.Dependency)
	case "work_order.mode_raised":
		if now == "submitted" {
			o.Blocked = "" // It is decided anew.
		}
		o.Raised = new(kernel.ModeRaised)
		return canonical.Decode(e.Body, o.Raised)
	case "work_order.resumed":
		o.trusted = b.index.Sequence
	case "work_order.blocked_budget", "work_order.budget_exhausted":
		o.Blocked, o.Dependency, o.Budget = "", nil, new(kernel.BudgetBlock)
		return canonical.Decode(e.Body, o.Budget)
	case "work_order.ready":
		o.Blocked, o.Dependency, o.Budget = "", nil, nil
	case "work_order.reserved":
		var r kernel.OrderReserved
		if err := canonical.Decode(e.Body, &r); err != nil {
			return err
		}
		o.Attempts, o.Last = o.Attempts+1, r.Attempt
	case "work_order.preparation_failed":
		o.Failure = new(kernel.Failure)
		return canonical.Decode(e.Body, o.Failure)
	case "work_order.retry_wait":
		o.Retry = new(kernel.RetryWait)
		return canonical.Decode(e.Body, o.Retry)
	case "work_order.retry_ready":
		o.Retry = nil
	}
	return nil
}

func (b *Builder) attempt(id workorder.AttemptID, e lifecycle.Event, now lifecycle.State, at int64) error {
	a := b.row(id, at)
	a.State, a.machine = now, e.Machine
	if e.Family == "attempt.reserved" {
		var born kernel.Born
		if err := canonical.Decode(e.Body, &born); err != nil {
			return err
		}
		a.WorkOrder = born.WorkOrder
		return nil
	}
	if !kernel.Concludes(e.Family) {
		return nil
	}
	a.Result = new(workorder.Result)
	if err := canonical.Decode(e.Body, a.Result); err != nil {
		return err
	}
	if e.Family == "attempt.denied" {
		a.Denied = a.Result.Detail
	}
	return nil
}

// doubted reports whether what became of a work order may stand in turns that were left out.
func (b *Builder) doubted(o *Order) bool {
	return o.trusted < b.recovered && !b.registry.Latest(kernel.WorkOrderMachine).Terminal(o.State)
}

// waits says what a work order that is not at its end waits for.
func (b *Builder) waits(o Order) string {
	last := b.attempts[o.Last]
	switch {
	case last != nil && !b.registry.Latest(kernel.AttemptMachine).Terminal(last.State):
		return "" // It has an attempt, which says where it stands.
	case o.State == "unknown_terminal":
		return "a person, who says what became of its last attempt: docs/recovery.md"
	case o.Doubted:
		return LeftOut
	case last != nil && last.State == "unknown_terminal" && !last.Terminal(b.registry):
		return "a person, who ends what bears the name of its last attempt and says so once more, as docs/recovery.md shows: that environment is " + string(last.Environment)
	case o.Blocked != "":
		return "a change of the policies: " + o.Blocked
	case o.Dependency != nil:
		return "another work order: " + o.Dependency.Why
	case o.Budget != nil:
		return "a budget: " + o.Budget.Why
	case o.Retry != nil:
		return "its next attempt, after a pause"
	case o.State == "submitted" || o.State == "ready":
		return "the next tick"
	}
	return "a person: it is " + string(o.State)
}

// Index returns the index of what was added so far. What is added later does not change it.
func (b *Builder) Index() *Index {
	x := b.index
	x.Pending = slices.Clone(b.index.Pending)
	x.Attempts = make([]Attempt, 0, len(b.attempts))
	for _, at := range b.attempts {
		a := *at
		if o := b.orders[a.WorkOrder]; o != nil {
			a.Title, a.Mode, a.Tool, a.Order, a.Doubted = o.Title, o.Mode, o.Tool, o.State, b.doubted(o)
		}
		x.Attempts = append(x.Attempts, a)
	}
	x.Orders = make([]Order, 0, len(b.orders))
	for _, of := range b.orders {
		o := *of
		closed := b.registry.Latest(kernel.WorkOrderMachine).Terminal(o.State)
		o.Doubted = b.doubted(of)
		if closed {
			o.Retry = nil
		} else {
			o.Waits = b.waits(o)
		}
		x.Orders = append(x.Orders, o)
	}
	slices.SortFunc(x.Orders, func(a, c Order) int { return strings.Compare(string(a.ID), string(c.ID)) })
	slices.SortFunc(x.Attempts, func(a, c Attempt) int { return strings.Compare(string(a.ID), string(c.ID)) })
	return &x
}
