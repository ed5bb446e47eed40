// Package dispatcher says which work is next: it closes what an earlier life left open, and
// attempts what waits to be attempted.
package dispatcher

import (
	"context"
	"fmt"
	"time"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Dispatcher closes open attempts. Preconditions: this process holds the writer lock,
// so that whoever opened them is gone.
type Dispatcher struct {
	Ledger *ledger.Ledger
	// Index says what there is to do, in the journal of the ledger.
	Index     *projection.View
	Providers environment.Providers
	// Admission prepares attempts; a dispatcher that only closes needs none.
	Admission *admission.Admission
	// Desk decides what was received and not decided yet; nil decides nothing.
	Desk *ingress.Desk
	// Revoked is told of each attempt whose lease ran out, once that is recorded; nil for nobody.
	Revoked func(workorder.AttemptID)
	// After is closed, or sent to, once so much time has passed; nil is that of the machine.
	After func(time.Duration) <-chan time.Time
	// Shadow is where what was accepted in the shadow namespace goes.
	Shadow *outbox.Shadow
}

// Closed is one attempt that was found open and what became of it.
type Closed struct {
	Attempt workorder.AttemptID
	State   kernel.State
	// Waits says what the attempt still waits for; empty for one that is closed.
	Waits string
	// Err says why the attempt could not be closed; it stays open.
	Err error
}

// supervisorGone is why an attempt of an earlier life is closed.
const supervisorGone = "its supervisor ended before the attempt was closed"

// Reconcile decides what was received, closes every attempt that is open (fenced, resolved
// by name, and closed with its true outcome), and sends what was accepted and not sent. It
// goes on after an attempt that it cannot close; the error is that of a journal of which
// nothing is known any more.
func (d *Dispatcher) Reconcile(ctx context.Context, accepted ingress.Accepted) ([]Closed, []Sent, error) {
	index, err := d.Index.Index(ctx)
	if err != nil {
		return nil, nil, err
	}
	if d.Desk != nil {
		// Before the attempts: a command that was given while one ran is about that one.
		if _, err := d.Desk.Resume(ctx, index.Pending, false); err != nil {
			return nil, nil, err
		}
	}
	closed, err := d.closeAll(ctx, index, accepted)
	if err != nil {
		return closed, nil, err
	}
	sent, err := d.drain(ctx, index, accepted)
	return closed, sent, err
}

func (d *Dispatcher) closeAll(ctx context.Context, index *projection.Index, accepted ingress.Accepted) ([]Closed, error) {
	var closed []Closed
	for _, a := range index.Attempts {
		if a.Terminal(d.Ledger.Kernel().Transitions()) {
			continue
		}
		c, err := d.close(ctx, a.ID, accepted)
		if doubtful(err) {
			return closed, fmt.Errorf("reconcile %s: %w", a.ID, err)
		}
		c.Attempt, c.Err = a.ID, err
		if a.Doubted && c.Waits == "" && c.State.Retry != nil {
			c.Waits = projection.LeftOut
		}
		closed = append(closed, c)
	}
	return closed, nil
}

// close brings one attempt to its end, turn by turn.
func (d *Dispatcher) close(ctx context.Context, id workorder.AttemptID, accepted ingress.Accepted) (Closed, error) {
	s, err := d.Ledger.State(ctx, id)
	if err == nil && s.Of(kernel.AttemptMachine).State == "reserved" {
		if closed, over, err := d.Expire(ctx, id, accepted); over || err != nil {
			return closed, err
		}
	}
	defer d.Ledger.Alone(id)()
	if s, err = d.Ledger.State(ctx, id); err != nil {
		return Closed{}, err
	}
	if s.Of(kernel.AttemptMachine).State == "reserved" {
		gone := reason.New(reason.AttemptLost, supervisorGone, string(id), "run the work order again: nothing had begun")
		if err := admission.Abandon(ctx, d.Ledger, s, accepted, workorder.Lost, gone); err != nil {
			return Closed{}, err
		}
		s, err = d.Ledger.State(ctx, id)
		return Closed{Attempt: id, State: s}, err
	}
	return d.recover(ctx, s, accepted, func() {}, kernel.Fence{Why: supervisorGone})
}

// recover closes an activated attempt; first is what is recorded before, unless it is closed
// already, and fenced is told once that is durable. Preconditions: the attempt is held alone.
func (d *Dispatcher) recover(ctx context.Context, s kernel.State, accepted ingress.Accepted, fenced func(), first ...kernel.Command) (_ Closed, err error) {
	r := &recovery{dispatcher: d, state: s, accepted: accepted, fenced: fenced}
	if r.provider, err = d.Providers.Find(s.Bundle.Bundle().Environment.Provider.Name); err != nil {
		return Closed{Attempt: s.Attempt, State: s, Waits: err.Error()}, nil
	}
	waits, err := r.run(ctx, first)
	return Closed{Attempt: s.Attempt, State: r.state, Waits: waits}, err
}

// recovery closes one activated attempt.
type recovery struct {
	dispatcher *Dispatcher
	provider   environment.Provider
	state      kernel.State
	accepted   ingress.Accepted
	fenced     func()
}

// maxTurns bounds a recovery: each turn makes progress, so none needs more.
const maxTurns = 64

func (r *recovery) run(ctx context.Context, first []kernel.Command) (waits string, err error) {
	k := r.dispatcher.Ledger.Kernel()
	if !k.Closed(r.state) {
		if err := r.commit(ctx, first...); err != nil {
			return "", err
		}
		r.fenced()
	}
	for range maxTurns {
		plan, err := k.Next(r.state)
		if err != nil {
			return "", err
		}
		switch {
		case plan.Done:
			return "", nil
		case len(plan.Resolve) > 0:
			err = r.resolve(ctx, plan.Resolve)
		case plan.Reconcile:
			err = r.commit(ctx, kernel.Reconciled{Found: environment.Look(ctx, r.provider, r.state), Retry: r.dispatcher.Ledger.Retry()})
		case len(plan.Begin) > 0:
			err = r.remove(ctx, plan.Begin)
		default:
			return plan.Wait, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("no end after %d turns", maxTurns)
}

func (r *recovery) commit(ctx context.Context, commands ...kernel.Command) error {
	_, err := r.turn(ctx, commands...)
	return err
}

func (r *recovery) turn(ctx context.Context, commands ...kernel.Command) (ledger.Opened, error) {
	opened, err := r.dispatcher.Ledger.Commit(ctx, ledger.Turn{
		Fence: r.state.Fence(), Commands: commands, Blobs: []journal.Blob{r.accepted.Blob},
		Actor: r.accepted.Receipt.Principal, Cause: r.accepted.Receipt.ID,
	})
	if err == nil {
		r.state = opened.State
	}
	return opened, err
}

// resolve asks what became of each intent; an answer of unknown stays open only until
// its tries are used up.
func (r *recovery) resolve(ctx context.Context, intents []operation.Intent) error {
	ctx, cancel := environment.ReconciliationContext(ctx, r.state)
	defer cancel()
	var commands []kernel.Command
	for _, in := range intents {
		s, err := r.dispatcher.Ledger.Resolve(ctx, r.state, in, environment.ByName{Provider: r.provider})
		if err != nil {
			return err
		}
		commands = append(commands, s)
	}
	return r.commit(context.WithoutCancel(ctx), commands...)
}

// remove carries out clean-up and destruction by name: no adapter and no environment
// of the earlier life is there to be called.
func (r *recovery) remove(ctx context.Context, intents []operation.Intent) error {
	var commands []kernel.Command
	for _, in := range intents {
		commands = append(commands, kernel.Begin{Intent: in})
	}
	opened, err := r.turn(ctx, commands...)
	if err != nil {
		return err
	}
	commands = nil
	for _, p := range opened.Permits {
		s, err := r.dispatcher.Ledger.Run(ctx, p, environment.ByName{Provider: r.provider})
		if err != nil {
			return err
		}
		commands = append(commands, s)
	}
	return r.commit(ctx, commands...)
}
