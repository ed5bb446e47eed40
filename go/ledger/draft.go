package ledger

import (
	"context"
	"slices"

	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/workorder"
)

// Draft is a turn in the making, decided on what the ledger knows of its attempt. Whoever
// takes the turn sees where it leads before it adds what follows, and nothing is decided
// twice. Nothing of it is recorded before it is committed. It belongs to one goroutine.
type Draft struct {
	*kernel.Draft
	from     *kernel.State
	commands []kernel.Command
}

// Draft begins a turn under a fence. The error is a *reason.Refusal for an attempt that the
// journal does not know, and for a fence that is stale: whoever has it is to act no more.
func (l *Ledger) Draft(ctx context.Context, f workorder.Fence) (*Draft, error) {
	a := l.attempt(f.Attempt)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := l.load(ctx, f.Attempt, a); err != nil {
		return nil, err
	}
	if f.Generation != a.state.Generation {
		return nil, stale(f, a.state.Generation)
	}
	return &Draft{Draft: l.kernel.Draft(*a.state), from: a.state}, nil
}

// Add decides further commands; see kernel.Draft.
func (d *Draft) Add(commands ...kernel.Command) error {
	d.commands = append(d.commands, commands...)
	return d.Draft.Add(commands...)
}

// decide decides the turn on what is known of its attempt now. What was drafted on the very
// same state is decided already; on another, all of it is decided again.
func (t Turn) decide(k kernel.Kernel, now *kernel.State) (kernel.Decision, error) {
	if t.Draft == nil || t.Draft.from != now {
		return k.Decide(*now, t.commands()...)
	}
	if err := t.Draft.Draft.Add(t.Commands...); err != nil {
		return kernel.Decision{}, err
	}
	t.Draft.from = nil // It is used up: a second commit of it decides for itself.
	return t.Draft.Decision()
}

// commands are all commands of the turn.
func (t Turn) commands() []kernel.Command {
	if t.Draft == nil {
		return t.Commands
	}
	return slices.Concat(t.Draft.commands, t.Commands)
}
