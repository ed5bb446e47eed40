package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// maxBytes and maxCount are the bounds of the fixtures' checkpoints.
const (
	maxBytes = 512
	maxCount = 3
)

// takingCheckpoints makes a bundle take them.
func takingCheckpoints(b *attemptbundle.Bundle) {
	b.Checkpoint = attemptbundle.CheckpointPolicy{
		Policy: workorder.OfferedCheckpoints, PayloadKind: workorder.ToolProgressKind, MaxBytes: maxBytes, MaxCount: maxCount, IntervalMillis: 1000,
	}
}

// taking drives an attempt that takes checkpoints until its workload runs, and returns its
// launch.
func (l *life) taking() operation.Intent {
	l.t.Helper()
	r := fixture.Reserved(l.t, l.kernel)
	l.do(fixture.Submit(), kernel.Reserve{Reservation: r})
	l.do(kernel.Activate{Bundle: fixture.Bundle(l.t, l.kernel, r, takingCheckpoints), Now: fixture.At(0)})
	in := l.begin(operation.Provision, operation.Materialize, operation.Prepare)
	l.do(l.applied(in[0]), l.attest(), l.applied(in[1]), l.applied(in[2]))
	in = l.begin(operation.Start, operation.Launch)
	l.do(l.applied(in[0]))
	return in[1]
}

// progress is a payload that stands at a position.
func progress(position int64) []byte {
	return fmt.Appendf(nil, `{"kind":"writ.checkpoint.tool_progress.v1","next_action":"go on","position":%d,"state":{"at":%d},"stop_condition":"done"}`, position, position)
}

// ask begins the next checkpoint.
func (l *life) ask() operation.Intent {
	l.t.Helper()
	in, err := l.kernel.Checkpoint(l.state)
	if err != nil {
		l.t.Fatal(err)
	}
	l.do(kernel.Begin{Intent: in})
	return in
}

// envelope is what an honest executor proposes for a payload.
func (l *life) envelope(in operation.Intent, payload []byte) workorder.CheckpointEnvelope {
	return workorder.CheckpointEnvelope{
		Kind: workorder.CheckpointKind, Attempt: l.state.Attempt, Fence: l.state.Fence(), Operation: string(in.Key),
		PayloadKind: workorder.ToolProgressKind, Payload: canonical.Sum(payload), PayloadBytes: int64(len(payload)),
		Artifacts: []canonical.Digest{}, Policy: l.state.Decision(),
	}
}

// offer settles a checkpoint operation with an envelope, and has it judged.
func (l *life) offer(in operation.Intent, e workorder.CheckpointEnvelope, payload []byte) []kernel.Command {
	s := l.applied(in)
	s.Outcome = operation.Done(e)
	return []kernel.Command{s, kernel.ProposeCheckpoint{Operation: in.Key, Payload: payload}}
}

// take takes one checkpoint that an honest executor proposes.
func (l *life) take(position int64) []lifecycle.Event {
	l.t.Helper()
	in, payload := l.ask(), progress(position)
	return l.do(l.offer(in, l.envelope(in, payload), payload)...).Events
}

// checkpointed is a life with a validated checkpoint, a refused one, and one that came too
// late, up to the loss of its supervisor.
func (l *life) checkpointed() {
	l.taking()
	l.take(1)
	l.take(1)
	in, payload := l.ask(), progress(2)
	late := l.offer(in, l.envelope(in, payload), payload)
	l.do(kernel.Fence{Why: "gone"})
	l.do(late...)
}

func families(events []lifecycle.Event) string {
	var names []string
	for _, e := range events {
		names = append(names, string(e.Family))
	}
	return strings.Join(names, " ")
}

