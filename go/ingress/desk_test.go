package ingress_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/projection"
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
	first := handle(t, k, fixture.Delivery(1), text)
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
	again := handle(t, k, fixture.Delivery(1), text)
	want(t, again, "applied", "")
	if !again.Replayed || *again.Became != *first.Became {
		t.Errorf("redelivered: %+v", again)
	}
	want(t, handle(t, k, fixture.Delivery(1), "/writ status"), "quarantined", reason.IngressConflict)
	// The first one stays what it was.
	want(t, handle(t, k, fixture.Delivery(1), text), "applied", "")
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
			accepted, err := k.Gate.Accept(owner, ingress.Delivery{ID: fixture.Delivery(1), Channel: "local", Verb: ingress.Command, Content: []byte("/writ wake")})
			if err != nil {
				t.Fatal(err)
			}
			_, err = a.Ledger.CommitDelivery(t.Context(), kernel.Delivery{ID: fixture.Delivery(1)}, ledger.Turn{
				Commands: []kernel.Command{kernel.Receive{Delivery: kernel.Delivery{ID: fixture.Delivery(1)}, Receipt: accepted.Digest}}, Blobs: []journal.Blob{accepted.Blob}, Actor: owner,
			})
			if err != nil {
				t.Fatal(err)
			}
			want(t, handle(t, k, fixture.Delivery(1), tc.text), tc.state, tc.code)
			if tc.code != "" {
				want(t, handle(t, k, fixture.Delivery(1), "/writ wake"), "quarantined", tc.code)
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
		{"no budget", fmt.Sprintf("/writ settle-budget %s --calls 0 --tokens 0 --wall-ms 1 --money 0 --expected-version 1 --reason x", a.State.Attempt), "rejected", reason.KernelWrongState},
		{"less than nothing", fmt.Sprintf("/writ settle-budget %s --calls -1 --tokens 0 --wall-ms 1 --money 0 --expected-version 1 --reason x", a.State.Attempt), "rejected", reason.IngressMalformed},
		{"no mode", fmt.Sprintf("/writ mode-raise %s --to root --evidence %s --expected-version %d --reason x", a.State.WorkOrder, a.State.Attempt, version), "rejected", reason.IngressMalformed},
		{"an old version of an order to raise", fmt.Sprintf("/writ mode-raise %s --to production --evidence %s --expected-version %d --reason x", a.State.WorkOrder, a.State.Attempt, version-1), "conflict", reason.IngressStale},
		{"an attempt that shows nothing", fmt.Sprintf("/writ mode-raise %s --to production --evidence %s --expected-version %d --reason x", a.State.WorkOrder, a.State.Attempt, version), "rejected", reason.ModeNoEvidence},
		{"no such attempt", fmt.Sprintf("/writ mode-raise %s --to production --evidence att_x --expected-version %d --reason x", a.State.WorkOrder, version), "rejected", reason.IDUnknown},
		{"nothing unknown", fmt.Sprintf("/writ resolve-ambiguous-effect %s --disposition confirmed_absent --operation-key k --evidence e --expected-version %d --reason r", a.State.Attempt, version), "rejected", reason.KernelWrongState},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id := fixture.Delivery(i)
			want(t, handle(t, k, id, tc.text), tc.state, tc.code)
			want(t, handle(t, k, id, tc.text), tc.state, tc.code)
		})
	}
	_, err := k.Handle(t.Context(), "uid:0", ingress.Delivery{ID: fixture.Delivery(99), Channel: "local", Verb: ingress.Command, Content: []byte("/writ wake")})
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
			want(t, handle(t, k, fixture.Delivery(0), say("confirmed", key, version)), "rejected", reason.IngressMalformed)
			want(t, handle(t, k, fixture.Delivery(1), say(disposition, key, version-1)), "conflict", reason.IngressStale)
			want(t, handle(t, k, fixture.Delivery(2), say(disposition, key+"x", version)), "rejected", reason.IDUnknown)
			want(t, handle(t, k, fixture.Delivery(3), say(disposition, key, version)), "applied", "")
			if at := order(t, a.Ledger).Of(kernel.WorkOrderMachine).State; at != ends {
				t.Errorf("the work order is %s, want %s", at, ends)
			}
			a.Reopen()
			if at := a.State.Of(kernel.AttemptMachine).State; at != "unknown_terminal" {
				t.Errorf("the attempt is %s", at)
			}
			// It was decided once, and is not decided again.
			now := order(t, a.Ledger).Of(kernel.WorkOrderMachine).Version
			want(t, handle(t, desk(a), fixture.Delivery(4), say(disposition, key, now)), "rejected", reason.KernelWrongState)
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
	want(t, handle(t, k, fixture.Delivery(1), say(1)), "conflict", reason.IngressStale)
	want(t, handle(t, k, fixture.Delivery(2), say(2)), "applied", "")
	if c := clock(); !c.Steady() || c.Last.UnixMilli != fixture.Now-10_000 {
		t.Errorf("%+v", c)
	}
	want(t, handle(t, k, fixture.Delivery(3), say(3)), "rejected", reason.KernelWrongState)
}

