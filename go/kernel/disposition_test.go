package kernel_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
)

// doubted drives an attempt until it ended unknown: nobody knows what became of its start
// and launch, nor whether something of its environment lives.
func (l *life) doubted(before ...kernel.Command) []operation.Intent {
	l.t.Helper()
	in := l.running()
	if len(before) > 0 {
		l.do(before...)
	}
	l.do(kernel.Fence{Why: "gone"})
	for range 3 {
		for _, i := range in {
			l.answered(i, operation.Unknown, reason.OperationUnknownOutcome)
		}
	}
	l.do(kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource, Why: "it cannot be seen"}})
	l.want(kernel.WorkOrderMachine, "unknown_terminal")
	return in
}

func (l *life) disposition(key operation.Key, what string) kernel.Dispose {
	return kernel.Dispose{Disposition: kernel.Disposition{
		Operation: key, Disposition: what, Evidence: fixture.Digest("seen"),
		ExpectedVersion: l.state.Of(kernel.WorkOrderMachine).Version, Principal: "uid:1000", Reason: "looked",
	}}
}

// provision is the key that stands for the environment.
func (l *life) provision() operation.Key {
	for _, o := range l.state.Operations() {
		if o.Intent.Kind == operation.Provision {
			return o.Intent.Key
		}
	}
	l.t.Fatal("nothing was provisioned")
	return ""
}

// What a person says of one effect and of another counts together, in whatever order it is
// said: nothing is done again of which one part took place or will never be known (K6, O6).
func TestTheHardestDispositionCounts(t *testing.T) {
	all := []string{kernel.ConfirmedAbsent, kernel.ConfirmedApplied, kernel.AbandonedUnknown}
	order := map[string]lifecycle.State{kernel.ConfirmedAbsent: "ready", kernel.ConfirmedApplied: "applied", kernel.AbandonedUnknown: "abandoned_unknown"}
	for i, first := range all {
		for j, second := range all {
			want := order[all[max(i, j)]]
			l := newLife(t)
			in := l.doubted()
			l.do(l.disposition(in[0].Key, first))
			l.want(kernel.WorkOrderMachine, "unknown_terminal") // The rest is in doubt still.
			l.do(l.disposition(l.provision(), second))
			l.want(kernel.WorkOrderMachine, want)
			l.want(kernel.AttemptMachine, "unknown_terminal")
		}
	}
}

// As long as something of the environment may live, nothing follows from what a person says
// of the operations in it.
func TestTheEnvironmentIsJudgedToo(t *testing.T) {
	l := newLife(t)
	for _, in := range l.doubted() {
		l.do(l.disposition(in.Key, kernel.ConfirmedAbsent))
	}
	l.want(kernel.WorkOrderMachine, "unknown_terminal")
	l.do(l.disposition(l.provision(), kernel.ConfirmedAbsent))
	l.want(kernel.WorkOrderMachine, "ready")
}

// Only what is in doubt can be judged, and only once: a person's word is no way to move what
// is known, nor to be given more tries for nothing.
func TestOnlyWhatIsInDoubtIsJudged(t *testing.T) {
	l := newLife(t)
	in := l.doubted()
	for _, o := range l.state.Operations() {
		if o.State == "applied" && o.Intent.Kind != operation.Provision {
			l.refused(reason.KernelWrongState, l.disposition(o.Intent.Key, kernel.ConfirmedAbsent))
		}
	}
	destroy := l.next().Begin
	l.do(kernel.Begin{Intent: destroy[0]}, kernel.Begin{Intent: destroy[1]})
	for _, i := range destroy {
		l.refused(reason.KernelWrongState, l.disposition(i.Key, kernel.ConfirmedAbsent))
	}
	l.do(l.disposition(in[0].Key, kernel.ConfirmedAbsent))
	l.refused(reason.KernelWrongState, l.disposition(in[0].Key, kernel.ConfirmedAbsent))
	l.do(l.disposition(l.provision(), kernel.ConfirmedAbsent))
	l.refused(reason.KernelWrongState, l.disposition(l.provision(), kernel.ConfirmedAbsent))
	l.want(kernel.WorkOrderMachine, "ready")
}

// A removal that was given up is tried again once a person has looked, as often as before
// and no more.
func TestAPersonGivesMoreTriesOnceRemovalIsGivenUp(t *testing.T) {
	l := newLife(t)
	l.doubted()
	exhaust := func() (tries int) {
		for {
			p := l.next()
			if p.Wait != "" {
				return tries
			}
			var settled []kernel.Command
			for _, in := range p.Begin {
				l.do(kernel.Begin{Intent: in})
				settled = append(settled, l.settle(in, operation.NotApplied))
			}
			l.do(settled...)
			tries++
		}
	}
	first := exhaust()
	l.do(l.disposition(l.provision(), kernel.ConfirmedAbsent))
	if second := exhaust(); second != first {
		t.Errorf("%d tries, and then %d", first, second)
	}
	version := l.state.Of(kernel.WorkOrderMachine)
	l.do(l.disposition(l.provision(), kernel.ConfirmedAbsent))
	if third := exhaust(); third != first {
		t.Errorf("%d tries, and then %d", first, third)
	}
	if l.state.Of(kernel.WorkOrderMachine) != version {
		t.Error("the work order was moved once more")
	}
}

// A cancelled work order does not come back because nothing of it took place.
func TestACancelledOrderStaysCancelled(t *testing.T) {
	l := newLife(t)
	l.doubted(kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "not now"}})
	for _, o := range l.state.Operations() {
		if o.State == "unknown" {
			l.do(l.disposition(o.Intent.Key, kernel.ConfirmedAbsent))
		}
	}
	if l.state.Of(kernel.WorkOrderMachine).State == "unknown_terminal" {
		l.do(l.disposition(l.provision(), kernel.ConfirmedAbsent))
	}
	l.want(kernel.WorkOrderMachine, "cancelled")
}
