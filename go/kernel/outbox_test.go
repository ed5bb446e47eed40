package kernel_test

import (
	"bytes"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// collected drives an attempt of a mode, whose bundle orders proposals, until its outputs
// are collected, and returns what settles that.
func (l *life) collected(mode capability.Mode, ordered ...workorder.Proposal) []kernel.Command {
	l.t.Helper()
	l.change = func(b *attemptbundle.Bundle) { b.Mode, b.Proposals = mode, ordered }
	l.completed()
	in := l.begin(operation.Freeze, operation.Collect)
	return []kernel.Command{l.applied(in[0]), l.applied(in[1])}
}

func ordered(purpose string, effector operation.Kind, destination string) workorder.Proposal {
	return workorder.Proposal{Purpose: purpose, Effector: effector, Destination: destination, Files: []string{"report.json"}, Title: "Count"}
}

func proposal(t *testing.T, o workorder.Proposal) kernel.Proposal {
	t.Helper()
	destination, err := capability.ParseScope(o.Destination)
	if err != nil {
		t.Fatal(err)
	}
	return kernel.Proposal{Purpose: o.Purpose, Proposed: kernel.Proposed{
		Attempt: fixture.Attempt, Kind: o.Effector, Class: operation.Reconcilable, Destination: destination, Content: fixture.Digest("proposal " + o.Purpose),
	}}
}

// proposed drives an attempt until its result, and with it one proposal, is accepted.
func (l *life) proposed() {
	l.t.Helper()
	o := ordered("report", operation.Publish, "folder:releases")
	settled := l.collected(capability.Proposal, o)
	l.do(append(settled, kernel.Accept{Proposals: []kernel.Proposal{proposal(l.t, o)}})...)
}

// send begins the next sending of the one proposal.
func (l *life) send() operation.Intent {
	l.t.Helper()
	d := l.do(kernel.Send{Purpose: "report", Place: fixture.Digest("place")})
	if len(d.Begun) != 1 {
		l.t.Fatalf("%d operations were begun", len(d.Begun))
	}
	return d.Begun[0]
}

// answered settles a sending.
func (l *life) answered(in operation.Intent, k operation.Knowledge, code reason.Code) {
	l.t.Helper()
	s := l.settle(in, k)
	s.Outcome.Code = code
	l.do(s)
}

// stands fails the test unless the one proposal stands where it should.
func (l *life) stands(state lifecycle.State, tries int) {
	l.t.Helper()
	got := l.state.Sendings()
	if len(got) != 1 || got[0].State != state || got[0].Tries != tries {
		l.t.Fatalf("%+v, want one %s after %d tries", got, state, tries)
	}
	again, err := replay(l.kernel, kernel.State{}, l.events)
	if err != nil {
		l.t.Fatal(err)
	}
	if back := again.Sendings(); back[0] != got[0] {
		l.t.Fatalf("replay says %+v, want %+v", back[0], got[0])
	}
}

// Exactly what the bundle orders is proposed, with the reduction that accepts the result,
// or nothing is accepted.
func TestAcceptanceComesWithTheProposalsThatAreOrdered(t *testing.T) {
	publish := ordered("report", operation.Publish, "folder:releases")
	for name, c := range map[string]struct {
		change func(*kernel.Proposal)
		code   reason.Code
	}{
		"another destination": {func(p *kernel.Proposal) { p.Destination = proposal(t, ordered("", "", "folder:other")).Destination }, reason.CapabilityNotGranted},
		"another effector":    {func(p *kernel.Proposal) { p.Kind = operation.ReviewPacket }, reason.CapabilityNotGranted},
		"another purpose":     {func(p *kernel.Proposal) { p.Purpose = "other" }, reason.CapabilityNotGranted},
		"another attempt":     {func(p *kernel.Proposal) { p.Attempt = "att_01939a3c-7c1e-7000-8000-0000000000ff" }, reason.CapabilityNotGranted},
		"another class":       {func(p *kernel.Proposal) { p.Class = operation.ProviderIdempotent }, reason.CapabilityNotGranted},
		"no content":          {func(p *kernel.Proposal) { p.Content = "" }, reason.CapabilityNotGranted},
	} {
		l := newLife(t)
		settled := l.collected(capability.Proposal, publish)
		p := proposal(t, publish)
		c.change(&p)
		t.Log(name)
		l.refused(c.code, append(settled, kernel.Accept{Proposals: []kernel.Proposal{p}})...)
	}
	l := newLife(t)
	settled := l.collected(capability.Proposal, publish)
	l.refused(reason.KernelWrongState, append(settled, kernel.Accept{})...)
	l.refused(reason.KernelWrongState, append(settled, kernel.Accept{Proposals: []kernel.Proposal{proposal(t, publish), proposal(t, publish)}})...)
}

// A result of the shadow namespace proposes to that namespace and to no other, and one of
// mode observe nothing at all: whatever a bundle says (C5, C11).
func TestShadowProposesToItsOwnNamespaceOnly(t *testing.T) {
	l := newLife(t)
	o := ordered("report", operation.ShadowPublish, "none")
	settled := l.collected(capability.Shadow, o)
	d := l.do(append(settled, kernel.Accept{Proposals: []kernel.Proposal{proposal(t, o)}})...)
	for _, e := range d.Events {
		if e.Family == "work_order.applied" && !bytes.Contains(e.Body, []byte(`"namespace":"shadow"`)) {
			t.Errorf("the result is reduced as %s", e.Body)
		}
	}
	for _, mode := range []capability.Mode{capability.Observe, capability.Shadow, capability.Proposal, capability.Production} {
		for _, o := range []workorder.Proposal{
			ordered("report", operation.Publish, "folder:releases"), ordered("report", operation.Branch, "repo:a"),
			ordered("report", operation.ReviewPacket, "folder:reviews"), ordered("report", operation.ShadowPublish, "none"),
		} {
			want := mode == capability.Proposal || mode == capability.Production
			if o.Effector == operation.ShadowPublish {
				want = mode == capability.Shadow
			}
			fixed := newLife(t)
			b := *fixed.reserve().Bundle()
			b.Mode, b.Proposals = mode, []workorder.Proposal{o}
			_, err := attemptbundle.Compile(b)
			if want != (err == nil) || !want && !reason.Is(err, reason.OutboxNotAuthoritative) {
				t.Errorf("a bundle of mode %s with %s: %v", mode, o.Effector, err)
			}
			// The kernel does not rest on the compiler: it refuses the same of a bundle that
			// was recorded by rules of another day.
			l := newLife(t)
			l.forged = true
			settled := l.collected(mode, o)
			_, err = l.kernel.Decide(l.state, append(settled, kernel.Accept{Proposals: []kernel.Proposal{proposal(t, o)}})...)
			if want != (err == nil) || !want && !reason.Is(err, reason.OutboxNotAuthoritative) {
				t.Errorf("a result of mode %s with %s: %v", mode, o.Effector, err)
			}
		}
	}
}

// A proposal leaves its attempt alone: the attempt is closed and removed while it waits, is
// sent, and is in doubt.
func TestAProposalIsSentOnceTheAttemptIsClosed(t *testing.T) {
	l := newLife(t)
	l.proposed()
	l.stands("proposed", 0)
	// What leaves begins alone in its turn.
	begin := kernel.Begin{Intent: l.next().Begin[0]}
	send := kernel.Send{Purpose: "report", Place: fixture.Digest("place")}
	l.refused(reason.KernelWrongState, begin, send)
	l.refused(reason.KernelWrongState, send, begin)
	l.refused(reason.IDUnknown, kernel.Send{Purpose: "other", Place: fixture.Digest("place")})
	in := l.begin(operation.Cleanup, operation.Destroy)
	l.do(l.applied(in[0]), l.applied(in[1]))
	if p := l.next(); !p.Done {
		t.Fatalf("the attempt waits for its outbox: %+v", p)
	}
	if l.kernel.Finished(l.state) {
		t.Fatal("something is left to be sent")
	}
	first := l.send()
	if first.Key.Purpose() != "report" || first.Kind != operation.Publish || first.Resource != l.state.Resource {
		t.Fatalf("%+v", first)
	}
	l.stands("sending", 1)
	if p := l.next(); !p.Done {
		t.Fatalf("the attempt waits for its outbox: %+v", p)
	}
	l.refused(reason.KernelWrongState, kernel.Send{Purpose: "report", Place: fixture.Digest("place")})
	l.refused(reason.KernelWrongState, kernel.Withdraw{Purpose: "report"})
	request, err := l.kernel.Request(l.state, first)
	if err != nil {
		t.Fatal(err)
	}
	again, err := request.Intent("writ", "", operation.Reconcilable, l.state.Resource)
	if err != nil || again.Digest != first.Digest {
		t.Fatalf("the recorded request has digest %s, %v; want %s", again.Digest, err, first.Digest)
	}
	l.answered(first, operation.Applied, "")
	l.stands("sent", 1)
	if !l.kernel.Finished(l.state) {
		t.Fatal("nothing is left")
	}
	l.refused(reason.KernelWrongState, kernel.Send{Purpose: "report", Place: fixture.Digest("place")})
}

// Each answer leads where the registry says, each further sending has a key of its own,
// and what nobody knows is never sent again by itself.
func TestWhatBecomesOfASending(t *testing.T) {
	for name, c := range map[string]struct {
		then func(*life, operation.Intent)
		want lifecycle.State
		// again says that it may be sent once more.
		again bool
	}{
		"it was refused":   {func(l *life, in operation.Intent) { l.answered(in, operation.NotApplied, reason.OutboxOccupied) }, "refused", false},
		"no space is left": {func(l *life, in operation.Intent) { l.answered(in, operation.NotApplied, reason.OutboxFull) }, "proposed", true},
		"nobody knows":     {func(l *life, in operation.Intent) { l.answered(in, operation.Unknown, reason.OutboxIO) }, "unknown", false},
		"asked, it is there": {func(l *life, in operation.Intent) {
			l.answered(in, operation.Unknown, reason.OutboxIO)
			l.answered(in, operation.Applied, "")
		}, "sent", false},
		"asked, it is not there": {func(l *life, in operation.Intent) {
			l.answered(in, operation.Unknown, reason.OutboxIO)
			l.answered(in, operation.NotApplied, reason.OutboxAbsent)
		}, "proposed", true},
		"asked, nobody knows": {func(l *life, in operation.Intent) {
			l.answered(in, operation.Unknown, reason.OutboxIO)
			l.answered(in, operation.Unknown, reason.OutboxDestinationChanged)
		}, "unknown", false},
		"a person found it": {func(l *life, in operation.Intent) {
			l.answered(in, operation.Unknown, reason.OutboxIO)
			l.dispose(in, kernel.ConfirmedApplied)
		}, "sent", false},
		"a person found nothing": {func(l *life, in operation.Intent) {
			l.answered(in, operation.Unknown, reason.OutboxIO)
			l.dispose(in, kernel.ConfirmedAbsent)
		}, "proposed", true},
		"a person gave it up": {func(l *life, in operation.Intent) {
			l.answered(in, operation.Unknown, reason.OutboxIO)
			l.dispose(in, kernel.AbandonedUnknown)
		}, "abandoned_unknown", false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.proposed()
			first := l.send()
			order := l.state.Of(kernel.WorkOrderMachine)
			c.then(l, first)
			l.stands(c.want, 1)
			if l.state.Of(kernel.WorkOrderMachine) != order || l.state.Of(kernel.AttemptMachine).State != "accepted" {
				t.Fatal("the attempt was reopened")
			}
			send := kernel.Send{Purpose: "report", Place: fixture.Digest("elsewhere")}
			if !c.again {
				l.refused(reason.KernelWrongState, send)
				return
			}
			second := l.do(send).Begun[0]
			if second.Key == first.Key || second.Key.Purpose() != "report:2" || second.Digest == first.Digest {
				t.Fatalf("%s with %s follows %s with %s", second.Key, second.Digest, first.Key, first.Digest)
			}
			// An answer about the first moves nothing any more.
			l.answered(first, operation.Applied, "")
			l.stands("sending", 2)
			l.answered(second, operation.Applied, "")
			l.stands("sent", 2)
		})
	}
}

