package kernel_test

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// life drives one attempt through the kernel as a supervisor would, and keeps every
// event, so that a test can replay them.
type life struct {
	t      *testing.T
	kernel kernel.Kernel
	state  kernel.State
	events []lifecycle.Event
	// turns are the lengths of events after each commit: a crash falls between two.
	turns []int
	// change is what the bundle is to have beside the fixed one; forged says that it is not
	// compiled but read, as one that was recorded under other rules.
	change func(*attemptbundle.Bundle)
	forged bool
	// alter alters the reservation, nil for not at all. account is what the attempt draws on.
	alter   func(*workorder.Reservation)
	account kernel.Account
}

func newLife(t *testing.T) *life { return &life{t: t, kernel: fixture.Kernel(t)} }

// do decides the commands and fails the test if they are refused.
func (l *life) do(commands ...kernel.Command) kernel.Decision {
	l.t.Helper()
	d, err := l.decide(commands...)
	if err != nil {
		l.t.Fatalf("%T: %v", commands[0], err)
	}
	return d
}

// try decides the commands, and returns why they are refused.
func (l *life) try(commands ...kernel.Command) error {
	_, err := l.decide(commands...)
	return err
}

// decide decides the commands, with what they move of the account. Refused, they change
// nothing.
func (l *life) decide(commands ...kernel.Command) (kernel.Decision, error) {
	d, err := l.kernel.Decide(l.state, commands...)
	l.drafted(d, err, commands)
	if err != nil {
		return d, err
	}
	if len(d.Moves) > 0 {
		moved, account, err := l.kernel.Moved(d, l.account)
		if err != nil {
			return d, err
		}
		d, l.account = moved, account
	}
	l.state = d.State
	l.events = append(l.events, d.Events...)
	l.turns = append(l.turns, len(l.events))
	return d, nil
}

// drafted holds what the commands come to against a draft that grows by one of them at a time,
// and that somebody looks at in between.
func (l *life) drafted(want kernel.Decision, wantErr error, commands []kernel.Command) {
	l.t.Helper()
	draft := l.kernel.Draft(l.state)
	for _, c := range commands {
		if err := draft.Add(c); err != nil {
			break
		}
		_, _ = draft.Next()
		draft.State()
	}
	got, err := draft.Decision()
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(err, wantErr) {
		l.t.Fatalf("drafted, %T and what follows come to something else: %v, want %v", commands[0], err, wantErr)
	}
}

// own are the events that the attempt's state is made of.
func (l *life) own() []lifecycle.Event {
	return slices.DeleteFunc(slices.Clone(l.events), func(e lifecycle.Event) bool { return e.Subject.Machine() == kernel.AccountMachine })
}

// family is the family of the newest event of a machine.
func (l *life) family(machine string) (newest lifecycle.Family) {
	for _, e := range l.events {
		if e.Subject.Machine() == machine {
			newest = e.Family
		}
	}
	return newest
}

// refused decides the commands and fails the test unless they are refused with the code.
func (l *life) refused(code reason.Code, commands ...kernel.Command) {
	l.t.Helper()
	before := l.state.Events()
	_, err := l.kernel.Decide(l.state, commands...)
	r, ok := reason.As(err)
	if !ok || r.Code != code {
		l.t.Fatalf("got %v, want a refusal with %s", err, code)
	}
	if l.state.Events() != before {
		l.t.Fatal("a refused command changed the state")
	}
}

