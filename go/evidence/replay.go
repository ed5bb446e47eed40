package evidence

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Replayed is what replaying a journal came to.
type Replayed struct {
	// Index is the index of the turns that were replayed; nil where the registry refuses one.
	Index *projection.Index
	// Turns, Events, Orders and Attempts count what was replayed.
	Turns, Events    uint64
	Orders, Attempts int
	// Refused is the first event that was refused, nil if none was.
	Refused *projection.RefusedError
}

// Watch is told what a replay comes by. Each may be nil.
type Watch struct {
	// Attempt gets each attempt as it was left. again says that it was told before: something
	// happened to it after it was closed.
	Attempt func(s kernel.State, again bool)
	// Refused gets what could not be carried on, and why.
	Refused func(what string, err error)
}

// Replay goes through a journal once, up to and including a turn, or to its end for 0. It
// builds the index, and carries every work order and attempt through the kernel.
//
// What is closed is forgotten, so that memory does not grow with what is over; where
// something happens to it later, it is read again.
func Replay(ctx context.Context, j journal.Reader, k kernel.Kernel, until uint64, w Watch) (Replayed, error) {
	r := &replay{
		ctx: ctx, journal: j, kernel: k, watch: w, index: projection.NewBuilder(j, k.Transitions()),
		orders: map[workorder.ID]*orderLife{}, attempts: map[workorder.AttemptID]*attemptLife{}, reservations: map[workorder.ReservationID]workorder.AttemptID{},
		accounts: map[string]*kernel.Account{},
	}
	if err := projection.Read(ctx, j, 0, until, r.turn); err != nil {
		return r.out, err
	}
	for _, id := range slices.Sorted(maps.Keys(r.attempts)) {
		r.tell(r.attempts[id])
	}
	if r.index != nil {
		r.out.Index = r.index.Index()
	}
	return r.out, nil
}

type replay struct {
	ctx     context.Context
	journal journal.Reader
	kernel  kernel.Kernel
	watch   Watch
	index   *projection.Builder // nil once a turn was refused
	out     Replayed

	// What is open, and what was refused and is left alone.
	orders   map[workorder.ID]*orderLife
	attempts map[workorder.AttemptID]*attemptLife
	// reservations says whose each is.
	reservations map[workorder.ReservationID]workorder.AttemptID
	// accounts holds every account, nil for one of which an event was refused.
	accounts map[string]*kernel.Account
	// touched are those that the turn under way is about.
	touched []*carried
}

// carried is a state on its way through the kernel.
type carried struct {
	what    string
	state   kernel.State
	pending []lifecycle.Event // of the turn under way
	refused bool
}

// orderLife is a work order without its attempts, as ledger.LoadOrder has it, and the open
// attempts at it.
type orderLife struct {
	carried
	open []*attemptLife
}

// attemptLife is an attempt with its work order, as ledger.Load has it.
type attemptLife struct {
	carried
	id    workorder.AttemptID
	order *orderLife
	again bool // it was told before
}

// turn takes the next turn.
func (r *replay) turn(e journal.Entry) error {
	r.out.Turns++
	r.out.Events += uint64(len(e.Events))
	if err := r.add(e); err != nil {
		return err
	}
	for _, ev := range e.Events {
		if id := workorder.ID(ev.Subject.ID()); ev.Version == 1 && ev.Subject.Machine() == kernel.WorkOrderMachine && r.orders[id] == nil {
			r.orders[id] = &orderLife{carried: carried{what: string(id), state: kernel.State{}.Clone()}}
			r.out.Orders++
		}
	}
	// An attempt that is reserved begins with what its work order was before this turn.
	for _, ev := range e.Events {
		if ev.Family != "attempt.reserved" {
			continue
		}
		if err := r.begin(ev, e.Sequence); err != nil {
			return err
		}
	}
	for _, ev := range e.Events {
		if err := r.route(ev, e.Sequence); err != nil {
			return err
		}
	}
	for _, c := range r.touched {
		r.carry(c, e.Sequence)
	}
	r.touched = r.touched[:0]
	last := workorder.AttemptID("")
	for _, ev := range e.Events {
		if ev.Subject.Machine() == kernel.WorkOrderMachine {
			r.forgetOrder(workorder.ID(ev.Subject.ID()))
		} else if id := r.attemptOf(ev); id != last {
			r.forgetAttempt(id)
			last = id
		}
	}
	return nil
}

// add adds a turn to the index, until one is refused.
func (r *replay) add(e journal.Entry) error {
	if r.index == nil {
		return nil
	}
	err := r.index.Add(r.ctx, e)
	var refused *projection.RefusedError
	if errors.As(err, &refused) {
		r.index = nil
		r.refuse("index", refused)
		return nil
	}
	return err
}

// begin makes the attempt of an attempt.reserved.
func (r *replay) begin(ev lifecycle.Event, turn uint64) error {
	var born kernel.Born
	if err := canonical.Decode(ev.Body, &born); err != nil {
		return nil // The kernel refuses the event.
	}
	o, err := r.order(born.WorkOrder, turn)
	if err != nil {
		return err
	}
	id := workorder.AttemptID(ev.Subject.ID())
	if r.attempts[id] != nil {
		return nil
	}
	r.out.Attempts++
	a := &attemptLife{carried: carried{what: string(id), state: o.state.Clone()}, id: id, order: o}
	o.open = append(o.open, a)
	r.attempts[id], r.reservations[born.Reservation] = a, id
	return nil
}

