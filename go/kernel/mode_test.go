package kernel_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
)

// submittedIn submits an order in a mode, and nothing more.
func submittedIn(t *testing.T, mode capability.Mode) *life {
	t.Helper()
	l := newLife(t)
	submit := fixture.Submit()
	submit.Submitted.Order = canonical.Raw(`{"kind":"writ.workorder.v1","mode":"` + string(mode) + `"}`)
	l.do(submit)
	return l
}

func raise(l *life, mode, shown capability.Mode) kernel.RaiseMode {
	return kernel.RaiseMode{Ingress: fixture.Digest("ingress"), ModeRaised: kernel.ModeRaised{
		Mode: mode, Principal: "uid:1000", Reason: "looked", ExpectedVersion: l.state.Of(kernel.WorkOrderMachine).Version,
		Evidence: kernel.ModeEvidence{Attempt: fixture.Attempt, Mode: shown, Bundle: fixture.Digest("b"), Tool: fixture.Digest("t"), Adapter: fixture.Digest("a"), Result: fixture.Digest("r")},
	}}
}

// An order is approved for the mode that it asks for, by an attempt in a lower one; nothing
// else is raised, and by nothing else (C7, R3).
func TestRaisingAMode(t *testing.T) {
	modes := []capability.Mode{capability.Observe, capability.Shadow, capability.Proposal, capability.Production}
	for _, asked := range modes {
		for _, to := range modes {
			for _, shown := range modes {
				l := submittedIn(t, asked)
				c := raise(l, to, shown)
				switch {
				case to != asked:
					l.refused(reason.ModeNotAsked, c)
				case shown == asked || !asked.AtLeast(shown):
					l.refused(reason.ModeNoEvidence, c)
				default:
					l.do(c)
					if r := l.state.Raised; r == nil || *r != c.ModeRaised {
						t.Errorf("%+v was recorded as %+v", c.ModeRaised, r)
					}
					l.want(kernel.WorkOrderMachine, "submitted")
				}
			}
		}
	}
}

func TestAnApprovalIsOfWhatThePersonSaw(t *testing.T) {
	l := submittedIn(t, capability.Production)
	c := raise(l, capability.Production, capability.Shadow)
	l.do(c)
	l.refused(reason.IngressStale, c)
}

// What was blocked is decided anew once a person has approved it; what waits for anything
// else goes on waiting.
func TestApprovalEndsOnlyTheWaitForIt(t *testing.T) {
	for before, after := range map[lifecycle.State]lifecycle.State{
		"blocked_policy": "submitted", "blocked_budget": "blocked_budget", "blocked_dependency": "blocked_dependency", "retry_wait": "retry_wait", "ready": "ready",
	} {
		l := submittedIn(t, capability.Production)
		l.state = l.state.At(kernel.WorkOrderMachine, before)
		l.state.Blocked = "why"
		l.do(raise(l, capability.Production, capability.Shadow))
		l.want(kernel.WorkOrderMachine, after)
		if cleared := l.state.Blocked == ""; cleared != (before == "blocked_policy") {
			t.Errorf("from %s: it is blocked by %q", before, l.state.Blocked)
		}
	}
	for _, over := range []lifecycle.State{"active", "applied", "cancelled", "unknown_terminal"} {
		l := submittedIn(t, capability.Production)
		l.state = l.state.At(kernel.WorkOrderMachine, over)
		if err := l.try(raise(l, capability.Production, capability.Shadow)); err == nil {
			t.Errorf("an order that is %s was raised", over)
		}
	}
}

// Only an accepted attempt shows anything, and what it shows is what ran.
func TestEvidenceOfAMode(t *testing.T) {
	l := newLife(t)
	l.running()
	if _, err := kernel.EvidenceOf(l.state); !reason.Is(err, reason.ModeNoEvidence) {
		t.Errorf("a running attempt: %v", err)
	}
	l = newLife(t)
	l.finish()
	e, err := kernel.EvidenceOf(l.state)
	b := l.state.Bundle.Bundle()
	if err != nil || e.Mode != b.Mode || e.Bundle != l.state.Bundle.Digest() || e.Tool != b.Pins.Tools[0].Digest || e.Adapter != b.Pins.Adapter.Digest || !e.Result.Valid() {
		t.Errorf("%+v, %v", e, err)
	}
}