// next returns the plan, and fails the test if there is none.
func (l *life) next() kernel.Plan {
	l.t.Helper()
	p, err := l.kernel.Next(l.state)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// begin begins all that the plan wants begun and returns the intents.
func (l *life) begin(kinds ...operation.Kind) []operation.Intent {
	l.t.Helper()
	p := l.next()
	var got []operation.Kind
	for _, in := range p.Begin {
		got = append(got, in.Kind)
	}
	if !slices.Equal(got, kinds) {
		l.t.Fatalf("next wants %v (%+v), want %v", got, p, kinds)
	}
	for _, in := range p.Begin {
		l.do(kernel.Begin{Intent: in})
	}
	return p.Begin
}

// settle is the command that settles an intent with the given knowledge.
func (l *life) settle(in operation.Intent, k operation.Knowledge) kernel.Settle {
	receipt, err := canonical.Marshal(protocol.Receipt{
		Kind: protocol.ReceiptKind, Operation: in.Key, Digest: in.Digest, Knowledge: k, Generation: l.state.Generation,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	out := operation.Outcome{Knowledge: k}
	if in.Kind == operation.Collect && k == operation.Applied {
		out = operation.Done(protocol.CollectResult{Manifest: fixture.Digest("manifest"), Structured: fixture.Digest("structured")})
	}
	return kernel.Settle{Key: in.Key, Outcome: out, Receipt: receipt, Generation: l.state.Generation}
}

func (l *life) applied(in operation.Intent) kernel.Settle { return l.settle(in, operation.Applied) }

func (l *life) reservation() workorder.Reservation {
	r := fixture.ReservedFor(l.t, l.kernel, l.change)
	if l.alter != nil {
		l.alter(&r)
	}
	return r
}

func (l *life) reserve() *attemptbundle.Compiled {
	r := l.reservation()
	l.do(fixture.Submit(), kernel.Reserve{Reservation: r})
	if !l.forged {
		return fixture.Bundle(l.t, l.kernel, r, l.change)
	}
	b := *fixture.Bundle(l.t, l.kernel, r, nil).Bundle()
	l.change(&b)
	raw, err := canonical.Marshal(b)
	if err != nil {
		l.t.Fatal(err)
	}
	c, err := attemptbundle.Parse(raw)
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

func (l *life) activate() {
	l.do(kernel.Activate{Bundle: l.reserve(), Now: fixture.At(0)})
}

func (l *life) attest() kernel.Attest {
	expected, report := fixture.Attestation(l.t, l.kernel, l.state)
	return kernel.Attest{Expected: expected, Report: report}
}

// prepared drives the attempt until its execution may start.
func (l *life) prepared() {
	l.activate()
	l.prepare()
}

// prepare drives an activated attempt until its execution may start.
func (l *life) prepare() {
	in := l.begin(operation.Provision, operation.Materialize, operation.Prepare)
	l.do(l.applied(in[0]), l.attest(), l.applied(in[1]), l.applied(in[2]))
}

// running drives the attempt until its workload has been launched.
func (l *life) running() []operation.Intent {
	l.prepared()
	return l.begin(operation.Start, operation.Launch)
}

// launch drives a reserved attempt until its workload has been launched.
func (l *life) launch() []operation.Intent {
	l.t.Helper()
	l.do(kernel.Activate{Bundle: fixture.Bundle(l.t, l.kernel, l.state.Reserved, l.change), Now: fixture.At(0)})
	l.prepare()
	return l.begin(operation.Start, operation.Launch)
}

// completed drives the attempt until its workload is reported complete.
func (l *life) completed() {
	in := l.running()
	l.do(l.applied(in[0]), l.applied(in[1]), kernel.Complete{Report: protocol.CompletionReport{Launches: []operation.Key{in[1].Key}}})
}

func (l *life) finish() {
	l.completed()
	in := l.begin(operation.Freeze, operation.Collect)
	l.do(l.applied(in[0]), l.applied(in[1]))
	if !l.next().Reduce {
		l.t.Fatalf("a collected attempt waits for %+v, not for its reduction", l.next())
	}
	l.do(kernel.Accept{})
	in = l.begin(operation.Cleanup, operation.Destroy)
	l.do(l.applied(in[0]), l.applied(in[1]))
}

func (l *life) want(machine string, state lifecycle.State) {
	l.t.Helper()
	if got := l.state.Of(machine).State; got != state {
		l.t.Errorf("%s is %q, want %q", machine, got, state)
	}
}

func (l *life) wantDone(conclusion workorder.Conclusion) {
	l.t.Helper()
	if p := l.next(); !p.Done {
		l.t.Errorf("the attempt is not done: %+v", p)
	}
	if l.state.Result == nil || l.state.Result.Conclusion != conclusion {
		l.t.Errorf("the attempt came to %+v, want %s", l.state.Result, conclusion)
	}
}

func TestHappyPath(t *testing.T) {
	l := newLife(t)
	l.finish()
	l.want(kernel.WorkOrderMachine, "applied")
	l.want(kernel.ReservationMachine, "consumed")
	l.want(kernel.AttemptMachine, "accepted")
	l.want(kernel.ExecutionMachine, "completed")
	l.want(kernel.EnvironmentMachine, "destroyed")
	l.wantDone(workorder.Succeeded)
	if r := l.state.Result; r.Manifest != fixture.Digest("manifest") || r.Structured != fixture.Digest("structured") {
		t.Errorf("what was accepted is not what was collected: %+v", r)
	}
}

// A launch is part of a start, and an environment is filled once: nobody begins either
// by itself.
func TestNothingBeginsOutOfTurn(t *testing.T) {
	l := newLife(t)
	l.prepared()
	in := l.next().Begin
	l.refused(reason.KernelWrongState, kernel.Begin{Intent: in[1]})
	l.do(kernel.Begin{Intent: in[0]}, kernel.Begin{Intent: in[1]})

	early := newLife(t)
	early.activate()
	first := early.next().Begin
	early.do(kernel.Begin{Intent: first[0]}, early.applied(first[0]))
	early.refused(reason.KernelWrongState, kernel.Begin{Intent: first[1]})
	early.refused(reason.KernelWrongState, kernel.Begin{Intent: first[2]})
}

func TestACompletedExecutionIsNotCancelled(t *testing.T) {
	l := newLife(t)
	l.completed()
	in := l.begin(operation.Freeze, operation.Collect)
	l.do(l.applied(in[0]), l.applied(in[1]))
	l.refused(reason.KernelWrongState, kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "late"}})
}

// Replaying the events of a life gives the state that deciding gave.
func TestReplay(t *testing.T) {
	l := newLife(t)
	l.finish()
	var s kernel.State
	for _, e := range l.events {
		var err error
		if s, err = l.kernel.Reduce(s, e); err != nil {
			t.Fatal(err)
		}
	}
	if s.Events() != l.state.Events() || s.Of(kernel.AttemptMachine) != l.state.Of(kernel.AttemptMachine) {
		t.Errorf("replay came to %+v, deciding to %+v", s, l.state)
	}
	for _, o := range l.state.Operations() {
		if got, ok := s.Operation(o.Intent.Key); !ok || string(got.Record.Receipt) != string(o.Record.Receipt) {
			t.Errorf("replay lost the receipt of %s", o.Intent.Key)
		}
	}
}

func TestNothingBeginsBeforeActivation(t *testing.T) {
	l := newLife(t)
	bundle := l.reserve()
	in := operation.Intent{
		Key: "writ/" + operation.Key(fixture.Attempt) + "/wasm/provision/main", Digest: bundle.Digest(),
		Kind: operation.Provision, Class: operation.Reconcilable, Resource: "r",
	}
	l.refused(reason.KernelNotReady, kernel.Begin{Intent: in})
}

func TestActivationHoldsTheBundleAgainstTheReservation(t *testing.T) {
	other := fixture.Digest("other")
	for name, change := range map[string]func(*attemptbundle.Bundle){
		"reservation digest": func(b *attemptbundle.Bundle) { b.Reservation.Digest = other },
		"reservation id":     func(b *attemptbundle.Bundle) { b.Reservation.ID = "res_other" },
		"work order":         func(b *attemptbundle.Bundle) { b.WorkOrder.Digest = other },
		"role":               func(b *attemptbundle.Bundle) { b.Role.Package = other },
		"context":            func(b *attemptbundle.Bundle) { b.Context = other },
		"prompt":             func(b *attemptbundle.Bundle) { b.Prompt = other },
		"environment":        func(b *attemptbundle.Bundle) { b.Environment.Limits.MemoryBytes++ },
		"grant":              func(b *attemptbundle.Bundle) { b.Requested = other },
		"fence":              func(b *attemptbundle.Bundle) { b.Fence.Generation++ },
		"budget":             func(b *attemptbundle.Bundle) { b.Ceilings.Tokens++ },
		"transitions":        func(b *attemptbundle.Bundle) { b.Transitions = other },
		"effect classes":     func(b *attemptbundle.Bundle) { b.Operations.EffectClasses = other },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.reserve()
			l.refused(reason.BundleDigestMismatch, kernel.Activate{
				Bundle: fixture.Bundle(t, l.kernel, l.state.Reserved, change), Now: fixture.At(0),
			})
		})
	}
	t.Run("stream version", func(t *testing.T) {
		l := newLife(t)
		l.reserve()
		b := fixture.Bundle(t, l.kernel, l.state.Reserved, func(b *attemptbundle.Bundle) { b.Cause.ExpectedVersion++ })
		l.refused(reason.KernelStaleFence, kernel.Activate{Bundle: b, Now: fixture.At(0)})
	})
	t.Run("expired", func(t *testing.T) {
		l := newLife(t)
		l.refused(reason.BundleExpired, kernel.Activate{Bundle: l.reserve(), Now: fixture.At(time.Minute)})
	})
	t.Run("twice", func(t *testing.T) {
		l := newLife(t)
		l.activate()
		b := fixture.Bundle(t, l.kernel, l.state.Reserved, nil)
		l.refused(reason.KernelWrongState, kernel.Activate{Bundle: b, Now: fixture.At(0)})
	})
}

