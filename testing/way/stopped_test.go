package way_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/way"
)

// stopping is a journal after whose reservation somebody is about to ask to stop.
type stopping struct {
	journal.Store
	stop func()
}

// interrupted is a context that ends as soon as somebody begins to wait for its end, and not
// before it is due.
type interrupted struct {
	context.Context
	due  atomic.Bool
	once sync.Once
	done chan struct{}
}

func (c *interrupted) Done() <-chan struct{} {
	if c.due.Load() {
		c.once.Do(func() { close(c.done) })
	}
	return c.done
}

func (c *interrupted) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
	}
}

func (s stopping) Append(ctx context.Context, batches ...journal.Batch) ([]journal.Result, error) {
	for _, b := range batches {
		if slices.ContainsFunc(b.Events, func(e lifecycle.Event) bool { return e.Family == "attempt.reserved" }) {
			s.stop()
		}
	}
	return s.Store.Append(ctx, batches...)
}

// Policies that are not let answer because somebody asked to stop were not late: the attempt is
// cancelled, and nobody is told of a time-out (L4).
func TestStoppedWhilePoliciesDecide(t *testing.T) {
	ctx := &interrupted{Context: t.Context(), done: make(chan struct{})}
	w, err := way.OpenThrough(t.Context(), dist(t), t.TempDir(), func(s journal.Store) journal.Store {
		return stopping{s, func() { ctx.due.Store(true) }}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	if _, err := w.Carry(ctx, way.EmptyOrder(), t.TempDir()); !reason.Is(err, reason.AttemptCancelled) || reason.Is(err, reason.PolicyTimeout) {
		t.Errorf("it came to %v", err)
	}
	x, err := projection.Build(t.Context(), w.Journal, w.Ledger.Kernel().Transitions())
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Attempts) != 1 || x.Attempts[0].Result == nil || x.Attempts[0].Result.Conclusion != workorder.Cancelled {
		t.Errorf("the attempt stands at %+v", x.Attempts)
	}
}