func TestACheckpointIsProposedJudgedAndRemembered(t *testing.T) {
	l := newLife(t)
	l.taking()
	got := families(l.take(7))
	if want := "operation.applied execution.checkpoint_proposed execution.checkpointed work_order.checkpointed"; got != want {
		t.Errorf("happened %s, want %s", got, want)
	}
	l.want(kernel.ExecutionMachine, "running")
	c := l.state.Checkpoint
	if c == nil || c.Position != 7 || c.Envelope.Payload != canonical.Sum(progress(7)) || c.Tool != fixture.Digest("textstat") {
		t.Fatalf("remembered %+v", c)
	}
	if digest, err := canonical.DigestOf(c.Envelope); err != nil || digest != c.Digest {
		t.Errorf("the envelope is remembered as %s, and is %s: %v", c.Digest, digest, err)
	}
	// A second judgement of the same operation is none.
	if d := l.do(kernel.ProposeCheckpoint{Operation: operation.Key(c.Envelope.Operation), Payload: progress(9)}); len(d.Events) > 0 {
		t.Errorf("it was judged again: %s", families(d.Events))
	}
	l.take(8)
	if l.state.Checkpoint.Position != 8 {
		t.Errorf("the newest stands at %d", l.state.Checkpoint.Position)
	}
	// The same events come to the same state, and the work order's own history is enough.
	var whole, order kernel.State
	for _, e := range l.events {
		var err error
		if whole, err = l.kernel.Reduce(whole, e); err != nil {
			t.Fatal(err)
		}
		if e.Subject.Machine() != kernel.WorkOrderMachine {
			continue
		}
		if order, err = l.kernel.Reduce(order, e); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range map[string]kernel.State{"the attempt": whole, "the work order": order} {
		if s.Checkpoint == nil || s.Checkpoint.Digest != l.state.Checkpoint.Digest {
			t.Errorf("replay of %s remembers %+v", name, s.Checkpoint)
		}
	}
}

// Each way in which a checkpoint is not what it has to be is refused with a reason of its
// own; it is recorded, the execution runs on, and the one before stays the newest.
func TestABadCheckpointIsKeptAndRefused(t *testing.T) {
	large := []byte(`{"kind":"writ.checkpoint.tool_progress.v1","next_action":"go on","position":9,"state":{"at":"` + strings.Repeat("x", maxBytes) + `"},"stop_condition":"done"}`)
	for name, test := range map[string]struct {
		payload string
		change  func(e *workorder.CheckpointEnvelope)
		want    reason.Code
		// unattributable is one that names another operation: it is nothing of this execution.
		unattributable bool
	}{
		"another attempt":            {change: func(e *workorder.CheckpointEnvelope) { e.Attempt = "att_other" }, want: reason.CheckpointForeign},
		"the fence of another":       {change: func(e *workorder.CheckpointEnvelope) { e.Fence.Attempt = "att_other" }, want: reason.CheckpointForeign},
		"another policy decision":    {change: func(e *workorder.CheckpointEnvelope) { e.Policy = fixture.Digest("another") }, want: reason.CheckpointForeign},
		"an unregistered kind":       {change: func(e *workorder.CheckpointEnvelope) { e.PayloadKind = "writ.checkpoint.other.v1" }, want: reason.CheckpointUnregisteredKind},
		"a damaged digest":           {change: func(e *workorder.CheckpointEnvelope) { e.Payload = fixture.Digest("other") }, want: reason.CheckpointDigestMismatch},
		"another size":               {change: func(e *workorder.CheckpointEnvelope) { e.PayloadBytes++ }, want: reason.CheckpointTooLarge},
		"artifacts":                  {change: func(e *workorder.CheckpointEnvelope) { e.Artifacts = []canonical.Digest{fixture.Digest("a")} }, want: reason.CheckpointMalformed},
		"more than the bound":        {payload: string(large), want: reason.CheckpointTooLarge},
		"nothing":                    {payload: " ", want: reason.CheckpointMalformed},
		"no JSON":                    {payload: "position 9", want: reason.CheckpointMalformed},
		"JSON that is not canonical": {payload: strings.Replace(string(progress(9)), ",", ", ", 1), want: reason.CheckpointMalformed},
		"a payload of another kind":  {payload: strings.Replace(string(progress(9)), "tool_progress", "other", 1), want: reason.CheckpointMalformed},
		"a field too many":           {payload: strings.Replace(string(progress(9)), `"state"`, `"shell":"rm","state"`, 1), want: reason.CheckpointMalformed},
		"a field too few":            {payload: strings.Replace(string(progress(9)), `"next_action":"go on",`, "", 1), want: reason.CheckpointMalformed},
		"a state that is no object":  {payload: strings.Replace(string(progress(9)), `{"at":9}`, "9", 1), want: reason.CheckpointMalformed},
		"no position":                {payload: string(progress(0)), want: reason.CheckpointMalformed},
		"the same position":          {payload: string(progress(5)), want: reason.CheckpointNotNewer},
		"an earlier position":        {payload: string(progress(4)), want: reason.CheckpointNotNewer},
		"another operation": {
			change: func(e *workorder.CheckpointEnvelope) { e.Operation = strings.Replace(e.Operation, "/2", "/1", 1) },
			want:   reason.CheckpointForeign, unattributable: true,
		},
		"another document": {change: func(e *workorder.CheckpointEnvelope) { e.Kind = "writ.claim.v1" }, want: reason.CheckpointMalformed, unattributable: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.taking()
			l.take(5)
			before := *l.state.Checkpoint
			payload := progress(9)
			if test.payload != "" {
				payload = []byte(test.payload)
			}
			in := l.ask()
			e := l.envelope(in, payload)
			if test.change != nil {
				test.change(&e)
			}
			d := l.do(l.offer(in, e, payload)...)
			want := "operation.applied execution.checkpoint_proposed execution.checkpoint_refused"
			if test.unattributable {
				want = "operation.applied operation.refused"
			}
			if got := families(d.Events); got != want {
				t.Fatalf("happened %s, want %s", got, want)
			}
			var f kernel.Failure
			if err := canonical.Decode(d.Events[len(d.Events)-1].Body, &f); err != nil || f.Code != test.want || f.Stage != "checkpoint" {
				t.Errorf("refused with %+v (%v), want %s", f, err, test.want)
			}
			if name == "an unregistered kind" && !strings.Contains(f.Detail, `the attempt bundle takes "writ.checkpoint.tool_progress.v1"`) {
				t.Errorf("refused with %q, which does not say what is taken", f.Detail)
			}
			if l.state.Checkpoint.Digest != before.Digest {
				t.Error("it is remembered as validated")
			}
			l.want(kernel.ExecutionMachine, "running")
			l.want(kernel.WorkOrderMachine, "active")
			// What was proposed stands in the record, and the attempt goes on.
			if o, _ := l.state.Operation(in.Key); !o.Judged || len(o.Record.Outcome.Result) == 0 {
				t.Errorf("of the proposal is kept %+v", o)
			}
			l.take(6)
			if l.state.Checkpoint.Position != 6 {
				t.Errorf("the newest stands at %d", l.state.Checkpoint.Position)
			}
		})
	}
}