func TestAnOperationIsRecordedOnce(t *testing.T) {
	l := newLife(t)
	l.activate()
	in := l.begin(operation.Provision, operation.Materialize, operation.Prepare)
	l.refused(reason.OperationUnknownOutcome, kernel.Begin{Intent: in[0]})
	l.do(l.applied(in[0]))

	before := l.state.Events()
	d := l.do(kernel.Begin{Intent: in[0]})
	if len(d.Begun) != 0 || len(d.Replayed) != 1 || l.state.Events() != before {
		t.Fatalf("the same request again began %v, replayed %v", d.Begun, d.Replayed)
	}
	if o, _ := l.state.Operation(in[0].Key); string(d.Replayed[0].Receipt) != string(o.Record.Receipt) {
		t.Error("the replayed receipt is not the recorded one")
	}

	other := in[0]
	other.Digest = fixture.Digest("other")
	l.refused(reason.OperationCollision, kernel.Begin{Intent: other})
}

func TestOnlyWhatTheBundleOrdersBegins(t *testing.T) {
	l := newLife(t)
	l.prepared()
	in := l.next().Begin[1]
	for name, change := range map[string]func(*operation.Intent){
		"another request":  func(i *operation.Intent) { i.Digest = fixture.Digest("other") },
		"another resource": func(i *operation.Intent) { i.Resource = "other" },
		"another class":    func(i *operation.Intent) { i.Class = operation.ProviderIdempotent },
		"no parent":        func(i *operation.Intent) { i.Parent = "" },
		"another purpose": func(i *operation.Intent) {
			i.Key = operation.Key(strings.Replace(string(i.Key), "/main", "/second", 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := in
			change(&changed)
			l.refused(reason.CapabilityNotGranted, kernel.Begin{Intent: changed})
		})
	}
}

func TestAMismatchedAttestationStops(t *testing.T) {
	l := newLife(t)
	l.activate()
	in := l.begin(operation.Provision, operation.Materialize, operation.Prepare)
	l.do(l.applied(in[0]))
	attest := l.attest()
	attest.Report.Facts = attest.Report.Facts[1:]
	l.refused(reason.EnvironmentMismatch, attest)
	attest.Report = attestation.Report{}
	l.refused(reason.EnvironmentMismatch, attest)
	// A provider that expects less than the bundle orders is believed no more than an
	// environment that measures less.
	for _, fact := range []string{"guest.memory_pages", "limit.cpu_seconds", "worker.digest", "resource.name"} {
		attest = l.attest()
		for _, facts := range [][]attestation.Fact{attest.Expected.Facts, attest.Report.Facts} {
			i := slices.IndexFunc(facts, func(f attestation.Fact) bool { return f.Name == fact })
			facts[i].Integer *= 2
			if facts[i].Text != "" {
				facts[i].Text += "x"
			}
		}
		l.refused(reason.EnvironmentMismatch, attest)
	}
	l.do(l.applied(in[1]))
	l.want(kernel.EnvironmentMachine, "provisioned")
}

func TestFailureClosesAndCleansUp(t *testing.T) {
	l := newLife(t)
	in := l.running()
	l.do(l.applied(in[0]), l.applied(in[1]), kernel.Fail{Failure: kernel.Failure{
		Conclusion: workorder.Timeout, Stage: "launch", Code: reason.EnvironmentLimitWall, Detail: "too long",
	}})
	l.want(kernel.ExecutionMachine, "failed")
	l.want(kernel.AttemptMachine, "failed")
	l.want(kernel.WorkOrderMachine, "failed")
	if f := l.state.Fence(); f.Phase != workorder.Closing {
		t.Errorf("a failed attempt is %s", f.Phase)
	}
	in = l.begin(operation.Cleanup, operation.Destroy)
	l.do(l.applied(in[0]), l.applied(in[1]))
	l.want(kernel.EnvironmentMachine, "destroyed")
	l.wantDone(workorder.Timeout)
}

func TestCancellationIsARequestUntilItIsProven(t *testing.T) {
	for name, until := range map[string]func(*life) []operation.Intent{
		"before the environment": func(l *life) []operation.Intent { l.activate(); return nil },
		"prepared":               func(l *life) []operation.Intent { l.prepared(); return nil },
		"running":                func(l *life) []operation.Intent { return l.running() },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			for _, in := range until(l) {
				l.do(l.applied(in))
			}
			l.do(kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "asked"}})
			l.want(kernel.AttemptMachine, "cancellation_requested")
			if l.state.Result != nil {
				t.Errorf("a mere request came to %+v", l.state.Result)
			}
			in := l.begin(operation.Cancel)
			l.do(l.applied(in[0]))
			l.want(kernel.AttemptMachine, "cancelled_no_effect")
			l.want(kernel.WorkOrderMachine, "cancelled")
			for !l.next().Done {
				p := l.next()
				if len(p.Begin) == 0 {
					t.Fatalf("no progress: %+v", p)
				}
				for _, in := range p.Begin {
					l.do(kernel.Begin{Intent: in}, l.applied(in))
				}
			}
			l.want(kernel.EnvironmentMachine, "destroyed")
			l.wantDone(workorder.Cancelled)
		})
	}
	t.Run("not proven", func(t *testing.T) {
		l := newLife(t)
		for _, in := range l.running() {
			l.do(l.applied(in))
		}
		l.do(kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "asked"}})
		in := l.begin(operation.Cancel)
		l.do(l.settle(in[0], operation.NotApplied))
		if !l.next().Reconcile {
			t.Fatalf("an unproven cancellation plans %+v", l.next())
		}
		l.do(kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource, Gone: false}})
		l.want(kernel.AttemptMachine, "unknown_terminal")
		if l.state.Result.Conclusion != workorder.Unknown {
			t.Errorf("came to %s", l.state.Result.Conclusion)
		}
	})
}