// A repeat of a delivery that is being heard waits for what that comes to, and is answered
// the same; other bytes wait as well. Neither moves what is under way.
func TestARepeatWaitsForTheFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		more  string
		state lifecycle.State
		code  reason.Code
	}{
		"the same":    {"", "applied", ""},
		"other bytes": {" ", "quarantined", reason.IngressConflict},
	} {
		t.Run(name, func(t *testing.T) {
			a := fixture.Admit(t, nil)
			a.Next(a.Activation())
			k := desk(a)
			text := cancel(a.State, order(t, a.Ledger).Of(kernel.WorkOrderMachine).Version)
			asked, recorded := make(chan struct{}), make(chan struct{})
			k.Running = func(ctx context.Context, id workorder.AttemptID, commands []kernel.Command, blobs []journal.Blob) (bool, error) {
				close(asked)
				<-recorded // The supervisor comes to its next turn.
				s, err := a.Ledger.State(ctx, id)
				if err == nil {
					_, err = a.Ledger.Commit(ctx, ledger.Turn{Fence: s.Fence(), Commands: commands, Blobs: blobs, Actor: owner})
				}
				return true, err
			}
			first, second := make(chan ingress.Answer), make(chan ingress.Answer)
			go func() { first <- handle(t, k, fixture.Delivery(1), text) }()
			<-asked
			go func() { second <- handle(t, k, fixture.Delivery(1), text+tc.more) }()
			select {
			case got := <-second:
				t.Errorf("a repeat is answered %+v before the first", got)
			case recorded <- struct{}{}:
			}
			want(t, <-first, "applied", "")
			want(t, <-second, tc.state, tc.code)
			if at := order(t, a.Ledger).Of(kernel.WorkOrderMachine).State; at != "cancellation_requested" {
				t.Errorf("the work order is %s", at)
			}
		})
	}
}

// Whoever does not want to wait any longer is told that nothing is known yet.
func TestARepeatMayStopWaiting(t *testing.T) {
	a := fixture.Admit(t, nil)
	a.Next(a.Activation())
	k := desk(a)
	text := cancel(a.State, order(t, a.Ledger).Of(kernel.WorkOrderMachine).Version)
	asked, done := make(chan struct{}), make(chan struct{})
	k.Running = func(context.Context, workorder.AttemptID, []kernel.Command, []journal.Blob) (bool, error) {
		close(asked)
		<-done
		return true, reason.New(reason.KernelWrongState, "too late", "", "")
	}
	over := make(chan ingress.Answer)
	go func() { over <- handle(t, k, fixture.Delivery(1), text) }()
	<-asked
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := k.Handle(ctx, owner, ingress.Delivery{ID: fixture.Delivery(1), Channel: "local", Verb: ingress.Command, Content: []byte(text)})
	if !reason.Is(err, reason.IngressUnanswered) {
		t.Errorf("%v", err)
	}
	close(done)
	want(t, <-over, "rejected", reason.KernelWrongState)
}