// A checkpoint of an older fence, or after the workload has ended, is kept as a fact and
// refused, whatever it says (K4).
func TestALateCheckpointIsKeptAndRefused(t *testing.T) {
	for name, test := range map[string]struct {
		ends func(l *life, launch operation.Intent)
		want reason.Code
	}{
		"the fence was raised": {func(l *life, _ operation.Intent) { l.do(kernel.Fence{Why: "gone"}) }, reason.KernelStaleFence},
		"the workload has ended": {func(l *life, launch operation.Intent) {
			l.do(l.applied(launch), kernel.Complete{Report: protocol.CompletionReport{Launches: []operation.Key{launch.Key}}})
		}, reason.CheckpointLate},
		"it is being cancelled": {func(l *life, _ operation.Intent) {
			l.do(kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "asked"}})
		}, reason.CheckpointLate},
		"it has failed": {func(l *life, _ operation.Intent) {
			l.do(kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.ToolTrapped, Detail: "trapped"}})
		}, reason.CheckpointLate},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			launch := l.taking()
			in, payload := l.ask(), progress(3)
			late := l.offer(in, l.envelope(in, payload), payload)
			test.ends(l, launch)
			execution, order := l.state.Of(kernel.ExecutionMachine), l.state.Of(kernel.WorkOrderMachine)
			d := l.do(late...)
			if got := families(d.Events); got != "operation.applied operation.refused" {
				t.Fatalf("happened %s", got)
			}
			var f kernel.Failure
			if err := canonical.Decode(d.Events[1].Body, &f); err != nil || f.Code != test.want {
				t.Errorf("refused with %+v (%v), want %s", f, err, test.want)
			}
			if l.state.Checkpoint != nil || l.state.Of(kernel.ExecutionMachine) != execution || l.state.Of(kernel.WorkOrderMachine) != order {
				t.Error("it moved something")
			}
		})
	}
}