// A supervisor that dies at any point leaves an attempt that the next one closes.
func TestLossAtEveryPoint(t *testing.T) {
	full := newLife(t)
	full.finish()
	for _, cut := range full.turns {
		l := newLife(t)
		for _, e := range full.events[:cut] {
			s, err := l.kernel.Reduce(l.state, e)
			if err != nil {
				t.Fatal(err)
			}
			l.state = s
		}
		if l.state.Bundle == nil || l.state.Resource == "" {
			continue // Not activated: see TestAbandon.
		}
		l.recover()
		if p := l.next(); !p.Done {
			t.Errorf("after %s: not done: %+v", full.events[cut-1].Family, p)
		}
		if l.state.Result == nil {
			t.Errorf("after %s: no result", full.events[cut-1].Family)
		}
	}
}

// recover does what a dispatcher does with an attempt of an earlier life.
func (l *life) recover() {
	l.t.Helper()
	if !slices.Contains([]lifecycle.State{"accepted", "failed", "cancelled_no_effect", "retryable_failed"}, l.state.Of(kernel.AttemptMachine).State) {
		l.do(kernel.Fence{Why: "the supervisor is gone"})
	}
	for range 20 {
		p := l.next()
		for _, o := range l.state.Operations() {
			if o.State == "intended" && len(p.Resolve) == 0 {
				l.t.Errorf("nobody is asked what became of %s before %+v", o.Intent.Key, p)
			}
		}
		switch {
		case len(p.Resolve) > 0:
			for _, in := range p.Resolve {
				l.do(l.applied(in))
			}
		case p.Reconcile:
			l.do(kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource, Gone: true}})
		case len(p.Begin) > 0:
			for _, in := range p.Begin {
				l.do(kernel.Begin{Intent: in}, l.applied(in))
			}
		default:
			return
		}
	}
}

