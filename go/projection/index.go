// Package projection builds views of the journal. Each can be dropped and built again:
// nothing in it is canonical, and nothing decides on it but what to look at next.
package projection

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
)

// Index is where every work order and attempt of a journal stands, at one sequence.
type Index struct {
	// Sequence is the last batch that the index covers, Chain the chain after it.
	Sequence uint64           `json:"sequence"`
	Chain    canonical.Digest `json:"chain,omitempty"`
	Orders   []Order          `json:"work_orders"`
	// Pending are the deliveries of commands that were received and not decided, in the
	// order in which they came.
	Pending  []string  `json:"pending_commands"`
	Attempts []Attempt `json:"attempts"`
}

// Order is one row of the index: a work order.
type Order struct {
	ID    workorder.ID `json:"id"`
	Title string       `json:"title"`
	Mode  string       `json:"mode"`
	Tool  string       `json:"tool"`
	// State is where it stands; Blocked says why it waits, empty if it does not.
	State   lifecycle.State `json:"state"`
	Blocked string          `json:"blocked"`
	// Decision is the digest of the policy decision that blocked it, empty for none.
	Decision canonical.Digest `json:"decision,omitempty"`
	// DependsOn are the work orders that must be applied first; Dependency is why it waits
	// for them, or failed by them, nil if neither.
	DependsOn  []workorder.ID     `json:"depends_on"`
	Dependency *kernel.Dependency `json:"dependency"`
	// Budget is why it waits for a budget, or is at its end for want of one, nil if neither.
	Budget *kernel.BudgetBlock `json:"budget"`
	// Attempts counts the attempts that were reserved for it, Last is the newest of them.
	Attempts int                 `json:"attempts"`
	Last     workorder.AttemptID `json:"last_attempt,omitempty"`
	// Failure says why it ended before an attempt could be prepared, nil if it did not.
	Failure *kernel.Failure `json:"failure"`
	// Retry is what it waits for before its next attempt, nil if it does not.
	Retry *kernel.RetryWait `json:"retry"`
	// Raised is how a person approved it for its mode, nil if nobody did.
	Raised *kernel.ModeRaised `json:"mode_raised"`
	// Doubted says that turns were left out since it was submitted, when the journal was
	// recovered, and nobody has said yet that it may be attempted all the same.
	Doubted bool `json:"doubted"`
	// Submitted and Changed are recorded clock readings in milliseconds since 1970 UTC.
	Submitted int64 `json:"submitted_unix_ms"`
	Changed   int64 `json:"changed_unix_ms"`

	// trusted is the turn in which it was submitted or, later, resumed.
	trusted uint64
}

// Attempt is one row of the index: an attempt, with its work order.
type Attempt struct {
	ID        workorder.AttemptID `json:"id"`
	WorkOrder workorder.ID        `json:"work_order"`
	Title     string              `json:"title"`
	Mode      string              `json:"mode"`
	Tool      string              `json:"tool"`
	// The states of the machines; empty where nothing has happened yet.
	Order       lifecycle.State `json:"work_order_state"`
	State       lifecycle.State `json:"state"`
	Execution   lifecycle.State `json:"execution"`
	Environment lifecycle.State `json:"environment"`
	// Result is nil until the attempt came to something.
	Result *workorder.Result `json:"result"`
	// Blocked says why the work order waits, empty if it does not.
	Blocked string `json:"blocked"`
	// Begun and Changed are recorded clock readings in milliseconds since 1970 UTC.
	Begun   int64 `json:"begun_unix_ms"`
	Changed int64 `json:"changed_unix_ms"`
	// Open counts operations without an answer, those of the outbox left out.
	Open int `json:"open_operations"`
	// Unsent counts accepted proposals that have not come to an end.
	Unsent int `json:"unsent_proposals"`
	// Given counts accepted proposals that came to an end without leaving, other than by a
	// person who withdrew them.
	Given int `json:"given_up_proposals"`
	// Retention is what was kept of its environment, nil where nothing was.
	Retention *Retention `json:"retention"`

	// The versions of the machines that say what State and Environment mean.
	machine, environmentMachine uint64
}

// Retention is what was kept of an environment that is gone.
type Retention struct {
	Kept protocol.Retention `json:"kept"`
	// Ended says that it is removed, its time being over.
	Ended bool `json:"ended"`
}

// projector is the version of the transitions whose meaning an index holds.
const projector = 1

// Build reads the whole journal, page by page, and returns its index.
func Build(ctx context.Context, j journal.Reader, registry *lifecycle.Registry) (*Index, error) {
	b := NewBuilder(registry)
	if err := Read(ctx, j, 0, b.Add); err != nil {
		return nil, err
	}
	return b.Index(), nil
}

// Terminal reports whether nothing of the attempt is left to do: it came to a result,
// nothing of its environment is left, and no operation is open.
func (a Attempt) Terminal(registry *lifecycle.Registry) bool {
	attempts := registry.Machine(kernel.AttemptMachine, a.machine)
	if a.Open > 0 || attempts == nil || !attempts.Terminal(a.State) {
		return false
	}
	environments := registry.Machine(kernel.EnvironmentMachine, a.environmentMachine)
	return attempts.Obligation(a.State) == lifecycle.CleanupNone || environments == nil ||
		environments.Obligation(a.Environment) == lifecycle.CleanupNone
}