// What many send at once under one id is applied once, and each is told so.
func TestManyRepeatsAtOnce(t *testing.T) {
	a := fixture.Admit(t, nil)
	k := desk(a)
	text := cancel(a.State, order(t, a.Ledger).Of(kernel.WorkOrderMachine).Version)
	type answered struct {
		ingress.Answer
		err error
	}
	answers := make(chan answered)
	for range 16 {
		go func() {
			a, err := k.Handle(t.Context(), owner, ingress.Delivery{ID: fixture.Delivery(1), Channel: "local", Verb: ingress.Command, Content: []byte(text)})
			answers <- answered{a, err}
		}()
	}
	replayed := 0
	for range 16 {
		got := <-answers
		if got.err != nil {
			t.Error(got.err)
			continue
		}
		want(t, got.Answer, "applied", "")
		if got.Replayed {
			replayed++
		}
	}
	if replayed != 15 {
		t.Errorf("%d of 16 are repeats", replayed)
	}
}

// Only what is written as an id of a delivery is one: it names a subject, and the turns of
// others are named beside it.
func TestAnIDIsOneOfADelivery(t *testing.T) {
	a := fixture.Admit(t, nil)
	k := desk(a)
	for _, id := range []string{"", "clock-host", "dlv_1", "a/b", string(fixture.WorkOrder), string(fixture.Attempt), fixture.Delivery(1) + " ", "DLV_01939a3c-7c1e-7000-8000-000000000001"} {
		if _, err := k.Handle(t.Context(), owner, ingress.Delivery{ID: id, Channel: "local", Verb: ingress.Command, Content: []byte("/writ status")}); !reason.Is(err, reason.IngressMalformed) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// What an earlier life received and did not decide is decided by the next, as it stands now.
func TestWhatWasOnlyReceivedIsDecidedByTheNextLife(t *testing.T) {
	a := fixture.Admit(t, nil)
	version := order(t, a.Ledger).Of(kernel.WorkOrderMachine).Version
	texts := []string{cancel(a.State, version), cancel(a.State, version), "cancel it, please"}
	var pending []string
	for i, text := range texts {
		d := ingress.Delivery{ID: fixture.Delivery(i + 1), Channel: "local", Verb: ingress.Command, Content: []byte(text)}
		accepted, err := desk(a).Gate.Accept(owner, d)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Ledger.CommitDelivery(t.Context(), kernel.Delivery{ID: d.ID}, ledger.Turn{
			Commands: []kernel.Command{kernel.Receive{Delivery: kernel.Delivery{ID: d.ID}, Receipt: accepted.Digest}}, Actor: owner,
			Blobs: []journal.Blob{accepted.Blob, {Digest: canonical.Sum(d.Content), MediaType: "text/plain", Bytes: d.Content}},
		})
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, d.ID)
	}
	a.Reopen()
	index, err := projection.Build(t.Context(), a.Store, a.Ledger.Kernel().Transitions())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(index.Pending, pending) {
		t.Fatalf("%v wait, want %v", index.Pending, pending)
	}
	k := desk(a)
	answers, err := k.Resume(t.Context(), index.Pending, false)
	if err != nil {
		t.Fatal(err)
	}
	want(t, answers[0], "applied", "")
	want(t, answers[1], "conflict", reason.IngressStale)
	want(t, answers[2], "rejected", reason.IngressMalformed)
	if at := order(t, a.Ledger).Of(kernel.WorkOrderMachine).State; at != "cancelled" {
		t.Errorf("the work order is %s", at)
	}
	if index, err = projection.Build(t.Context(), a.Store, a.Ledger.Kernel().Transitions()); err != nil || len(index.Pending) > 0 {
		t.Errorf("%v wait still, %v", index.Pending, err)
	}
	want(t, handle(t, k, pending[0], texts[0]), "applied", "")
}

// A submission is recorded once, together with its delivery: a repeat is answered with the
// order of the first, and other bytes, or a command, under its id are quarantined.
func TestASubmissionIsRecordedOnce(t *testing.T) {
	a := fixture.Admit(t, nil)
	k := desk(a)
	recorded := 0
	submit := func(content string) (ingress.Answer, error) {
		d := ingress.Delivery{ID: fixture.Delivery(1), Channel: "local", Verb: ingress.Submit, Content: []byte(content)}
		return k.Submit(t.Context(), owner, d, func(accepted ingress.Accepted, around ingress.Around) error {
			recorded++
			c := fixture.Submit()
			c.ID, c.Ingress = workorder.ID(fmt.Sprintf("wo_01939a3c-7c1e-7000-8000-%012d", 100+recorded)), accepted.Digest
			_, err := a.Ledger.CommitOrder(t.Context(), kernel.State{}, c.ID, ledger.Turn{Commands: around(c), Blobs: []journal.Blob{accepted.Blob}, Actor: owner})
			return err
		})
	}
	first, err := submit("one")
	if err != nil {
		t.Fatal(err)
	}
	want(t, first, "applied", "")
	for range 2 {
		again, err := submit("one")
		if err != nil {
			t.Fatal(err)
		}
		if !again.Replayed || *again.Became != *first.Became || recorded != 1 {
			t.Errorf("%+v, %d recorded", again, recorded)
		}
		a.Reopen()
		k = desk(a)
	}
	other, err := submit("other")
	if err != nil {
		t.Fatal(err)
	}
	want(t, other, "quarantined", reason.IngressConflict)
	want(t, handle(t, k, fixture.Delivery(1), "/writ status"), "quarantined", reason.IngressConflict)
	if recorded != 1 {
		t.Errorf("%d orders were recorded", recorded)
	}
}

// One delivery that may not be heard any more, as when the state folder has another owner
// now, keeps nobody else waiting.
func TestADeliveryOfAnotherOwnerKeepsNobodyElse(t *testing.T) {
	a := fixture.Admit(t, nil)
	var pending []string
	for i, principal := range []string{"uid:2000", owner} {
		d := ingress.Delivery{ID: fixture.Delivery(i + 1), Channel: "local", Verb: ingress.Command, Content: []byte("/writ status")}
		accepted, err := ingress.NewGate(principal).Accept(principal, d)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Ledger.CommitDelivery(t.Context(), kernel.Delivery{ID: d.ID}, ledger.Turn{
			Commands: []kernel.Command{kernel.Receive{Delivery: kernel.Delivery{ID: d.ID}, Receipt: accepted.Digest}}, Actor: principal,
			Blobs: []journal.Blob{accepted.Blob, {Digest: canonical.Sum(d.Content), MediaType: "text/plain", Bytes: d.Content}},
		})
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, d.ID)
	}
	answers, err := desk(a).Resume(t.Context(), pending, false)
	if err != nil || len(answers) != 1 || answers[0].Delivery != pending[1] {
		t.Errorf("%+v, %v", answers, err)
	}
}

// A command on a closed attempt is judged by where its work order stands, also after that
// moved without the attempt.
func TestACommandOnAClosedAttemptSeesItsOrder(t *testing.T) {
	a, key := unknown(t)
	k := desk(a)
	say := func(version uint64) string {
		return fmt.Sprintf(`/writ resolve-ambiguous-effect %s --disposition confirmed_absent --operation-key %s --evidence "looked" --expected-version %d --reason "seen"`, a.State.Attempt, key, version)
	}
	want(t, handle(t, k, fixture.Delivery(1), say(order(t, a.Ledger).Of(kernel.WorkOrderMachine).Version)), "applied", "")
	want(t, handle(t, k, fixture.Delivery(2), cancel(a.State, order(t, a.Ledger).Of(kernel.WorkOrderMachine).Version)), "applied", "")
	// The decision is on what is there now, and is refused for what it is.
	want(t, handle(t, k, fixture.Delivery(3), say(order(t, a.Ledger).Of(kernel.WorkOrderMachine).Version)), "rejected", reason.KernelWrongState)
}
