// Package way carries work orders the real way, for benchmarks and for tests that need all
// of it: real journal, policies, adapter and worker, with a clock on every step and commit.
package way

import (
	"context"
	"fmt"
	"time"

	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/go/workorder"
)

// Way is a host over one state folder. Carry may be called by several goroutines.
type Way struct {
	*host.Host
	timed *timedStore
}

// Open opens the state folder, which is made if there is none, with the release set in
// dist. Preconditions: those of host.Open.
func Open(ctx context.Context, dist, state string) (*Way, error) {
	return OpenThrough(ctx, dist, state, func(s journal.Store) journal.Store { return s })
}

// OpenThrough is Open with a store between the host and its journal.
func OpenThrough(ctx context.Context, dist, state string, between func(journal.Store) journal.Store) (*Way, error) {
	return OpenWith(ctx, host.Options{State: state, Dist: dist, Through: between})
}

// OpenWith is Open with whatever a host can be given.
func OpenWith(ctx context.Context, o host.Options) (*Way, error) {
	w := new(Way)
	between := o.Through
	o.Activity, o.Through = "way", func(s journal.Store) journal.Store {
		if between != nil {
			s = between(s)
		}
		w.timed = newTimedStore(s)
		return w.timed
	}
	var err error
	w.Host, err = host.Open(ctx, o)
	return w, err
}

// Carry takes a work order all the way, from submission to the destruction of its
// environment. It tells of an attempt that did not succeed as an error.
func (w *Way) Carry(ctx context.Context, order []byte, origin string) (Account, error) {
	registry, err := schema.Open()
	if err != nil {
		return Account{}, err
	}
	begun := time.Now()
	doc, err := registry.Load("order.yaml", order, workorder.Kind)
	if err != nil {
		return Account{}, err
	}
	accepted, err := w.Accept(ingress.Run, doc.Canonical)
	if err != nil {
		return Account{}, err
	}
	admitted, err := w.Admission.Admit(ctx, doc, origin, accepted, func(s kernel.Submit) []kernel.Command { return []kernel.Command{s} })
	if err != nil {
		return Account{}, err
	}
	a := newAccount(admitted, time.Since(begun))
	a.State, err = w.CarryOut(ctx, admitted, accepted, host.Watch{Step: a.observe})
	a.Total, a.Commits = time.Since(begun), w.timed.take(string(admitted.State.Attempt))
	w.Ledger.Forget(admitted.State.Attempt)
	if err == nil && (a.State.Result == nil || a.State.Result.Conclusion != workorder.Succeeded) {
		err = fmt.Errorf("attempt %s came to %+v", a.State.Attempt, a.State.Result)
	}
	return *a, err
}