// route has the states that an event is about wait for it.
func (r *replay) route(ev lifecycle.Event, turn uint64) error {
	if ev.Subject.Machine() == kernel.WorkOrderMachine {
		o, err := r.order(workorder.ID(ev.Subject.ID()), turn)
		if err != nil {
			return err
		}
		r.wait(&o.carried, ev)
		for _, a := range o.open {
			r.wait(&a.carried, ev)
		}
		return nil
	}
	if ev.Subject.Machine() == kernel.AccountMachine {
		r.account(ev, turn)
		return nil
	}
	a, err := r.find(r.attemptOf(ev), turn)
	if err != nil || a == nil {
		return err
	}
	r.wait(&a.carried, ev)
	return nil
}

// account takes an event of an account: what draws on it had room, and what comes back was
// drawn.
func (r *replay) account(ev lifecycle.Event, turn uint64) {
	name := ev.Subject.ID()
	at, known := r.accounts[name]
	if !known {
		at = &kernel.Account{Name: name}
		r.accounts[name] = at
	}
	if at == nil {
		return
	}
	next, err := r.kernel.ReduceAccount(*at, ev)
	if err != nil {
		r.accounts[name] = nil
		r.refuse(string(ev.Subject), &projection.RefusedError{Sequence: turn, Event: ev, Err: err})
		return
	}
	*at = next
}

// attemptOf is the attempt that an event is about; empty for an event of another machine.
func (r *replay) attemptOf(ev lifecycle.Event) workorder.AttemptID {
	switch ev.Subject.Machine() {
	case kernel.AttemptMachine, kernel.ExecutionMachine, kernel.EnvironmentMachine:
		return workorder.AttemptID(ev.Subject.ID())
	case kernel.ReservationMachine, kernel.BudgetMachine:
		return r.reservations[workorder.ReservationID(ev.Subject.ID())]
	case kernel.OperationMachine:
		if key := operation.Key(ev.Subject.ID()); key.Namespace() == ledger.Namespace {
			return workorder.AttemptID(key.Scope())
		}
	case kernel.OutboxMachine:
		attempt, _, _ := strings.Cut(ev.Subject.ID(), "/")
		return workorder.AttemptID(attempt)
	}
	return ""
}

func (r *replay) wait(c *carried, ev lifecycle.Event) {
	if len(c.pending) == 0 {
		r.touched = append(r.touched, c)
	}
	c.pending = append(c.pending, ev)
}

// order returns a work order as it was before a turn, from the journal where it was
// forgotten.
func (r *replay) order(id workorder.ID, turn uint64) (*orderLife, error) {
	if o := r.orders[id]; o != nil {
		return o, nil
	}
	o := &orderLife{carried: carried{what: string(id)}}
	s, err := ledger.LoadOrderBefore(r.ctx, r.journal, r.kernel, id, turn)
	if err = r.loaded(&o.carried, s, err); err != nil {
		return nil, err
	}
	r.orders[id] = o
	return o, nil
}

// find returns an attempt, from the journal where it was forgotten; nil where there is none.
func (r *replay) find(id workorder.AttemptID, turn uint64) (*attemptLife, error) {
	if a := r.attempts[id]; a != nil || id == "" {
		return a, nil
	}
	s, err := ledger.LoadBefore(r.ctx, r.journal, r.kernel, id, turn)
	if reason.Is(err, reason.IDUnknown) {
		return nil, nil // No attempt: the index has what there is to say of the event.
	}
	a := &attemptLife{carried: carried{what: string(id)}, id: id, again: true}
	if err = r.loaded(&a.carried, s, err); err != nil {
		return nil, err
	}
	if a.order, err = r.order(s.WorkOrder, turn); err != nil {
		return nil, err
	}
	a.order.open = append(a.order.open, a)
	r.attempts[id] = a
	return a, nil
}

// loaded takes what reading a state anew came to. What the kernel refuses was told when it
// was first refused; another error means that the journal cannot be read.
func (r *replay) loaded(c *carried, s kernel.State, err error) error {
	if _, refusal := reason.As(err); err != nil && !refusal {
		return err
	}
	if reason.Is(err, reason.JournalCorrupt) || reason.Is(err, reason.JournalIO) {
		return err
	}
	c.state, c.refused = s.Clone(), err != nil && !reason.Is(err, reason.IDUnknown)
	return nil
}

// carry takes the events that wait through the kernel.
func (r *replay) carry(c *carried, turn uint64) {
	events := c.pending
	c.pending = c.pending[:0]
	if c.refused {
		return
	}
	n, err := r.kernel.Advance(&c.state, events...)
	if err == nil {
		return
	}
	c.refused = true
	r.refuse(c.what, &projection.RefusedError{Sequence: turn, Event: events[n], Err: err})
}

// refuse tells what was refused, and remembers the first.
func (r *replay) refuse(what string, refused *projection.RefusedError) {
	if r.out.Refused == nil {
		r.out.Refused = refused
	}
	if r.watch.Refused != nil {
		r.watch.Refused(what, refused)
	}
}

// forgetAttempt lets go of an attempt of which nothing is left to do.
func (r *replay) forgetAttempt(id workorder.AttemptID) {
	a := r.attempts[id]
	if a == nil || a.refused || !r.kernel.Finished(a.state) {
		return
	}
	r.tell(a)
	delete(r.attempts, id)
	a.order.open = slices.DeleteFunc(a.order.open, func(o *attemptLife) bool { return o == a })
	r.forgetOrder(a.state.WorkOrder)
}

// forgetOrder lets go of a work order that takes no further attempt.
func (r *replay) forgetOrder(id workorder.ID) {
	if o := r.orders[id]; o != nil && len(o.open) == 0 && !o.refused && r.kernel.OrderClosed(o.state) {
		delete(r.orders, id)
	}
}

func (r *replay) tell(a *attemptLife) {
	if !a.refused && r.watch.Attempt != nil {
		r.watch.Attempt(a.state, a.again)
	}
}
