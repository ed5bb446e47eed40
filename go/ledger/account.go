package ledger

import (
	"context"
	"fmt"
	"sync"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// account is what the ledger remembers of an account. Turns that move it are taken one after
// the other: each expects the version that the one before left.
type account struct {
	mu     sync.Mutex
	state  kernel.Account
	loaded bool
}

// maxRaces bounds how often a turn is decided again because another writer moved its
// account first. Each time somebody else was served.
const maxRaces = 10_000

// Account returns what the journal says about an account; one without a ceiling stands at
// nothing.
func (l *Ledger) Account(ctx context.Context, name string) (kernel.Account, error) {
	a := l.account(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	err := l.loadAccount(ctx, a)
	return a.state, err
}

// SetCeiling records what the deployment says of an account, if that is not what is
// recorded: its ceiling and, if closed says why, that it reserves nothing any more.
func (l *Ledger) SetCeiling(ctx context.Context, name string, ceiling workorder.Ceiling, closed string, t Turn) (kernel.Account, error) {
	a := l.account(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	for range maxRaces {
		if err := l.loadAccount(ctx, a); err != nil {
			return kernel.Account{}, err
		}
		at := a.state.At.Version
		t.Commands = []kernel.Command{kernel.SetCeiling{Account: a.state, BudgetCeiling: kernel.BudgetCeiling{Ceiling: ceiling}}}
		if closed != "" {
			t.Commands = append(t.Commands, kernel.CloseAccount{Account: a.state, CancelRequested: kernel.CancelRequested{Reason: closed}})
		}
		opened, err := l.append(ctx, accountScope+name, at, &attempt{state: new(kernel.State)}, t)
		if err == nil && opened.Sequence == 0 {
			return a.state, nil // Nothing new.
		}
		a.loaded = false
		switch {
		case err == nil:
			err = l.loadAccount(ctx, a)
			return a.state, err
		case !reason.Is(err, reason.JournalConflict):
			return kernel.Account{}, err
		}
	}
	return kernel.Account{}, fmt.Errorf("the account %s moved %d times meanwhile", name, maxRaces)
}

// accountScope begins the scope of the turns of an account.
const accountScope = "account-"

// move appends a turn together with what it moves of its account, all or nothing. A turn
// that lost the race for the account is decided again on what the winner left: it is
// refused only where there is no room then. Preconditions: a.mu is held.
func (l *Ledger) move(ctx context.Context, scope string, count uint64, a *attempt, t Turn, d kernel.Decision, now journal.Observation) (Opened, error) {
	from := l.account(d.Moves[0].Account)
	from.mu.Lock()
	defer from.mu.Unlock()
	for range maxRaces {
		if err := l.loadAccount(ctx, from); err != nil {
			return Opened{}, err
		}
		moved, next, err := l.kernel.Moved(d, from.state)
		if err != nil {
			return Opened{}, err
		}
		opened, replayed, err := l.record(ctx, scope, count, a, t, moved, now)
		if err == nil {
			// A turn that is answered by its first time moved the account then.
			from.state, from.loaded = next, !replayed
			return opened, nil
		}
		from.loaded = false
		if !reason.Is(err, reason.JournalConflict) {
			return Opened{}, err
		}
		now, lookErr := l.journal.Version(ctx, from.state.Subject())
		if lookErr != nil || now == from.state.At.Version {
			return Opened{}, err // It was not the account that moved.
		}
	}
	return Opened{}, fmt.Errorf("the account %s moved %d times meanwhile", from.state.Name, maxRaces)
}

func (l *Ledger) account(name string) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[name]
	if a == nil {
		a = &account{state: kernel.Account{Name: name}}
		l.accounts[name] = a
	}
	return a
}

// loadAccount reads an account unless it is remembered: once a process, as long as nobody
// else writes. Preconditions: a.mu is held.
func (l *Ledger) loadAccount(ctx context.Context, a *account) error {
	if a.loaded {
		return nil
	}
	s, err := LoadAccount(ctx, l.journal, l.kernel, a.state.Name)
	if err != nil {
		return err
	}
	a.state, a.loaded = s, true
	return nil
}

// LoadAccount rebuilds the state of an account from the journal alone.
func LoadAccount(ctx context.Context, j journal.Reader, k kernel.Kernel, name string) (kernel.Account, error) {
	a := kernel.Account{Name: name}
	events, err := j.Events(ctx, lifecycle.Of(kernel.AccountMachine, name))
	for _, e := range events {
		if a, err = k.ReduceAccount(a, e.Event); err != nil {
			return kernel.Account{}, fmt.Errorf("replay of the account %s at turn %d: %w", name, e.Sequence, err)
		}
	}
	return a, err
}