// A checkpoint begins while the execution runs, in order, within the bound of the bundle, one
// at a time; and the same one again is answered from the record (O4).
func TestWhenACheckpointBegins(t *testing.T) {
	l := newLife(t)
	launch := l.taking()
	next := func() operation.Intent {
		in, err := l.kernel.Checkpoint(l.state)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	first := next()
	l.do(kernel.Begin{Intent: first})
	l.refused(reason.OperationUnknownOutcome, kernel.Begin{Intent: first})
	l.refused(reason.KernelWrongState, kernel.Begin{Intent: next()}) // The first is open.
	payload := progress(1)
	l.do(l.offer(first, l.envelope(first, payload), payload)...)
	record, _ := l.state.Operation(first.Key)
	if d := l.do(kernel.Begin{Intent: first}); len(d.Events) > 0 || len(d.Begun) > 0 || len(d.Replayed) != 1 || string(d.Replayed[0].Receipt) != string(record.Record.Receipt) ||
		string(d.Replayed[0].Outcome.Result) != string(record.Record.Outcome.Result) {
		t.Errorf("the same checkpoint again: %+v", d)
	}
	other := first
	other.Digest = fixture.Digest("other")
	l.refused(reason.OperationCollision, kernel.Begin{Intent: other})

	second := next()
	skipped := second
	skipped.Key = operation.Key(strings.TrimSuffix(string(second.Key), "2") + "3")
	l.refused(reason.CapabilityNotGranted, kernel.Begin{Intent: skipped}) // Its digest is of number two.
	for _, purpose := range []string{"main", "0", "02", "-1", "4", "x"} {
		foreign := second
		foreign.Key = operation.Key(strings.TrimSuffix(string(second.Key), "2") + purpose)
		l.refused(reason.CapabilityNotGranted, kernel.Begin{Intent: foreign})
	}
	l.take(2)
	l.take(3)
	l.refused(reason.CapabilityNotGranted, kernel.Begin{Intent: next()}) // Number four of three.

	ended := newLife(t)
	launch = ended.taking()
	in, err := ended.kernel.Checkpoint(ended.state)
	if err != nil {
		t.Fatal(err)
	}
	ended.do(ended.applied(launch), kernel.Complete{Report: protocol.CompletionReport{Launches: []operation.Key{launch.Key}}})
	ended.refused(reason.KernelWrongState, kernel.Begin{Intent: in})

	none := newLife(t)
	none.do(none.applied(none.running()[0]))
	if in, err = none.kernel.Checkpoint(none.state); err != nil {
		t.Fatal(err)
	}
	none.refused(reason.CapabilityNotGranted, kernel.Begin{Intent: in})
}

// Number three cannot begin before number two, even with its own digest.
func TestCheckpointsBeginInOrder(t *testing.T) {
	l, ahead := newLife(t), newLife(t)
	for _, x := range []*life{l, ahead} {
		x.taking()
		x.take(1)
	}
	ahead.take(2)
	in, err := ahead.kernel.Checkpoint(ahead.state)
	if err != nil {
		t.Fatal(err)
	}
	l.refused(reason.KernelWrongState, kernel.Begin{Intent: in})
}

// secondAttempt reserves the second attempt of the work order, after the first was lost with a
// checkpoint, and returns its bundle under the change.
func (l *life) secondAttempt(change func(b *attemptbundle.Bundle)) *attemptbundle.Compiled {
	l.t.Helper()
	const id, res = "att_01939a3c-7c1e-7000-8000-00000000000d", "res_01939a3c-7c1e-7000-8000-00000000000e"
	var order kernel.State
	for _, e := range l.events {
		if e.Subject.Machine() == kernel.WorkOrderMachine {
			var err error
			if order, err = l.kernel.Reduce(order, e); err != nil {
				l.t.Fatal(err)
			}
		}
	}
	r := fixture.Reserved(l.t, l.kernel)
	r.ID, r.Attempt, r.Ordinal, r.Fence.Attempt = res, id, 2, id
	var err error
	if r.Digests.Fence, err = canonical.DigestOf(r.Fence); err != nil {
		l.t.Fatal(err)
	}
	l.state = order
	l.do(kernel.Reserve{Reservation: r})
	return fixture.Bundle(l.t, l.kernel, r, func(b *attemptbundle.Bundle) {
		takingCheckpoints(b)
		b.Cause.ExpectedVersion = l.state.Of(kernel.WorkOrderMachine).Version
		if change != nil {
			change(b)
		}
	})
}

// startingFrom makes a bundle start from a checkpoint.
func startingFrom(p *attemptbundle.StartingPoint) func(b *attemptbundle.Bundle) {
	return func(b *attemptbundle.Bundle) {
		b.StartsFrom = p
		b.Inputs.Inputs = append(b.Inputs.Inputs, protocol.InputMount{Name: workorder.CheckpointInput, Files: []protocol.InputFile{{
			Path: workorder.CheckpointFile, Size: p.PayloadBytes, Digest: p.Payload,
		}}})
	}
}

// lostWithCheckpoints is a first attempt that took two checkpoints, had one refused, and was
// lost: its work order waits for nothing before the next.
func lostWithCheckpoints(t *testing.T) (l *life, newest *attemptbundle.StartingPoint, older kernel.Checkpoint) {
	l = newLife(t)
	l.taking()
	l.take(4)
	older = *l.state.Checkpoint
	l.take(9)
	l.take(9)
	newest = l.state.StartsFrom(fixture.Digest("textstat"), workorder.ToolProgressKind)
	l.do(kernel.Fence{Why: "gone"})
	for _, in := range l.next().Resolve {
		l.do(kernel.Settle{Key: in.Key, Outcome: operation.Outcome{Knowledge: operation.Unknown, Code: reason.OperationDissolved}, Receipt: canonical.Raw(`{}`), Generation: l.state.Generation})
	}
	at := lifecycle.Observation{Domain: "host", UnixMilli: fixture.Now}
	l.do(kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource, Gone: true}, Retry: kernel.Retry{At: at}})
	l.want(kernel.WorkOrderMachine, "retry_wait")
	later := lifecycle.Observation{Domain: "host", UnixMilli: fixture.Now + 60_000}
	l.do(kernel.RetryReady{Clock: kernel.Clock{Domain: "host", At: kernel.Standing{State: "steady", Version: 1, Machine: 1}, Last: later}})
	return l, newest, older
}

