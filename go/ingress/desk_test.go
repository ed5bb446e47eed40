package ingress_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

const owner = "uid:1000"

func desk(a *fixture.Admitted) *ingress.Desk {
	return &ingress.Desk{
		Gate: ingress.NewGate(owner), Ledger: a.Ledger, Journal: a.Store,
		Running: func(context.Context, workorder.AttemptID, []kernel.Command, []journal.Blob) (bool, error) {
			return false, nil
		},
	}
}

func handle(t *testing.T, k *ingress.Desk, id, text string) ingress.Answer {
	t.Helper()
	answer, err := k.Handle(t.Context(), owner, ingress.Delivery{ID: id, Channel: "local", Verb: ingress.Command, Content: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func want(t *testing.T, a ingress.Answer, state lifecycle.State, code reason.Code) {
	t.Helper()
	if a.State != state || a.Refusal() == nil != (code == "") || code != "" && !reason.Is(a.Refusal(), code) {
		t.Errorf("got %+v (%v), want %s %s", a, a.Refusal(), state, code)
	}
}

func order(t *testing.T, l *ledger.Ledger) kernel.State {
	t.Helper()
	s, err := l.Order(t.Context(), fixture.WorkOrder)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func cancel(s kernel.State, version uint64) string {
	return fmt.Sprintf(`/writ cancel-work %s --expected-version %d --reason "not needed"`, s.WorkOrder, version)
}

// What is delivered twice is applied once; what differs under the same id is not applied
// any more, and what was applied stays a fact.
func TestRedelivery(t *testing.T) {
	a := fixture.Admit(t, nil)
	k := desk(a)
	text := cancel(a.State, order(t, a.Ledger).Of(kernel.WorkOrderMachine).Version)
	first := handle(t, k, "dlv_1", text)
	want(t, first, "applied", "")
	if first.Became == nil || first.Became.Subject != a.State.OrderSubject() || first.Replayed {
		t.Errorf("%+v", first)
	}
	before := order(t, a.Ledger)
	if at := before.Of(kernel.WorkOrderMachine).State; at != "cancelled" {
		t.Errorf("the work order is %s", at)
	}
	a.Reopen()
	k = desk(a)
	again := handle(t, k, "dlv_1", text)
	want(t, again, "applied", "")
	if !again.Replayed || *again.Became != *first.Became {
		t.Errorf("redelivered: %+v", again)
	}
	want(t, handle(t, k, "dlv_1", "/writ status"), "quarantined", reason.IngressConflict)
	// The first one stays what it was.
	want(t, handle(t, k, "dlv_1", text), "applied", "")
	if after := order(t, a.Ledger); after.Events() != before.Events() {
		t.Error("a redelivery moved the work order")
	}
}

// A delivery that was recorded and not decided is decided when it comes again, unless its
// bytes have changed.
func TestADeliveryThatWasOnlyReceived(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		state lifecycle.State
		code  reason.Code
	}{
		"the same":  {"/writ wake", "applied", ""},
		"different": {"/writ status", "quarantined", reason.IngressConflict},
	} {
		t.Run(name, func(t *testing.T) {
			a := fixture.Admit(t, nil)
			k := desk(a)
			accepted, err := k.Gate.Accept(owner, ingress.Delivery{ID: "dlv_1", Channel: "local", Verb: ingress.Command, Content: []byte("/writ wake")})
			if err != nil {
				t.Fatal(err)
			}
			_, err = a.Ledger.CommitDelivery(t.Context(), kernel.Delivery{ID: "dlv_1"}, ledger.Turn{
				Commands: []kernel.Command{kernel.Receive{Delivery: kernel.Delivery{ID: "dlv_1"}, Receipt: accepted.Digest}}, Blobs: []journal.Blob{accepted.Blob}, Actor: owner,
			})
			if err != nil {
				t.Fatal(err)
			}
			want(t, handle(t, k, "dlv_1", tc.text), tc.state, tc.code)
			if tc.code != "" {
				want(t, handle(t, k, "dlv_1", "/writ wake"), "quarantined", tc.code)
			}
		})
	}
}

func TestWhatIsNotApplied(t *testing.T) {
	a := fixture.Admit(t, nil)
	k := desk(a)
	version := order(t, a.Ledger).Of(kernel.WorkOrderMachine).Version
	before := a.State.Events()
	for i, tc := range []struct {
		name, text string
		state      lifecycle.State
		code       reason.Code
	}{
		{"no command", "cancel it, please", "rejected", reason.IngressMalformed},
		{"no such order", "/writ cancel-work wo_x --expected-version 1 --reason x", "rejected", reason.IDUnknown},
		{"the beginning of an id", fmt.Sprintf("/writ cancel-work %s --expected-version %d --reason x", a.State.WorkOrder[:10], version), "rejected", reason.IDUnknown},
		{"an old version", cancel(a.State, version-1), "conflict", reason.IngressStale},
		{"a later version", cancel(a.State, version+1), "conflict", reason.IngressStale},
		{"no version", fmt.Sprintf("/writ cancel-work %s --expected-version 0%d --reason x", a.State.WorkOrder, version), "rejected", reason.IngressMalformed},
		{"no such clock", "/writ reconcile-clock host --from 1 --expected-version 1 --reason x", "rejected", reason.IDUnknown},
		{"nothing unknown", fmt.Sprintf("/writ resolve-ambiguous-effect %s --disposition confirmed_absent --operation-key k --evidence e --expected-version %d --reason r", a.State.Attempt, version), "rejected", reason.KernelWrongState},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id := fmt.Sprintf("dlv_%d", i)
			want(t, handle(t, k, id, tc.text), tc.state, tc.code)
			want(t, handle(t, k, id, tc.text), tc.state, tc.code)
		})
	}
	_, err := k.Handle(t.Context(), "uid:0", ingress.Delivery{ID: "dlv_x", Channel: "local", Verb: ingress.Command, Content: []byte("/writ wake")})
	if !reason.Is(err, reason.IngressPrincipalUnknown) {
		t.Errorf("a stranger: %v", err)
	}
	s, err := a.Ledger.State(t.Context(), fixture.Attempt)
	if err != nil || s.Events() != before {
		t.Errorf("%d events, were %d, %v", s.Events(), before, err)
	}
}

// unknown drives the attempt to an end that nobody knows.
func unknown(t *testing.T) (*fixture.Admitted, operation.Key) {
	t.Helper()
	a := fixture.Admit(t, nil)
	opened := a.Next(a.Activation())
	a.Next(kernel.Fence{Why: "its supervisor ended"})
	var settled []kernel.Command
	for _, p := range opened.Permits {
		settled = append(settled, a.Run(p, answers{operation.Outcome{Knowledge: operation.NotApplied, Code: reason.OperationSkipped, Detail: "test"}}))
	}
	a.Next(settled...)
	a.Next(kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: a.State.Resource, WasAlive: true, Why: "it cannot be seen"}})
	if at := order(t, a.Ledger).Of(kernel.WorkOrderMachine).State; at != "unknown_terminal" {
		t.Fatalf("the work order is %s", at)
	}
	return a, opened.Permits[0].Intent().Key
}

