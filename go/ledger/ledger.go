// Package ledger is the only writer of the journal. It commits turns, hands out
// permits for what a turn made durable, and runs the effects itself, so that every
// point at which a crash matters lies in this package.
package ledger

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/killpoint"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Effect is what an operation does to the world outside the journal.
type Effect interface {
	// Perform does it, under a permit that is spent on this call. Doubt is Unknown,
	// never an error, and neither is a context that ends.
	Perform(ctx context.Context, p Permit) operation.Outcome
	// Resolve says, after a crash, what became of an intent. It asks, and performs
	// nothing.
	Resolve(ctx context.Context, in operation.Intent) operation.Outcome
}

// Turn is what one durable commit takes together, in order: what became known, what
// follows from it, and which operations begin.
type Turn struct {
	// Fence is the right the turn is taken under; the zero fence is that of a turn before
	// any attempt exists.
	Fence workorder.Fence
	// Draft is what was decided of the turn already, nil for nothing; Commands follow it.
	Draft    *Draft
	Commands []kernel.Command
	// Blobs are the small artifacts that the turn's documents name by digest.
	Blobs []journal.Blob
	// Actor is the authenticated principal, Cause the identity of the delivery or
	// turn that led here.
	Actor, Cause string
}

// Opened is what a committed turn opens.
type Opened struct {
	// Permits stand in the order of the turn's Begin commands, without those that
	// were replayed.
	Permits []Permit
	// Replayed are the records of operations that had been performed before.
	Replayed []operation.Record
	// State is the attempt's state after the turn.
	State kernel.State
	// Sequence is the turn's place in the journal, 0 for a turn without events.
	Sequence uint64
}

// Ledger commits turns and runs effects. Its methods are safe for concurrent use;
// the turns of one attempt are taken one after the other.
type Ledger struct {
	journal journal.Store
	kernel  kernel.Kernel
	clock   Clock

	mu sync.Mutex
	// attempts holds the state of every attempt that this process has touched.
	attempts map[workorder.AttemptID]*attempt
	// accounts holds every account that this process has touched.
	accounts map[string]*account
}

type attempt struct {
	mu sync.Mutex
	// state is nil where the journal has to be asked. What it points to never changes.
	state *kernel.State
	// closing is held by whoever closes the attempt in the place of its supervisor.
	closing sync.Mutex
}

// Clock is where time and chance come from. Nothing else in the ledger asks for either.
type Clock interface {
	// Now is a reading that may be recorded.
	Now() journal.Observation
	// Micros is a monotonic reading in microseconds, good for differences only.
	Micros() int64
	// Lot is a number drawn by lot, for delays that many must not share.
	Lot() uint32
}

// New returns a ledger over an open journal.
func New(j journal.Store, k kernel.Kernel, clock Clock) *Ledger {
	return &Ledger{journal: j, kernel: k, clock: clock, attempts: map[workorder.AttemptID]*attempt{}, accounts: map[string]*account{}}
}

// Kernel is what the ledger decides with.
func (l *Ledger) Kernel() kernel.Kernel { return l.kernel }

// Retry is what another attempt follows from, as of now.
func (l *Ledger) Retry() kernel.Retry { return kernel.Retry{At: l.clock.Now(), Lot: l.clock.Lot()} }

// Now is a reading of the ledger's clock.
func (l *Ledger) Now() journal.Observation { return l.clock.Now() }