// A new attempt starts from the newest validated checkpoint of its work order and from
// nothing else: the reducer refuses the activation of any other (K5, K7).
func TestAnAttemptStartsFromTheNewestValidatedCheckpoint(t *testing.T) {
	l, newest, older := lostWithCheckpoints(t)
	if newest == nil || newest.Position != 9 || newest.Attempt != fixture.Attempt {
		t.Fatalf("the newest is %+v", newest)
	}
	stale := *newest
	stale.Envelope, stale.Payload, stale.Position = older.Digest, older.Envelope.Payload, older.Position
	invented := *newest
	invented.Payload = fixture.Digest("invented")
	for name, change := range map[string]func(b *attemptbundle.Bundle){
		"none":         nil,
		"an older one": startingFrom(&stale),
		"another payload under the same envelope": startingFrom(&invented),
	} {
		t.Run(name, func(t *testing.T) {
			fresh := newLife(t)
			fresh.events = append([]lifecycle.Event(nil), l.events...)
			bundle := fresh.secondAttempt(change)
			fresh.refused(reason.BundleDigestMismatch, kernel.Activate{Bundle: bundle, Now: fixture.At(0)})
		})
	}
	bundle := l.secondAttempt(startingFrom(newest))
	l.do(kernel.Activate{Bundle: bundle, Now: fixture.At(0)})
	l.want(kernel.AttemptMachine, "leased")

	// Its own checkpoints have to stand further than the one it started from.
	in := l.begin(operation.Provision, operation.Materialize, operation.Prepare)
	l.do(l.applied(in[0]), l.attest(), l.applied(in[1]), l.applied(in[2]))
	in = l.begin(operation.Start, operation.Launch)
	l.do(l.applied(in[0]))
	if got := families(l.take(9)); !strings.HasSuffix(got, "execution.checkpoint_refused") {
		t.Errorf("a checkpoint no further than where it started: %s", got)
	}
	l.take(10)
	if l.state.Checkpoint.Position != 10 || l.state.Checkpoint.Envelope.Attempt == fixture.Attempt {
		t.Errorf("the newest is %+v", l.state.Checkpoint)
	}
}