type answers struct{ out operation.Outcome }

func (e answers) Perform(context.Context, ledger.Permit) operation.Outcome    { return e.out }
func (e answers) Resolve(context.Context, operation.Intent) operation.Outcome { return e.out }

// A person's disposition moves the work order and never the attempt.
func TestDispositions(t *testing.T) {
	for disposition, ends := range map[string]lifecycle.State{
		kernel.ConfirmedAbsent: "ready", kernel.ConfirmedApplied: "applied", kernel.AbandonedUnknown: "abandoned_unknown",
	} {
		t.Run(disposition, func(t *testing.T) {
			a, key := unknown(t)
			k := desk(a)
			version := order(t, a.Ledger).Of(kernel.WorkOrderMachine).Version
			say := func(disposition string, key operation.Key, version uint64) string {
				return fmt.Sprintf(`/writ resolve-ambiguous-effect %s --disposition %s --operation-key %s --evidence "looked at it" --expected-version %d --reason "seen by eye"`,
					a.State.Attempt, disposition, key, version)
			}
			want(t, handle(t, k, "dlv_0", say("confirmed", key, version)), "rejected", reason.IngressMalformed)
			want(t, handle(t, k, "dlv_1", say(disposition, key, version-1)), "conflict", reason.IngressStale)
			want(t, handle(t, k, "dlv_2", say(disposition, key+"x", version)), "rejected", reason.IDUnknown)
			want(t, handle(t, k, "dlv_3", say(disposition, key, version)), "applied", "")
			if at := order(t, a.Ledger).Of(kernel.WorkOrderMachine).State; at != ends {
				t.Errorf("the work order is %s, want %s", at, ends)
			}
			a.Reopen()
			if at := a.State.Of(kernel.AttemptMachine).State; at != "unknown_terminal" {
				t.Errorf("the attempt is %s", at)
			}
			// It was decided once, and is not decided again.
			now := order(t, a.Ledger).Of(kernel.WorkOrderMachine).Version
			want(t, handle(t, desk(a), "dlv_4", say(disposition, key, now)), "rejected", reason.KernelWrongState)
		})
	}
}

// A clock that went back counts again from where a person says, and from nowhere else.
func TestReconcileClock(t *testing.T) {
	a := fixture.Admit(t, nil)
	k := desk(a)
	clock := func() kernel.Clock {
		c, err := a.Ledger.Clock(t.Context(), "host")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, ms := range []int64{fixture.Now, fixture.Now - 10_000} {
		observe := kernel.ObserveClock{Clock: clock(), Now: lifecycle.Observation{Domain: "host", UnixMilli: ms}}
		if err := a.Ledger.CommitClock(t.Context(), clock(), ledger.Turn{Commands: []kernel.Command{observe}, Actor: owner}); err != nil {
			t.Fatal(err)
		}
	}
	if clock().Steady() {
		t.Fatal("the clock counts")
	}
	say := func(version uint64) string {
		return fmt.Sprintf(`/writ reconcile-clock host --from %d --expected-version %d --reason "the battery was changed"`, fixture.Now-10_000, version)
	}
	want(t, handle(t, k, "dlv_1", say(1)), "conflict", reason.IngressStale)
	want(t, handle(t, k, "dlv_2", say(2)), "applied", "")
	if c := clock(); !c.Steady() || c.Last.UnixMilli != fixture.Now-10_000 {
		t.Errorf("%+v", c)
	}
	want(t, handle(t, k, "dlv_3", say(3)), "rejected", reason.KernelWrongState)
}
