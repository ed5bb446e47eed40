package kernel_test

import (
	"slices"
	"testing"

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

// resetting is what a bundle has that orders a reset.
func resetting(b *attemptbundle.Bundle) { b.Environment.Reset = attemptbundle.ResetBeforeDestroy }

// accepted drives an attempt that orders a reset until it is closed.
func (l *life) accepted() {
	l.change = resetting
	l.completed()
	in := l.begin(operation.Freeze, operation.Collect)
	l.do(l.applied(in[0]), l.applied(in[1]))
	l.do(kernel.Accept{})
}

// emptied is a result of reset by which nothing is left; change alters it.
func (l *life) emptied(in operation.Intent, change func(*protocol.ResetResult)) kernel.Settle {
	r := protocol.ResetResult{Resource: l.state.Resource, Report: fixture.Digest("report")}
	if change != nil {
		change(&r)
	}
	s := l.applied(in)
	s.Outcome = operation.Done(r)
	return s
}

// reset finishes an attempt that orders a reset.
func (l *life) reset() {
	l.accepted()
	in := l.begin(operation.Cleanup, operation.Reset)
	l.do(l.applied(in[0]), l.emptied(in[1], nil))
	l.do(l.applied(l.begin(operation.Destroy)[0]))
}

// An environment whose manifest orders it is emptied once its attempt is closed, stands as a
// fresh one, and is given up: it is not withdrawn, and nothing begins in it again (E6, E9).
func TestAResetComesBeforeDestroy(t *testing.T) {
	l := newLife(t)
	l.accepted()
	in := l.begin(operation.Cleanup, operation.Reset)
	l.want(kernel.EnvironmentMachine, "frozen")
	// It is reset to what it measured of itself, under the policy that orders it.
	r, err := l.kernel.Request(l.state, in[1])
	if err != nil {
		t.Fatal(err)
	}
	var p protocol.ResetParameters
	if err := canonical.Decode(r.Parameters, &p); err != nil || p.Policy != "before_destroy" || p.Attestation != l.state.Evidence("EnvironmentAttestation") || r.Actor != "wasm" {
		t.Errorf("the request is %+v, of %+v, %v", r, p, err)
	}
	l.do(l.applied(in[0]), l.emptied(in[1], nil))
	l.want(kernel.EnvironmentMachine, "provisioned")
	if l.family(kernel.EnvironmentMachine) != "environment.reset" || !l.state.Evidence("ResetReceipt").Valid() {
		t.Errorf("the environment is at %s", l.family(kernel.EnvironmentMachine))
	}
	for _, o := range l.state.Operations() {
		if k := o.Intent.Kind; k == operation.Provision || k == operation.Materialize || k == operation.Start || k == operation.Freeze {
			again := o.Intent
			again.Key, _ = operation.NewKey(again.Key.Namespace(), again.Key.Scope(), again.Key.Actor(), k, "again")
			if err := l.try(kernel.Begin{Intent: again}); err == nil {
				t.Errorf("%s begins again in an environment that was reset", k)
			}
		}
	}
	destroy := l.begin(operation.Destroy)[0]
	l.want(kernel.EnvironmentMachine, "destroying")
	if l.family(kernel.EnvironmentMachine) != "environment.given_up" {
		t.Errorf("the environment is at %s", l.family(kernel.EnvironmentMachine))
	}
	l.do(l.applied(destroy))
	l.want(kernel.EnvironmentMachine, "destroyed")
	l.wantDone(workorder.Succeeded)
}

// What does not prove that nothing is left is no reset, and the environment is destroyed as
// one that failed. Its attempt succeeded all the same.
func TestWhatProvesNoResetIsNone(t *testing.T) {
	for name, answer := range map[string]func(l *life, in operation.Intent) kernel.Settle{
		"not applied": func(l *life, in operation.Intent) kernel.Settle { return l.settle(in, operation.NotApplied) },
		"unknown":     func(l *life, in operation.Intent) kernel.Settle { return l.dissolved(in) },
		"no result":   func(l *life, in operation.Intent) kernel.Settle { return l.applied(in) },
		"a file is left": func(l *life, in operation.Intent) kernel.Settle {
			return l.emptied(in, func(r *protocol.ResetResult) { r.FilesLeft = 1 })
		},
		"a byte is left": func(l *life, in operation.Intent) kernel.Settle {
			return l.emptied(in, func(r *protocol.ResetResult) { r.BytesLeft = 1 })
		},
		"nothing measured": func(l *life, in operation.Intent) kernel.Settle {
			return l.emptied(in, func(r *protocol.ResetResult) { r.Report = "" })
		},
		"another's receipt": func(l *life, in operation.Intent) kernel.Settle {
			return l.emptied(in, func(r *protocol.ResetResult) { r.Resource += "x" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.accepted()
			in := l.begin(operation.Cleanup, operation.Reset)
			l.do(l.applied(in[0]), answer(l, in[1]))
			l.want(kernel.EnvironmentMachine, "failed")
			if got := l.family(kernel.EnvironmentMachine); got != "environment.reset_failed" {
				t.Errorf("the environment is at %s", got)
			}
			l.do(l.applied(l.begin(operation.Destroy)[0]))
			l.want(kernel.EnvironmentMachine, "destroyed")
			l.wantDone(workorder.Succeeded)
		})
	}
}

// dissolved is an answer that came too late to find anything.
func (l *life) dissolved(in operation.Intent) kernel.Settle {
	s := l.settle(in, operation.Unknown)
	s.Outcome.Code = reason.OperationDissolved
	return s
}

// A reset is begun by nobody before its attempt is closed, nor where none is ordered, nor in
// an environment that did not come to be frozen.
func TestWhenAResetBegins(t *testing.T) {
	whole := newLife(t)
	whole.accepted()
	reset := whole.next().Begin[1]
	l := newLife(t)
	l.change = resetting
	l.completed()
	l.refused(reason.KernelWrongState, kernel.Begin{Intent: reset})
	in := l.begin(operation.Freeze, operation.Collect)
	l.do(l.applied(in[0]))
	l.want(kernel.EnvironmentMachine, "frozen")
	l.refused(reason.KernelWrongState, kernel.Begin{Intent: reset})
	// Failed after its outputs were frozen, it is closed, and what it holds goes the same way.
	l.do(l.settle(in[1], operation.NotApplied), kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Stage: "collect", Code: reason.SchemaResultMissing, Detail: "none"}})
	l.begin(operation.Cleanup, operation.Reset)

	failed := newLife(t)
	failed.change = resetting
	failed.completed()
	failed.do(kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.FreezeMissing, Detail: "no output"}})
	failed.begin(operation.Cleanup, operation.Destroy)

	without := newLife(t)
	without.finish()
	if slices.ContainsFunc(without.events, func(e lifecycle.Event) bool { return e.Family == "environment.reset" }) {
		t.Error("an environment was reset that nobody wanted reset")
	}
	for _, o := range without.state.Operations() {
		if o.Intent.Kind == operation.Destroy {
			other := o.Intent
			other.Kind = operation.Reset
			other.Key, _ = operation.NewKey(other.Key.Namespace(), other.Key.Scope(), other.Key.Actor(), operation.Reset, "main")
			if err := without.try(kernel.Begin{Intent: other}); err == nil {
				t.Error("a reset begins that is not ordered")
			}
		}
	}
}
