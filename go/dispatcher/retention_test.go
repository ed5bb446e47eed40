package dispatcher_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/dispatcher"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/retention"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// later is the fixed clock, so long after.
type later struct {
	fixture.Clock
	by time.Duration
}

func (c later) Now() journal.Observation {
	at := c.Clock.Now()
	at.UnixMilli += c.by.Milliseconds()
	return at
}

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// keeping is a life whose attempt has failed, and whose workspace is kept for so many days.
func (h *host) keeping(t *testing.T, days int64) *life {
	t.Helper()
	l := h.newLifeOf(t, func(b *attemptbundle.Bundle) {
		b.Environment.Retention = attemptbundle.Retention{Keep: true, Days: days}
		b.Outputs.Retention = b.Environment.Retention
	}, "undeclared")
	l.launch()
	<-l.guest
	permits := l.Next(l.Run(l.permits[0], done{protocol.StartResult{Handle: "h"}}), l.Run(l.permits[1], done{protocol.LaunchResult{Ended: protocol.EndedExited}}),
		kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.FreezeMissing, Detail: "no output"}}).Permits
	l.Next(l.Run(permits[0], done{protocol.RemovalResult{Resource: l.State.Resource, Gone: true}}),
		l.Run(permits[1], l.env.Destroy(protocol.RetentionParameters{Keep: true, Days: days})))
	if l.State.Of(kernel.EnvironmentMachine).State != "retained" || !l.isKept() {
		t.Fatalf("the environment is %s, kept is %+v", l.State.Of(kernel.EnvironmentMachine).State, l.State.Retained)
	}
	return l
}

func (l *life) isKept() bool {
	_, err := os.Lstat(filepath.Join(retention.Where(l.kept, l.State.Resource), "files", "surprise.txt"))
	return err == nil
}

// at is a dispatcher whose clock stands so long after the workspace was kept.
func (l *life) at(by time.Duration) *dispatcher.Dispatcher {
	return &dispatcher.Dispatcher{
		Ledger: ledger.New(l.Store, l.Ledger.Kernel(), later{by: by}), Index: projection.NewView(l.Store, l.Ledger.Kernel().Transitions()), Providers: environment.NewProviders(l.provider),
	}
}

// expire has a dispatcher remove what is over, and returns what it says of the one attempt,
// nil for nothing, and how many turns it recorded.
func (l *life) expire(by time.Duration) (*dispatcher.Expired, uint64) {
	l.t.Helper()
	before := l.index()
	accepted, err := ingress.NewGate("uid:0").Accept("uid:0", ingress.Delivery{ID: fixture.Delivery(2), Channel: "cli", Verb: ingress.Tick})
	if err != nil {
		l.t.Fatal(err)
	}
	all, err := l.at(by).ExpireRetentions(l.t.Context(), accepted)
	if err != nil || len(all) > 1 {
		l.t.Fatalf("%+v, %v", all, err)
	}
	turns := l.index().Sequence - before.Sequence
	if len(all) == 0 {
		return nil, turns
	}
	return &all[0], turns
}

func (l *life) index() *projection.Index {
	l.t.Helper()
	x, err := projection.Build(l.t.Context(), l.Store, l.Ledger.Kernel().Transitions())
	if err != nil {
		l.t.Fatal(err)
	}
	return x
}

// ended demands that what was kept is removed, and that the journal says so, once.
func (l *life) ended() {
	l.t.Helper()
	row := l.index().Attempt(fixture.Attempt)
	if row.Retention == nil || !row.Retention.Ended || row.Retention.Kept.Files != 1 || row.Environment != "retained" || row.Open != 0 {
		l.t.Errorf("the index says %+v, %+v", row, row.Retention)
	}
	if _, err := os.Lstat(retention.Where(l.kept, l.State.Resource)); !errors.Is(err, os.ErrNotExist) {
		l.t.Errorf("there still stands something: %v", err)
	}
	events, err := l.Store.Events(l.t.Context(), lifecycle.Of(kernel.EnvironmentMachine, string(fixture.Attempt)))
	if err != nil {
		l.t.Fatal(err)
	}
	n := 0
	for _, e := range events {
		if strings.HasPrefix(string(e.Family), "environment.retention_") {
			n++
		}
	}
	if last := events[len(events)-1].Family; n != 2 || last != "environment.retention_ended" {
		l.t.Errorf("%d events, the newest is %s", n, last)
	}
	if e, turns := l.expire(100 * day); e != nil || turns != 0 {
		l.t.Errorf("then it says %+v in %d turns", e, turns)
	}
}