func TestStaleAnswersAreFactsWithoutATransition(t *testing.T) {
	l := newLife(t)
	in := l.running()
	stale := l.applied(in[0])
	l.do(kernel.Fence{Why: "the supervisor is gone"})
	l.do(stale)
	l.want(kernel.ExecutionMachine, "lost")
	if o, _ := l.state.Operation(in[0].Key); o.State != "applied" {
		t.Errorf("the fact was not kept: %+v", o)
	}
	late := l.settle(in[0], operation.NotApplied)
	l.do(late)
	if o, _ := l.state.Operation(in[0].Key); o.State != "applied" || o.Late != 1 || string(o.Record.Receipt) != string(stale.Receipt) {
		t.Errorf("a late answer moved the operation: %+v", o)
	}
}

func TestAClosingFenceBeginsNothingNew(t *testing.T) {
	l := newLife(t)
	l.prepared()
	start := l.next().Begin[0]
	l.do(kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "asked"}})
	l.refused(reason.KernelPhaseForbids, kernel.Begin{Intent: start})
}

func TestCompletionAccountsForEveryLaunch(t *testing.T) {
	l := newLife(t)
	in := l.running()
	l.do(l.applied(in[0]))
	l.refused(reason.KernelWrongState, kernel.Complete{Report: protocol.CompletionReport{Launches: []operation.Key{in[1].Key}}})
	l.refused(reason.KernelWrongState, kernel.Complete{})
	l.do(l.applied(in[1]))
	l.refused(reason.KernelWrongState, kernel.Complete{})
	l.refused(reason.KernelWrongState, kernel.Complete{Report: protocol.CompletionReport{Launches: []operation.Key{in[1].Key, in[0].Key}}})
}

