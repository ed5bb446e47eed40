package adapterhost_test

import (
	"errors"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

func (r *rig) locator(c protocol.Call) wire.Locator {
	return wire.Locator{Kind: wire.LocatorKind, Bundle: c.Bundle, Attempt: c.Fence.Attempt, Resource: r.fence.ResourceName(), Handle: "h"}
}

// An adapter that dies while it starts: the host knows what it launched, and a relaunched process finds it.
func TestCrashWhileStarting(t *testing.T) {
	for mode, want := range map[string]struct {
		launched  int
		knowledge operation.Knowledge
		code      reason.Code
	}{
		"crashbefore": {0, operation.NotApplied, ""},
		"crashafter":  {1, operation.Applied, ""},
		"crashtwice":  {1, "", reason.AdapterUnavailable},
	} {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t, config(t, mode, bad(t)))
			c, q := r.call(operation.Start)
			_, err := r.session.Start(t.Context(), c, q, "h")
			if !reason.Is(err, reason.AdapterUnavailable) || !errors.As(err, new(*executor.Doubt)) || r.host.PID() != 0 {
				t.Fatalf("start: %v", err)
			}
			if n := len(r.session.Launches(c.Operation)); n != want.launched {
				t.Errorf("%d launches, want %d", n, want.launched)
			}
			found, err := r.session.Reconcile(t.Context(), c, r.locator(c))
			if found.Knowledge != want.knowledge || reason.CodeOf(err) != want.code {
				t.Fatalf("reconcile: %+v, %v", found, err)
			}
			if want.knowledge == operation.Applied && (len(found.Answer.Effects) != 1 || string(found.Answer.Result) != `{"handle":"h"}`) {
				t.Errorf("found %+v", found.Answer)
			}
			if r.desk.asked != want.launched {
				t.Errorf("the services were asked to launch %d times", r.desk.asked)
			}
		})
	}
}

// What an adapter says of its start reaches the effects as it was said, beside what the host saw.
func TestLyingStart(t *testing.T) {
	for mode, want := range map[string]struct {
		claimed, seen int
		refused       reason.Code
	}{
		"liestart":    {0, 0, ""},
		"lieclaim":    {1, 0, ""},
		"denystart":   {1, 1, reason.AdapterUnsupported},
		"otherhandle": {1, 1, ""},
	} {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t, config(t, mode, bad(t)))
			c, q := r.call(operation.Start)
			a, err := r.session.Start(t.Context(), c, q, "h")
			if err != nil {
				t.Fatal(err)
			}
			if seen := r.session.Launches(c.Operation); len(a.Effects) != want.claimed || len(seen) != want.seen {
				t.Errorf("claims %v, seen %v", a.Effects, seen)
			}
			if (a.Refusal == nil) != (want.refused == "") || (a.Refusal != nil && a.Refusal.Code != want.refused) {
				t.Errorf("refused with %v", a.Refusal)
			}
		})
	}
}

// What reference-local launches is, byte for byte, what the kernel orders for the bundle.
func TestLaunchIsTheOrderedOne(t *testing.T) {
	r := newRig(t, config(t, "reference-local", reference(t)))
	c, q := r.call(operation.Start)
	if _, err := r.session.Start(t.Context(), c, q, "h"); err != nil {
		t.Fatal(err)
	}
	b := r.bundle.Bundle()
	parameters := protocol.LaunchParameters{Arguments: b.Execution.Arguments, Seed: b.Execution.Seed}
	for _, tool := range b.Pins.Tools {
		if tool.Name == b.Execution.Tool {
			parameters.Tool = tool.Digest
		}
	}
	ordered, err := protocol.NewRequest(operation.Launch, r.bundle.Digest(), b.Attempt.ID, b.Pins.Adapter.Name, "main", parameters)
	if err != nil {
		t.Fatal(err)
	}
	in, err := ordered.Intent(b.Operations.Namespace, c.Operation, operation.Reconcilable, "r")
	if err != nil {
		t.Fatal(err)
	}
	got := r.session.Launches(c.Operation)
	if len(got) != 1 || got[0].Key != in.Key || got[0].Digest != in.Digest {
		t.Errorf("launched %+v, ordered %+v", got, in)
	}
}

// A start whose adapter dies while its launch is being made is not answered before the launch is known.
func TestCrashDuringTheLaunch(t *testing.T) {
	r := newRig(t, config(t, "reference-local", reference(t)))
	answered := make(chan struct{})
	r.desk.during = func() {
		kill(t, r)
		select {
		case <-answered:
			t.Error("the start was answered while its launch was being made")
		case <-time.After(300 * time.Millisecond):
		}
	}
	c, q := r.call(operation.Start)
	_, err := r.session.Start(t.Context(), c, q, "h")
	close(answered)
	if !errors.As(err, new(*executor.Doubt)) {
		t.Fatalf("start: %v", err)
	}
	if n := len(r.session.Launches(c.Operation)); n != 1 {
		t.Errorf("%d launches are known", n)
	}
}