// What is kept stays until its time is over by the recorded clock, and then goes, once (L5).
func TestWhatIsKeptExpires(t *testing.T) {
	h := newHost(t)
	t.Run("in its time", func(t *testing.T) {
		l := h.keeping(t, 7)
		end := fixture.Clock{}.Now().UnixMilli + week.Milliseconds()
		for _, by := range []time.Duration{0, time.Hour, week - time.Millisecond, -time.Second} {
			e, turns := l.expire(by)
			if e == nil || e.Until.UnixMilli != end || e.Waits != "" || turns != 0 || !l.isKept() {
				t.Errorf("after %v: %+v in %d turns", by, e, turns)
			}
		}
		e, turns := l.expire(week)
		if e == nil || e.Waits != "" || e.Until.UnixMilli != 0 || e.Kept.Files != 1 || turns != 3 {
			t.Errorf("a week after: %+v in %d turns", e, turns)
		}
		l.ended()
	})
	t.Run("although it takes longer than a clock may jump", func(t *testing.T) {
		l := h.keeping(t, 80)
		first := l.Ledger.Now()
		first.UnixMilli -= (30 * day).Milliseconds()
		fixture.Observe(t, l.Ledger, first)
		for _, step := range []struct {
			after time.Duration
			turns uint64
		}{{0, 0}, {day, 1}, {2 * day, 0}, {40 * day, 1}, {60 * day, 0}} {
			if e, turns := l.expire(step.after); e == nil || e.Waits != "" || turns != step.turns || !l.isKept() {
				t.Errorf("after %v: %+v in %d turns", step.after, e, turns)
			}
		}
		if e, _ := l.expire(80 * day); e == nil || e.Waits != "" || e.Until.UnixMilli != 0 {
			t.Errorf("80 days after: %+v", e)
		}
		l.ended()
	})
	t.Run("not after a request to stop", func(t *testing.T) {
		l := h.keeping(t, 7)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if all, err := l.at(week).ExpireRetentions(ctx, ingress.Accepted{}); err != nil || len(all) != 0 || !l.isKept() {
			t.Errorf("it says %+v, %v", all, err)
		}
	})
	t.Run("on a clock that went back", func(t *testing.T) {
		l := h.keeping(t, 7)
		for _, by := range []time.Duration{-time.Hour, week, 2 * week} {
			e, _ := l.expire(by)
			if e == nil || !strings.Contains(e.Waits, "a person: the clock fixture went back or jumped") || !l.isKept() {
				t.Errorf("after %v: %+v", by, e)
			}
		}
	})
	t.Run("on a clock that jumped", func(t *testing.T) {
		l := h.keeping(t, 7)
		fixture.Observe(t, l.Ledger, l.Ledger.Now())
		e, _ := l.expire(100 * week)
		if e == nil || !strings.Contains(e.Waits, "a person: the clock") || !l.isKept() {
			t.Errorf("it says %+v", e)
		}
	})
	t.Run("although a life ended before its removal", func(t *testing.T) {
		l := h.keeping(t, 7)
		l.Next(kernel.ExpireRetention{Clock: fixture.Observe(t, l.Ledger, l.State.Retained.Until)})
		if row := l.index().Attempt(fixture.Attempt); row.Open != 1 || row.Retention.Ended || !l.isKept() {
			t.Fatalf("the index says %+v", row)
		}
		one(t, l.reconcile(l.provider))
		l.ended()
	})
	t.Run("although its removal does not work at first", func(t *testing.T) {
		l := h.keeping(t, 7)
		root, aside := filepath.Join(l.kept, retention.Folder), filepath.Join(l.kept, "aside")
		if err := errors.Join(os.Rename(root, aside), os.WriteFile(root, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		e, turns := l.expire(week)
		if e == nil || !strings.Contains(e.Waits, "its removal, which does not work") || turns != 3 {
			t.Fatalf("it says %+v in %d turns", e, turns)
		}
		// As long as nothing else becomes known, nothing is recorded, and no attempt is open.
		for range 5 {
			if e, turns = l.expire(week); e == nil || e.Waits == "" || turns != 0 {
				t.Errorf("it says %+v in %d turns", e, turns)
			}
		}
		if closed := l.reconcile(l.provider); len(closed) != 0 {
			t.Errorf("closed are %+v", closed)
		}
		if err := errors.Join(os.Remove(root), os.Rename(aside, root)); err != nil {
			t.Fatal(err)
		}
		if e, _ = l.expire(week); e == nil || e.Waits != "" {
			t.Errorf("it says %+v", e)
		}
		l.ended()
	})
}

// A workspace whose worker died with its host is not kept, and nobody says that it is; one
// that was complete when the host ended is found.
func TestReconcileFindsWhatIsKept(t *testing.T) {
	h := newHost(t)
	for name, complete := range map[string]bool{"complete": true, "not begun": false} {
		t.Run(name, func(t *testing.T) {
			l := h.newLifeOf(t, func(b *attemptbundle.Bundle) {
				b.Environment.Retention = attemptbundle.Retention{Keep: true, Days: 7}
				b.Outputs.Retention = b.Environment.Retention
			}, "undeclared")
			l.launch()
			<-l.guest
			permits := l.Next(l.Run(l.permits[0], done{protocol.StartResult{Handle: "h"}}), l.Run(l.permits[1], done{protocol.LaunchResult{Ended: protocol.EndedExited}}),
				kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.FreezeMissing, Detail: "no output"}}).Permits
			if complete {
				if out := l.Run(permits[1], l.env.Destroy(protocol.RetentionParameters{Keep: true, Days: 7})).Outcome; out.Knowledge != operation.Applied {
					t.Fatalf("destroy ended %s: %s", out.Knowledge, out.Detail)
				}
			}
			if c := one(t, l.reconcile(l.provider)); c.Waits != "" || c.Err != nil {
				t.Errorf("it waits for %q, %v", c.Waits, c.Err)
			}
			state := l.State.Of(kernel.EnvironmentMachine).State
			if want := map[bool]lifecycle.State{true: "retained", false: "destroyed"}[complete]; state != want || l.isKept() != complete || (l.State.Retained != nil) != complete {
				t.Errorf("the environment is %s, kept is %+v, %v", state, l.State.Retained, l.isKept())
			}
			if left, err := os.ReadDir(l.workspaces); err != nil || len(left) != 0 {
				t.Errorf("left are %v, %v", left, err)
			}
		})
	}
}