// Why an attempt was lost is told, not only that it was.
func TestALossKeepsItsReason(t *testing.T) {
	l := newLife(t)
	in := l.running()
	l.do(l.applied(in[0]), l.settle(in[1], operation.Unknown), kernel.Fail{Failure: kernel.Failure{
		Conclusion: workorder.Lost, Stage: "launch", Code: reason.EnvironmentDead, Detail: "the worker died",
	}})
	if p := l.next(); len(p.Resolve) != 1 || p.Resolve[0].Key != in[1].Key {
		t.Fatalf("a doubtful launch plans %+v", p)
	}
	l.do(l.settle(in[1], operation.NotApplied))
	l.do(kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Gone: true}})
	r := l.state.Result
	if r == nil || r.Conclusion != workorder.Lost || r.Code != reason.EnvironmentDead || !strings.Contains(r.Detail, "the worker died") {
		t.Errorf("came to %+v", r)
	}
	l.recover()
	l.wantDone(workorder.Lost)
}

func TestDestroyIsTriedWithinItsBound(t *testing.T) {
	l := newLife(t)
	l.completed()
	l.do(kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.FreezeMissing, Detail: "no output"}})
	tries := 0
	for ; len(l.next().Begin) > 0; tries++ {
		for _, in := range l.next().Begin {
			l.do(kernel.Begin{Intent: in}, l.settle(in, operation.NotApplied))
		}
	}
	if tries != 3 {
		t.Errorf("destroy was tried %d times, want 3", tries)
	}
	if p := l.next(); p.Wait == "" || p.Done {
		t.Errorf("an environment that cannot be destroyed plans %+v", p)
	}
	l.want(kernel.EnvironmentMachine, "destroying")
}

func TestAbandon(t *testing.T) {
	l := newLife(t)
	l.reserve()
	l.do(kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Lost, Code: reason.AttemptLost, Detail: "the supervisor is gone"}})
	l.want(kernel.ReservationMachine, "released")
	l.want(kernel.AttemptMachine, "failed")
	// Nothing had begun, so the next attempt may come.
	l.want(kernel.WorkOrderMachine, "submitted")
	l.wantDone(workorder.Lost)

	l = newLife(t)
	l.reserve()
	l.do(kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.BundleUnpinned, Detail: "no pin"}})
	l.want(kernel.WorkOrderMachine, "failed")
	l.wantDone(workorder.Failed)
}