// Find returns the attempt whose id begins with prefix, or the newest one of the work order
// whose id does, and every candidate when it is not exactly one.
func (x *Index) Find(prefix string) (*Attempt, []Attempt) {
	var found []Attempt
	for _, a := range x.Attempts {
		if strings.HasPrefix(string(a.ID), prefix) || strings.HasPrefix(string(a.WorkOrder), prefix) {
			found = append(found, a)
		}
	}
	if n := len(found); n == 1 || n > 1 && strings.HasPrefix(prefix, workorder.IDPrefix) && one(found) {
		return &found[n-1], found
	}
	return nil, found
}

// FindOrder returns the work order whose id begins with prefix, and every candidate when it
// is not exactly one.
func (x *Index) FindOrder(prefix string) (*Order, []Order) {
	var found []Order
	for _, o := range x.Orders {
		if strings.HasPrefix(string(o.ID), prefix) {
			found = append(found, o)
		}
	}
	if len(found) == 1 {
		return &found[0], found
	}
	return nil, found
}

// Order returns the row of a work order, or nil.
func (x *Index) Order(id workorder.ID) *Order {
	i, found := slices.BinarySearchFunc(x.Orders, id, func(o Order, id workorder.ID) int { return strings.Compare(string(o.ID), string(id)) })
	if !found {
		return nil
	}
	return &x.Orders[i]
}

// Look returns what another work order can know of one; false for one that is not there.
func (x *Index) Look(id workorder.ID) (kernel.Known, bool) {
	o := x.Order(id)
	if o == nil {
		return kernel.Known{}, false
	}
	return kernel.Known{State: o.State, Mode: capability.Mode(o.Mode), DependsOn: o.DependsOn}, true
}

// Of returns the attempts at a work order, in the order in which they were reserved.
func (x *Index) Of(id workorder.ID) []Attempt {
	var of []Attempt
	for _, a := range x.Attempts {
		if a.WorkOrder == id {
			of = append(of, a)
		}
	}
	return of
}

// Attempt returns the row of an attempt, or nil.
func (x *Index) Attempt(id workorder.AttemptID) *Attempt {
	for i := range x.Attempts {
		if x.Attempts[i].ID == id {
			return &x.Attempts[i]
		}
	}
	return nil
}

// one reports whether all attempts are of one work order.
func one(attempts []Attempt) bool {
	return !slices.ContainsFunc(attempts, func(a Attempt) bool { return a.WorkOrder != attempts[0].WorkOrder })
}

// Builder builds an index from the turns of a journal, in their order.
type Builder struct {
	registry  *lifecycle.Registry
	index     Index
	standings map[lifecycle.Subject]lifecycle.State
	orders    map[workorder.ID]*Order
	attempts  map[workorder.AttemptID]*Attempt
	// recovered is the turn of the newest recovery that left turns out, 0 for none.
	recovered uint64
}

// NewBuilder returns a builder of the index of an empty journal.
func NewBuilder(registry *lifecycle.Registry) *Builder {
	return &Builder{
		registry: registry, index: Index{Pending: []string{}}, standings: map[lifecycle.Subject]lifecycle.State{},
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

// Add takes the next turn. After an error, a *RefusedError, the builder must be thrown away.
func (b *Builder) Add(e journal.Entry) error {
	b.index.Sequence, b.index.Chain = e.Sequence, e.Chain
	for _, ev := range e.Events {
		before := b.standings[ev.Subject]
		t, err := b.registry.Apply(before, ev, nil)
		if err == nil {
			err = t.Projected(projector)
		}
		if err == nil {
			b.standings[ev.Subject] = t.To
			if err = b.event(ev, before, t.To, e.At.UnixMilli); err != nil {
				err = fmt.Errorf("%s of %s: %w", ev.Family, ev.Subject, err)
			}
		}
		if err != nil {
			return &RefusedError{Sequence: e.Sequence, Event: ev, Err: err}
		}
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
			a.Retention.Ended = true
		}
	case kernel.OperationMachine:
		parts := strings.SplitN(id, "/", 3)
		if len(parts) < 3 {
			return nil
		}
		a := b.row(workorder.AttemptID(parts[1]), at)
		if !operation.Key(id).Kind().OfOutbox() {
			a.Open += open(now) - open(before)
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

// open is 1 for the state of an operation that nobody has answered yet. One that is
// unknown was asked about, and waits for nobody once its attempt is closed.
func open(s lifecycle.State) int {
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
		if now == "ready" {
			o.Blocked, o.Dependency, o.Budget = "", nil, nil
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
	return canonical.Decode(e.Body, a.Result)
}

// Index returns the index of what was added. The builder must not be used afterwards.
func (b *Builder) Index() *Index {
	b.index.Attempts = make([]Attempt, 0, len(b.attempts))
	for _, a := range b.attempts {
		if o := b.orders[a.WorkOrder]; o != nil {
			a.Title, a.Mode, a.Tool, a.Order, a.Blocked = o.Title, o.Mode, o.Tool, o.State, o.Blocked
		}
		b.index.Attempts = append(b.index.Attempts, *a)
	}
	b.index.Orders = make([]Order, 0, len(b.orders))
	for _, o := range b.orders {
		o.Doubted = o.trusted < b.recovered && !b.registry.Latest(kernel.WorkOrderMachine).Terminal(o.State)
		b.index.Orders = append(b.index.Orders, *o)
	}
	slices.SortFunc(b.index.Orders, func(a, c Order) int { return strings.Compare(string(a.ID), string(c.ID)) })
	slices.SortFunc(b.index.Attempts, func(a, c Attempt) int { return strings.Compare(string(a.ID), string(c.ID)) })
	return &b.index
}