func (l *life) dispose(in operation.Intent, disposition string) {
	l.t.Helper()
	l.do(kernel.Dispose{Disposition: kernel.Disposition{
		Operation: in.Key, Disposition: disposition, Evidence: fixture.Digest("seen"),
		ExpectedVersion: l.state.Of(kernel.WorkOrderMachine).Version, Principal: "uid:1000", Reason: "looked",
	}})
}

// Only a sending that is in doubt waits for a person.
func TestAPersonDisposesOfDoubtOnly(t *testing.T) {
	l := newLife(t)
	l.proposed()
	in := l.send()
	d := kernel.Dispose{Disposition: kernel.Disposition{
		Operation: in.Key, Disposition: kernel.ConfirmedAbsent, Evidence: fixture.Digest("seen"),
		ExpectedVersion: l.state.Of(kernel.WorkOrderMachine).Version, Principal: "uid:1000", Reason: "looked",
	}}
	l.refused(reason.KernelWrongState, d)
	l.answered(in, operation.Unknown, reason.OutboxIO)
	d.ExpectedVersion--
	l.refused(reason.IngressStale, d)
}

// What waits can be taken back by a person, and is denied when the policies of today do
// not allow it.
func TestAProposalThatWaitsEndsWithoutLeaving(t *testing.T) {
	for want, c := range map[lifecycle.State]kernel.Command{
		"withdrawn": kernel.Withdraw{Purpose: "report", CancelRequested: kernel.CancelRequested{Reason: "not now"}},
		"denied":    kernel.DenySending{Purpose: "report", Blocked: kernel.Blocked{Decision: fixture.Digest("today"), Code: reason.CapabilityNotGranted, Why: "not any more"}},
	} {
		l := newLife(t)
		l.proposed()
		l.do(c)
		l.stands(want, 0)
		if why := l.state.Sendings()[0].Why; why == "" {
			t.Errorf("%s for no reason", want)
		}
		l.refused(reason.KernelWrongState, kernel.Send{Purpose: "report", Place: fixture.Digest("place")})
	}
}