func TestBlock(t *testing.T) {
	l := newLife(t)
	l.reserve()
	l.do(kernel.Block{Decision: fixture.Digest("decision"), Blocked: kernel.Blocked{Code: reason.PolicyDenied, Why: "no"}})
	l.want(kernel.WorkOrderMachine, "blocked_policy")
	l.want(kernel.ReservationMachine, "released")
	l.wantDone(workorder.Failed)
	if l.state.Blocked != "no" {
		t.Errorf("blocked by %q", l.state.Blocked)
	}
	// Policies that changed are asked again, for an attempt of its own, and may deny again.
	order, err := replay(l.kernel, kernel.State{}, orderEvents(l.events))
	if err != nil {
		t.Fatal(err)
	}
	again := &life{t: t, kernel: l.kernel, state: order}
	r := fixture.Reserved(t, l.kernel)
	r.Ordinal, r.Attempt = 2, "att_01939a3c-7c1e-7000-8000-0000000000f2"
	r.ID, r.Fence.Attempt = "res_01939a3c-7c1e-7000-8000-0000000000f3", r.Attempt
	again.do(kernel.Reserve{Reservation: r})
	again.do(kernel.Block{Decision: fixture.Digest("another"), Blocked: kernel.Blocked{Code: reason.PolicyDenied, Why: "not that either"}})
	again.want(kernel.WorkOrderMachine, "blocked_policy")
}

// orderEvents are those of the work order.
func orderEvents(events []lifecycle.Event) []lifecycle.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e lifecycle.Event) bool { return e.Subject.Machine() != kernel.WorkOrderMachine })
}

// lost drives an attempt to its loss, of which another attempt may follow.
func (l *life) lost(retry kernel.Retry) {
	in := l.running()
	l.do(kernel.Fence{Why: "its supervisor ended"})
	for _, i := range in {
		l.do(l.settle(i, operation.NotApplied))
	}
	l.do(kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource, Gone: true}, Retry: retry})
}

func TestALossIsRetriedWithinItsBounds(t *testing.T) {
	at := lifecycle.Observation{Domain: "host", UnixMilli: fixture.Now}
	for name, tc := range map[string]struct {
		retry  kernel.Retry
		cancel bool
		want   lifecycle.State
	}{
		"a first loss":              {kernel.Retry{At: at, Lot: 250}, false, "retry_wait"},
		"without a clock":           {kernel.Retry{}, false, "failed"},
		"after being asked to stop": {kernel.Retry{At: at}, true, "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			if tc.cancel {
				in := l.running()
				l.do(kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "asked"}}, kernel.Fence{Why: "gone"})
				for _, i := range in {
					l.do(l.settle(i, operation.NotApplied))
				}
				l.do(kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource, Gone: true}, Retry: tc.retry})
			} else {
				l.lost(tc.retry)
			}
			l.want(kernel.WorkOrderMachine, tc.want)
		})
	}
	t.Run("a failure that would come again", func(t *testing.T) {
		l := newLife(t)
		l.running()
		l.do(kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.EnvironmentLimitMemory, Detail: "too large"}, Retry: kernel.Retry{At: at}})
		l.want(kernel.WorkOrderMachine, "failed")
	})
	l := newLife(t)
	l.lost(kernel.Retry{At: at, Lot: 250})
	l.want(kernel.AttemptMachine, "retryable_failed")
	wait := l.state.Retry
	if wait == nil || wait.DelayMillis != 1250 || wait.JitterMillis != 250 || wait.NotBefore.UnixMilli != fixture.Now+1250 {
		t.Fatalf("it waits for %+v", wait)
	}
	early, other := wait.NotBefore, wait.NotBefore
	early.UnixMilli--
	other.Domain = "another clock"
	l.refused(reason.KernelWrongState, kernel.RetryReady{Clock: steady(early)})
	l.refused(reason.KernelWrongState, kernel.RetryReady{Clock: steady(other)})
	blocked := steady(wait.NotBefore)
	blocked.At.State = "blocked"
	l.refused(reason.ClockBlocked, kernel.RetryReady{Clock: blocked})
	l.refused(reason.ClockBlocked, kernel.RetryReady{Clock: kernel.Clock{Last: wait.NotBefore}})
	l.do(kernel.RetryReady{Clock: steady(wait.NotBefore)})
	l.want(kernel.WorkOrderMachine, "ready")
	if l.state.Retry != nil {
		t.Errorf("it still waits for %+v", l.state.Retry)
	}
}