// Reserve commits the first turn of an attempt: its reservation, and for the first attempt
// the submission of its work order. order is the state of the work order, as Order
// returned it, and the zero state where there is none yet.
func (l *Ledger) Reserve(ctx context.Context, order kernel.State, id workorder.AttemptID, t Turn) (Opened, error) {
	a := l.attempt(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state = &order
	opened, err := l.commit(ctx, string(id), a, t)
	if err != nil {
		l.Forget(id) // There may be no such attempt.
	}
	return opened, err
}

// CommitOrder commits a turn on a work order, of which no attempt is under way. order is
// its state, as Order returned it, and the zero state for a submission. A conflict means
// that something happened to the work order meanwhile: look again.
func (l *Ledger) CommitOrder(ctx context.Context, order kernel.State, id workorder.ID, t Turn) (Opened, error) {
	return l.commit(ctx, string(id), &attempt{state: &order}, t)
}

// CommitDelivery commits a turn on a command alone.
func (l *Ledger) CommitDelivery(ctx context.Context, d kernel.Delivery, t Turn) (Opened, error) {
	return l.append(ctx, d.ID, d.At.Version, &attempt{state: new(kernel.State)}, t)
}

// CommitClock commits a turn on a clock alone.
func (l *Ledger) CommitClock(ctx context.Context, c kernel.Clock, t Turn) error {
	_, err := l.append(ctx, ClockScope+c.Domain, c.At.Version, &attempt{state: new(kernel.State)}, t)
	return err
}

// Observe records a reading of a clock, if it says anything new, and returns the clock as it
// then stands. seen is a reading of it that is recorded elsewhere; t says who looks.
func (l *Ledger) Observe(ctx context.Context, c kernel.Clock, seen journal.Observation, t Turn) (kernel.Clock, error) {
	t.Commands = []kernel.Command{kernel.ObserveClock{Clock: c, Now: l.clock.Now(), Seen: seen}}
	if err := l.CommitClock(ctx, c, t); err != nil && !reason.Is(err, reason.JournalConflict) {
		return kernel.Clock{}, err
	}
	return l.Clock(ctx, c.Domain)
}

// Alone keeps everybody else who would close an attempt waiting until it is called again.
func (l *Ledger) Alone(id workorder.AttemptID) (release func()) {
	a := l.attempt(id)
	a.closing.Lock()
	return a.closing.Unlock
}

// ClockScope begins the scope of the turns of a clock.
const ClockScope = "clock-"

// InDoubtError says that it is not known whether a turn became durable: the journal
// failed under it. The journal must be reopened before anything is decided.
type InDoubtError struct {
	Err error
}

// Error says so.
func (e *InDoubtError) Error() string {
	return "whether the turn was recorded is not known: " + e.Err.Error()
}

// Unwrap returns the journal's own error.
func (e *InDoubtError) Unwrap() error { return e.Err }

// Commit commits a turn. When it returns without an error, all of the turn is
// durable. An *InDoubtError means that nothing is known; with any other error nothing
// of the turn is durable.
func (l *Ledger) Commit(ctx context.Context, t Turn) (Opened, error) {
	a := l.attempt(t.Fence.Attempt)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := l.load(ctx, t.Fence.Attempt, a); err != nil {
		return Opened{}, err
	}
	if t.Fence.Generation != a.state.Generation && !onlyFacts(t.commands()) {
		return Opened{}, stale(t.Fence, a.state.Generation)
	}
	return l.commit(ctx, string(t.Fence.Attempt), a, t)
}

// onlyFacts reports whether a turn begins and changes nothing: facts are taken
// whatever the fence.
func onlyFacts(commands []kernel.Command) bool {
	for _, c := range commands {
		if _, fact := c.(kernel.Settle); !fact {
			return false
		}
	}
	return true
}

func (l *Ledger) commit(ctx context.Context, scope string, a *attempt, t Turn) (Opened, error) {
	return l.append(ctx, scope, a.state.Events(), a, t)
}

// append decides and appends, all of it at one reading of the clock. count is how many events
// scope has. Preconditions: a.mu is held, a.state is loaded.
func (l *Ledger) append(ctx context.Context, scope string, count uint64, a *attempt, t Turn) (Opened, error) {
	now := l.clock.Now()
	if commands := t.commands(); kernel.Timed(commands) {
		clock, err := l.journal.Version(ctx, kernel.Clock{Domain: now.Domain}.Subject())
		if err != nil {
			return Opened{}, err
		}
		// What was drafted was decided at an earlier reading.
		t.Draft, t.Commands = nil, kernel.At(now, clock, commands)
	}
	d, err := t.decide(l.kernel, a.state)
	if err != nil {
		return Opened{}, err
	}
	if len(d.Moves) > 0 {
		return l.move(ctx, scope, count, a, t, d, now)
	}
	opened, _, err := l.record(ctx, scope, count, a, t, d, now)
	return opened, err
}

// record appends what was decided. It reports whether that had been appended before.
func (l *Ledger) record(ctx context.Context, scope string, count uint64, a *attempt, t Turn, d kernel.Decision, now journal.Observation) (opened Opened, replayed bool, err error) {
	opened = Opened{State: d.State, Replayed: d.Replayed}
	if len(d.Events) == 0 {
		return opened, false, nil
	}
	batch, err := l.batch(scope, count, d, t, now)
	if err != nil {
		return Opened{}, false, err
	}
	killpoint.Turn("commit.before", d.Events, batch.Identity)
	results, err := l.journal.Append(ctx, batch)
	if err != nil {
		a.state = nil
		return Opened{}, false, &InDoubtError{err}
	}
	if err := results[0].Err; err != nil {
		// Another writer was first: what this process remembers is out of date.
		a.state = nil
		return Opened{}, false, err
	}
	killpoint.Turn("commit.after", d.Events, batch.Identity)
	state := d.State
	a.state = &state
	opened.Sequence = results[0].Sequence
	if results[0].Replayed {
		// The first time may have run the effects already: resolve, never repeat.
		return opened, true, nil
	}
	for _, in := range d.Begun {
		opened.Permits = append(opened.Permits, Permit{&minted{intent: in, fence: d.State.Fence(), bundle: d.State.Bundle.Digest()}})
	}
	return opened, false, nil
}

// batch encodes a decision. The identity counts the events that scope, an attempt or a work
// order, had before, so that a turn whose acknowledgement was lost is recognised when it
// is committed again.
func (l *Ledger) batch(scope string, count uint64, d kernel.Decision, t Turn, now journal.Observation) (journal.Batch, error) {
	var expect []journal.Expectation
	seen := map[lifecycle.Subject]bool{}
	for _, e := range d.Events {
		if !seen[e.Subject] {
			seen[e.Subject] = true
			expect = append(expect, journal.Expectation{Subject: e.Subject, Version: e.Version - 1})
		}
	}
	for _, r := range d.Rests {
		if !seen[r.Subject] {
			seen[r.Subject] = true
			expect = append(expect, journal.Expectation{Subject: r.Subject, Version: r.Version})
		}
	}
	identity, err := operation.NewKey(Namespace, scope, "ledger", "turn", "after-"+strconv.FormatUint(count, 10))
	if err != nil {
		return journal.Batch{}, err
	}
	return journal.Batch{
		Identity: identity, Epoch: l.journal.Epoch(), Actor: t.Actor, Cause: t.Cause, At: now,
		Expect: expect, Events: d.Events, Blobs: t.Blobs,
	}, nil
}

// Namespace is the operation-key namespace of this release.
const Namespace = "writ"

// Run spends the permit on the effect and returns what became known, as the command
// that settles it. Under a fence that was raised since nothing is performed, and that is what
// becomes known. The error is a *reason.Refusal for a permit that permits nothing.
func (l *Ledger) Run(ctx context.Context, p Permit, e Effect) (kernel.Settle, error) {
	if !p.spend() {
		return kernel.Settle{}, reason.New(reason.OperationPermitInvalid, "the permit is empty or already spent",
			string(p.Intent().Key), "this is a fault of the caller: report it")
	}
	if err := l.current(ctx, p); err != nil {
		return settle(p.minted.intent, p.minted.fence, p.minted.bundle, operation.Refused(operation.NotApplied, err))
	}
	begun := l.clock.Micros()
	killpoint.Operation("run.before", p.minted.intent.Key)
	out := e.Perform(ctx, p)
	killpoint.Operation("run.after", p.minted.intent.Key)
	c, err := settle(p.minted.intent, p.minted.fence, p.minted.bundle, out)
	c.ElapsedMicros = l.clock.Micros() - begun
	killpoint.Operation("run.settled", p.minted.intent.Key)
	return c, err
}

// current refuses a permit that was handed out under a fence that was raised since: whoever
// holds it was away, and what it would begin has no owner any more.
func (l *Ledger) current(ctx context.Context, p Permit) error {
	fence := p.minted.fence
	s, err := l.State(ctx, fence.Attempt)
	if err != nil {
		return err
	}
	if s.Generation != fence.Generation {
		return stale(fence, s.Generation)
	}
	return nil
}

// stale refuses a turn under a fence whose generation is not the one of now.
func stale(f workorder.Fence, now uint64) *reason.Refusal {
	return reason.New(reason.KernelStaleFence, fmt.Sprintf("the turn is taken under generation %d, the fence is at generation %d", f.Generation, now),
		string(f.Attempt), "stop: a newer owner has the attempt")
}

// Skip spends a permit without performing anything, for an operation whose
// predecessor in the turn did not succeed.
func (l *Ledger) Skip(p Permit, why string) (kernel.Settle, error) {
	if !p.spend() {
		return kernel.Settle{}, reason.New(reason.OperationPermitInvalid, "the permit is empty or already spent",
			string(p.Intent().Key), "this is a fault of the caller: report it")
	}
	killpoint.Operation("skip", p.minted.intent.Key)
	return settle(p.minted.intent, p.minted.fence, p.minted.bundle,
		operation.Outcome{Knowledge: operation.NotApplied, Code: reason.OperationSkipped, Detail: why})
}

// Resolve finds out what became of an intent of an earlier life, as its effect class says
// (O6). Of what nobody can tell nobody is asked, and it is not done again. What has left and
// is idempotent by its key is done again under that key. All else is asked about by its
// name. The error is a *reason.Refusal for one that would be done again, and is not among
// what the attempt has begun or has its answer.
func (l *Ledger) Resolve(ctx context.Context, s kernel.State, in operation.Intent, e Effect) (kernel.Settle, error) {
	killpoint.Operation("resolve.before", in.Key)
	var out operation.Outcome
	switch {
	case in.Class == operation.NonReconcilable:
		out = operation.Refused(operation.Unknown, reason.New(reason.OperationUnaskable,
			"the answer was lost, and nobody can tell whether the effect took place", "", "find out by other means, and say what you found: docs/recovery.md"))
	case in.Class == operation.ProviderIdempotent && !l.kernel.Classes().Contained(in.Kind):
		if o, ok := s.Operation(in.Key); !ok || o.Intent != in || o.Settled() {
			return kernel.Settle{}, reason.New(reason.OperationPermitInvalid, "no such operation waits for its answer", string(in.Key), "this is a fault of the caller: report it")
		}
		out = e.Perform(ctx, repeated(s, in))
	default:
		out = e.Resolve(ctx, in)
	}
	killpoint.Operation("resolve.after", in.Key)
	return settle(in, s.Fence(), s.Bundle.Digest(), out)
}