// What another tool made says nothing to this one: it starts from nothing.
func TestAnotherToolStartsFromNothing(t *testing.T) {
	l, newest, _ := lostWithCheckpoints(t)
	if p := l.state.StartsFrom(fixture.Digest("another tool"), workorder.ToolProgressKind); p != nil {
		t.Errorf("another tool starts from %+v", p)
	}
	if p := l.state.StartsFrom(fixture.Digest("textstat"), ""); p != nil {
		t.Errorf("work without checkpoints starts from %+v", p)
	}
	another := func(b *attemptbundle.Bundle) { b.Pins.Tools[0].Digest = fixture.Digest("another tool") }
	refused := newLife(t)
	refused.events = append([]lifecycle.Event(nil), l.events...)
	bundle := refused.secondAttempt(func(b *attemptbundle.Bundle) { another(b); startingFrom(newest)(b) })
	refused.refused(reason.BundleDigestMismatch, kernel.Activate{Bundle: bundle, Now: fixture.At(0)})
	l.do(kernel.Activate{Bundle: l.secondAttempt(another), Now: fixture.At(0)})
}

// Whatever is done to one honest proposal, in one place or in many, nothing starts from it;
// and nothing that is proposed is ever refused as a command: it is a fact.
func TestNothingButAnHonestCheckpointIsValidated(t *testing.T) {
	l := newLife(t)
	l.taking()
	l.take(5)
	in := l.ask()
	honest := progress(6)
	rapid.Check(t, func(t *rapid.T) {
		e, payload := l.envelope(in, honest), append([]byte(nil), honest...)
		changes := rapid.SliceOfNDistinct(rapid.IntRange(0, 7), 0, 4, rapid.ID[int]).Draw(t, "changes")
		for _, c := range changes {
			switch c {
			case 0:
				e.Attempt += "x"
			case 1:
				e.Fence.Generation += uint64(rapid.IntRange(1, 5).Draw(t, "generation"))
			case 2:
				e.Operation += "x"
			case 3:
				e.PayloadKind += "1"
			case 4:
				e.Payload = canonical.Sum([]byte(rapid.String().Draw(t, "payload")))
			case 5:
				e.PayloadBytes += int64(rapid.IntRange(1, 1<<20).Draw(t, "bytes"))
			case 6:
				e.Policy = canonical.Sum(honest)
			case 7:
				payload[rapid.IntRange(0, len(payload)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
			}
		}
		d, err := l.kernel.Decide(l.state, l.offer(in, e, payload)...)
		if err != nil {
			t.Fatal(err)
		}
		if validated := d.State.Checkpoint.Position == 6; validated != (len(changes) == 0) {
			t.Fatalf("after changes %v: %s", changes, families(d.Events))
		}
	})
}