// again reserves the next attempt at the work order, and returns the bundle that may be
// activated.
func (l *life) again() *attemptbundle.Compiled {
	l.t.Helper()
	var order []lifecycle.Event
	for _, e := range l.events {
		if e.Subject.Machine() == kernel.WorkOrderMachine {
			order = append(order, e)
		}
	}
	s, _, err := l.kernel.Replay(kernel.State{}, order...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.state = s
	r := fixture.Reserved(l.t, l.kernel)
	r.Ordinal = s.Attempts + 1
	suffix := strconv.FormatInt(r.Ordinal, 10)
	r.ID, r.Attempt = r.ID+workorder.ReservationID(suffix), r.Attempt+workorder.AttemptID(suffix)
	r.Fence.Attempt = r.Attempt
	expecting := func(b *attemptbundle.Bundle) {
		b.Cause.ExpectedVersion = l.state.Of(kernel.WorkOrderMachine).Version + 1
	}
	if r.Digests, err = fixture.Bundle(l.t, l.kernel, r, expecting).Bundle().Digests(); err != nil {
		l.t.Fatal(err)
	}
	bundle := fixture.Bundle(l.t, l.kernel, r, expecting)
	l.do(kernel.Reserve{Reservation: r})
	return bundle
}

// No more attempts follow a loss than the bundle allows: the fixed one allows one more.
func TestRetriesEnd(t *testing.T) {
	at := lifecycle.Observation{Domain: "host", UnixMilli: fixture.Now}
	l := newLife(t)
	l.lost(kernel.Retry{At: at})
	l.want(kernel.WorkOrderMachine, "retry_wait")
	l.do(kernel.RetryReady{Clock: steady(l.state.Retry.NotBefore)})
	l.do(kernel.Activate{Bundle: l.again(), Now: fixture.At(0)})
	l.do(kernel.Fence{Why: "its supervisor ended"}, kernel.Reconciled{
		Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource, Gone: true}, Retry: kernel.Retry{At: at},
	})
	l.want(kernel.WorkOrderMachine, "failed")
}

// Whatever ends the supervisor before anything begins does not do so for ever.
func TestAttemptsThatNeverBeginEnd(t *testing.T) {
	l := newLife(t)
	l.reserve()
	gone := kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Lost, Code: reason.AttemptLost, Detail: "the supervisor is gone"}}
	for range 9 {
		l.do(gone)
		l.want(kernel.WorkOrderMachine, "submitted")
		l.again()
	}
	l.do(gone)
	l.want(kernel.WorkOrderMachine, "failed")
}

func steady(last lifecycle.Observation) kernel.Clock {
	return kernel.Clock{Domain: last.Domain, At: kernel.Standing{State: "steady", Version: 1, Machine: 1}, Last: last}
}

// Ordinals count: none is given twice, and none is left out.
func TestOrdinalsCount(t *testing.T) {
	l := newLife(t)
	l.do(fixture.Submit())
	r := fixture.Reserved(t, l.kernel)
	r.Ordinal = 2
	l.refused(reason.KernelWrongState, kernel.Reserve{Reservation: r})
	r.Ordinal = 1
	l.do(kernel.Reserve{Reservation: r})
	if l.state.Attempts != 1 {
		t.Errorf("%d attempts", l.state.Attempts)
	}
}

// What later work brings is registered with its class and not ordered: a model call can be
// asked about at its gateway, egress cannot be asked about, and neither is contained (O6).
func TestRegisteredKindsThatNothingOrders(t *testing.T) {
	for kind, class := range map[operation.Kind]operation.EffectClass{operation.ModelCall: operation.Reconcilable, operation.Egress: operation.NonReconcilable} {
		l := newLife(t)
		launch := l.running()[1]
		if got := l.kernel.Classes().Of(kind); got != class || l.kernel.Classes().Contained(kind) {
			t.Errorf("%s is %s, contained %v", kind, got, l.kernel.Classes().Contained(kind))
		}
		in := launch
		in.Kind, in.Class = kind, class
		in.Key, _ = operation.NewKey(in.Key.Namespace(), in.Key.Scope(), in.Key.Actor(), kind, "main")
		if err := in.Check(); err != nil {
			t.Error(err)
		}
		l.refused(reason.EnvironmentUnsupported, kernel.Begin{Intent: in})
		err := l.try(kernel.Begin{Intent: in})
		if want := string(kind) + " is registered and not supported by this release"; !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
