package kernel_test

import (
	"bytes"
	"io/fs"
	"reflect"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/schemas"
	"github.com/writ-runtime/writ/testing/fixture"
)

// under is the kernel of the fixtures, under the transitions files that change makes of
// each shipped one.
func under(t *testing.T, change func(machine []byte) [][]byte) kernel.Kernel {
	t.Helper()
	names, err := fs.Glob(schemas.FS, "transitions/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var files [][]byte
	for _, name := range names {
		b, err := fs.ReadFile(schemas.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, change(b)...)
	}
	r, err := lifecycle.NewRegistry(files...)
	if err != nil {
		t.Fatal(err)
	}
	k := fixture.Kernel(t)
	return kernel.New(r, k.Classes(), k.Facts())
}

// replaced is a kernel under registries in which one entry says something else.
func replaced(t *testing.T, entry, old, other string) kernel.Kernel {
	t.Helper()
	found := false
	k := under(t, func(b []byte) [][]byte {
		lines := bytes.Split(b, []byte("\n"))
		for i, line := range lines {
			if bytes.Contains(line, []byte(entry)) {
				lines[i] = bytes.Replace(line, []byte(old), []byte(other), 1)
				found = found || !bytes.Equal(line, lines[i])
			}
		}
		return [][]byte{bytes.Join(lines, []byte("\n"))}
	})
	if !found {
		t.Fatalf("no entry %s says %s", entry, old)
	}
	return k
}

// replay reduces events one by one.
func replay(k kernel.Kernel, s kernel.State, events []lifecycle.Event) (kernel.State, error) {
	for _, e := range events {
		var err error
		if s, err = k.Reduce(s, e); err != nil {
			return kernel.State{}, err
		}
	}
	return s, nil
}

// Every event of a life is refused by the reducer if it is of no registered family or
// version, lacks a receipt, or carries another (L3).
func TestTheReducerRefusesWhatIsNotRegistered(t *testing.T) {
	for name, live := range lives() {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			live(l)
			var s kernel.State
			refuse := func(code reason.Code, what string, e lifecycle.Event) {
				t.Helper()
				if _, err := l.kernel.Reduce(s, e); !reason.Is(err, code) {
					t.Errorf("%s with %s: %v, want %s", e.Family, what, err, code)
				}
			}
			for _, e := range l.events {
				tampered := e
				tampered.Family += "_otherwise"
				refuse(reason.KernelIllegalTransition, "another family", tampered)
				tampered = e
				tampered.Machine++
				refuse(reason.KernelIllegalTransition, "another version", tampered)
				tampered = e
				tampered.Guards = append(slices.Clone(e.Guards), lifecycle.Guard{Name: "WeatherReport", Digest: fixture.Digest("weather")})
				refuse(reason.KernelForeignGuard, "a foreign guard", tampered)
				for i, g := range e.Guards {
					tampered.Guards = slices.Delete(slices.Clone(e.Guards), i, i+1)
					refuse(reason.KernelMissingGuard, "no "+g.Name, tampered)
					if tampered.Guards = slices.Clone(e.Guards); lifecycle.ReportsOutcome(g.Name) && e.Subject.Machine() != kernel.OperationMachine && g.Name != lifecycle.EnvironmentReconciliation && g.Name != lifecycle.ReconciliationResult {
						tampered.Guards[i].Digest = fixture.Digest("nobody's receipt")
						refuse(reason.KernelForeignGuard, "a "+g.Name+" of no operation", tampered)
						for _, o := range s.Operations() {
							if len(o.Record.Receipt) > 0 && protocol.ReceiptName(o.Intent.Kind, o.Record.Outcome) != g.Name {
								tampered.Guards[i].Digest = canonical.Sum(o.Record.Receipt)
								refuse(reason.KernelForeignGuard, "the receipt of a "+string(o.Intent.Kind)+" for its "+g.Name, tampered)
							}
						}
					}
				}
				var err error
				if s, err = l.kernel.Reduce(s, e); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// lives are ways an attempt can go, that together take most edges which the kernel takes.
func lives() map[string]func(*life) {
	return map[string]func(*life){
		"finished":     (*life).finish,
		"lost":         func(l *life) { l.running(); l.recover() },
		"checkpointed": (*life).checkpointed,
		"kept":         func(l *life) { l.retained(); l.do(l.applied(l.expire())) },
		"cancelled": func(l *life) {
			for _, in := range l.running() {
				l.do(l.applied(in))
			}
			l.do(kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "asked"}})
			for _, in := range l.begin(operation.Cancel) {
				l.do(l.applied(in))
			}
			l.recover()
		},
		"unproven": func(l *life) {
			for _, in := range l.running() {
				l.do(l.applied(in))
			}
			l.do(kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "asked"}})
			l.do(l.settle(l.begin(operation.Cancel)[0], operation.NotApplied))
			l.do(kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource}})
		},
		"failed": func(l *life) {
			l.completed()
			l.do(kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.FreezeMissing, Detail: "no output"}})
			l.recover()
		},
		"reset": (*life).reset,
		"not reset": func(l *life) {
			l.accepted()
			in := l.begin(operation.Cleanup, operation.Reset)
			l.do(l.applied(in[0]), l.settle(in[1], operation.NotApplied))
			l.do(l.applied(l.begin(operation.Destroy)[0]))
		},
		"counted": func(l *life) {
			l.change = func(b *attemptbundle.Bundle) { b.Ceilings.Calls = 1 }
			l.ran(3)
			l.recover()
		},
		"not counted whole": func(l *life) {
			l.change = func(b *attemptbundle.Bundle) { b.Ceilings.Calls = 1 }
			l.running()
			l.recover()
			l.do(kernel.SettleBudget{ExpectedVersion: l.state.Of(kernel.BudgetMachine).Version, Principal: "uid:1000", Reason: "seen"})
		},
		"abandoned": func(l *life) {
			l.change = func(b *attemptbundle.Bundle) { b.Ceilings.Calls = 1 }
			l.reserve()
			l.do(kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Lost, Code: reason.AttemptLost, Detail: "gone"}})
		},
	}
}

// second is a kernel with two versions of every machine. In the second an environment with
// frozen outputs owes nothing, and a failed attempt is not at its end.
func second(t *testing.T) kernel.Kernel {
	return under(t, func(b []byte) [][]byte {
		newer := bytes.Replace(b, []byte(`"version": 1`), []byte(`"version": 2`), 1)
		lines := bytes.Split(newer, []byte("\n"))
		for i, line := range lines {
			if bytes.Contains(line, []byte(`"to": "frozen"`)) {
				lines[i] = bytes.Replace(line, []byte("destroy_or_retain"), []byte("none"), 1)
			}
			if bytes.Contains(line, []byte(`"to": "failed"`)) && bytes.Contains(line, []byte(`"family": "attempt.`)) {
				lines[i] = bytes.Replace(line, []byte(`"terminal": true`), []byte(`"terminal": false`), 1)
			}
		}
		newer = bytes.Join(lines, []byte("\n"))
		if bytes.Contains(newer, []byte(`"machine": "attempt"`)) {
			newer = bytes.Replace(newer, []byte(`"transitions": [`), []byte(`"transitions": [
				{"from": ["failed"], "family": "attempt.filed", "to": "filed", "receipts": [], "effect_class": "none", "terminal": true, "cleanup": "none", "projector": 1},`), 1)
		}
		return [][]byte{b, newer}
	})
}

// Events of the first version come to the same state under a registry that has a second
// one: at every length of every life, in every part of the state, and in what is to be
// done next (L3).
func TestASecondVersionReplaysOldEventsUnchanged(t *testing.T) {
	for name, live := range lives() {
		t.Run(name, func(t *testing.T) {
			l, both := newLife(t), second(t)
			live(l)
			var old, now kernel.State
			for _, e := range l.events {
				if e.Machine != 1 {
					t.Fatalf("%s was decided under version %d", e.Family, e.Machine)
				}
				var err error
				if old, err = l.kernel.Reduce(old, e); err != nil {
					t.Fatal(err)
				}
				if now, err = both.Reduce(now, e); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(old, now) {
					t.Fatalf("after %s the second version comes to\n%+v\nand the first to\n%+v", e.Family, now, old)
				}
				if old.Bundle == nil {
					continue
				}
				before, err := l.kernel.Next(old)
				if err != nil {
					t.Fatal(err)
				}
				if after, err := both.Next(now); err != nil || !reflect.DeepEqual(before, after) {
					t.Fatalf("after %s the second version plans %+v, %v and the first %+v", e.Family, after, err, before)
				}
			}
		})
	}
}

// New events are decided under the newest version, also those of an attempt that began
// under an older one; a release without that version refuses them.
func TestNewEventsAreDecidedUnderTheNewestVersion(t *testing.T) {
	l := newLife(t)
	l.completed()
	old := len(l.events)
	l.kernel = second(t)
	in := l.begin(operation.Freeze, operation.Collect)
	l.do(l.applied(in[0]), l.applied(in[1]), kernel.Accept{})
	l.wantDone(workorder.Succeeded)
	for i, e := range l.events {
		if want := uint64(1); e.Machine != want && i < old || i >= old && e.Machine != 2 {
			t.Errorf("%s is decided under version %d", e.Family, e.Machine)
		}
	}
	if s, err := replay(l.kernel, kernel.State{}, l.events); err != nil || !reflect.DeepEqual(s, l.state) {
		t.Errorf("replay comes to another state: %v", err)
	}
	if _, err := replay(fixture.Kernel(t), kernel.State{}, l.events); !reason.Is(err, reason.KernelIllegalTransition) {
		t.Errorf("a release that has only the first version reads the second: %v", err)
	}
}

// What is owed of a closed attempt is what the registry says of its states, and of the
// version that they were reached under.
func TestThePlanFollowsTheObligation(t *testing.T) {
	accepted := func(k kernel.Kernel) *life {
		l := newLife(t)
		l.kernel = k
		l.completed()
		in := l.begin(operation.Freeze, operation.Collect)
		l.do(l.applied(in[0]), l.applied(in[1]), kernel.Accept{})
		return l
	}
	l := accepted(fixture.Kernel(t))
	l.begin(operation.Cleanup, operation.Destroy)
	l = accepted(second(t))
	if !l.next().Done {
		t.Errorf("a frozen environment that owes nothing plans %+v", l.next())
	}
	// Under the second version, an environment that froze under the first still owes.
	l = accepted(fixture.Kernel(t))
	l.kernel = second(t)
	l.begin(operation.Cleanup, operation.Destroy)
}

// In every state of a closed attempt's environment, the plan is done exactly when that
// state owes nothing.
func TestEveryObligationIsPlannedFor(t *testing.T) {
	k := fixture.Kernel(t)
	attempts, environments := k.Transitions().Latest(kernel.AttemptMachine), k.Transitions().Latest(kernel.EnvironmentMachine)
	l := newLife(t)
	l.completed()
	for _, a := range attempts.States() {
		if !attempts.Terminal(a) {
			continue
		}
		for _, e := range append(environments.States(), "") {
			s := l.state.At(kernel.AttemptMachine, a).At(kernel.EnvironmentMachine, e)
			p, err := k.Next(s)
			want := environments.Obligation(e) == lifecycle.CleanupNone
			if err != nil || p.Done != want {
				t.Errorf("an attempt %s whose environment is %q plans %+v, %v", a, e, p, err)
			}
			if !want && len(p.Begin) == 0 && !p.Reconcile {
				t.Errorf("an attempt %s whose environment is %q does nothing for it: %+v", a, e, p)
			}
		}
	}
}

// No event frees an attempt of what it owes while its environment stands (L5).
func TestAnAttemptIsNotFreedOfItsObligation(t *testing.T) {
	l := newLife(t)
	l.kernel = replaced(t, `"to": "accepted"`, "destroy_or_retain", "none")
	l.completed()
	in := l.begin(operation.Freeze, operation.Collect)
	l.do(l.applied(in[0]), l.applied(in[1]))
	l.refused(reason.KernelUnmetObligation, kernel.Accept{})
}

// A state holds the meaning of the events that it knows: one that needs a newer projector
// is refused and not left out.
func TestANewerProjectorIsRefused(t *testing.T) {
	l := newLife(t)
	l.kernel = replaced(t, `"environment.requested"`, `"projector": 1`, `"projector": 2`)
	l.refused(reason.ProjectionNewerVersion, kernel.Activate{Bundle: l.reserve(), Now: fixture.At(0)})
}

// ambiguous has launched something of a class that nobody can ask about, and lost the answer.
func ambiguous(t *testing.T) (*life, operation.Intent) {
	t.Helper()
	raw, err := schemas.FS.ReadFile("effect-classes.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	classes, err := operation.ParseClasses(bytes.Replace(raw, []byte(`"launch", "effect_class": "reconcilable"`), []byte(`"launch", "effect_class": "non_reconcilable"`), 1))
	if err != nil {
		t.Fatal(err)
	}
	l := newLife(t)
	l.kernel = kernel.New(l.kernel.Transitions(), classes, l.kernel.Facts())
	in := l.running()
	if in[1].Class != operation.NonReconcilable {
		t.Fatalf("the launch is %s", in[1].Class)
	}
	l.do(l.applied(in[0]), l.settle(in[1], operation.Unknown), kernel.Fail{Failure: kernel.Failure{
		Conclusion: workorder.Unknown, Stage: "launch", Code: reason.AttemptUnknown, Detail: "the answer is lost",
	}})
	return l, in[1]
}

// What nobody can ask about stays unknown, whatever is found of the environment, and no
// event says otherwise (O6).
func TestAnAmbiguityThatNobodyCanAskAboutStaysUnknown(t *testing.T) {
	l, launch := ambiguous(t)
	l.do(l.settle(launch, operation.Applied))
	if o, _ := l.state.Operation(launch.Key); o.State != "unknown" || o.Late != 1 {
		t.Errorf("a later answer settled the operation: %+v", o)
	}
	l.do(kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource, Gone: true}})
	l.want(kernel.AttemptMachine, "unknown_terminal")
	l.want(kernel.WorkOrderMachine, "unknown_terminal")
	l.want(kernel.ExecutionMachine, "unknown_terminal")

	// The same, decided by somebody who believes that nothing was left.
	l, launch = ambiguous(t)
	subject := lifecycle.Of(kernel.ExecutionMachine, string(fixture.Attempt))
	at := l.state.Standing(subject).Version
	s, err := l.kernel.Reduce(l.state, lifecycle.Event{Subject: subject, Version: at + 1, Family: "execution.reconciling", Machine: 1, Body: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	settled := lifecycle.Event{
		Subject: subject, Version: at + 2, Family: "execution.reconciled_failed", Machine: 1, Body: []byte("{}"),
		Guards: []lifecycle.Guard{{Name: lifecycle.ReconciliationResult, Digest: fixture.Digest("found")}},
	}
	if _, err := l.kernel.Reduce(s, settled); !reason.Is(err, reason.KernelEffectClass) {
		t.Errorf("a reconciliation settles what nobody can ask about: %v", err)
	}
	settled.Family = "execution.unknown_terminal"
	if _, err := l.kernel.Reduce(s, settled); err != nil {
		t.Error(err)
	}
	key := lifecycle.Of(kernel.OperationMachine, string(launch.Key))
	answer := l.settle(launch, operation.Applied)
	resolved := lifecycle.Event{
		Subject: key, Version: l.state.Standing(key).Version + 1, Family: "operation.resolved_applied", Machine: 1, Body: []byte("{}"),
		Guards: []lifecycle.Guard{{Name: lifecycle.OperationReceipt, Digest: canonical.Sum(answer.Receipt)}},
	}
	if _, err := l.kernel.Reduce(s, resolved); !reason.Is(err, reason.KernelEffectClass) {
		t.Errorf("an answer settles what only a person may: %v", err)
	}
}

// A kernel is not opened under registries with which the receipt of an operation could be
// refused: settling never refuses a fact.
func TestOpenRefusesClassesThatTheTransitionsDoNotPermit(t *testing.T) {
	files := fstest.MapFS{}
	if err := fs.WalkDir(schemas.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(schemas.FS, path)
		files[path] = &fstest.MapFile{Data: b}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := kernel.Open(files); err != nil {
		t.Fatal(err)
	}
	classes := files["effect-classes.v1.json"]
	classes.Data = bytes.Replace(classes.Data, []byte(`"provision", "effect_class": "reconcilable"`), []byte(`"provision", "effect_class": "non_reconcilable"`), 1)
	if _, err := kernel.Open(files); err == nil {
		t.Error("opened with a provision that nobody can ask about")
	}
}

// Timeout, cancellation requested, cancelled, failed, lost and unknown are different in
// what the attempt came to, in the events that say so, and in the exit status (L4).
func TestEndingsAreDifferent(t *testing.T) {
	fail := func(c workorder.Conclusion, code reason.Code) func(*life) {
		return func(l *life) {
			for _, in := range l.running() {
				l.do(l.applied(in))
			}
			l.do(kernel.Fail{Failure: kernel.Failure{Conclusion: c, Code: code, Detail: "test"}})
		}
	}
	asked := func(l *life) {
		for _, in := range l.running() {
			l.do(l.applied(in))
		}
		l.do(kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "asked"}})
	}
	results, events, exits := map[string]string{}, map[string]string{}, map[int]string{}
	for name, ending := range map[string]func(*life){
		"failed":                 fail(workorder.Failed, reason.AttemptFailed),
		"timeout":                fail(workorder.Timeout, reason.AttemptTimeout),
		"cancellation requested": asked,
		"cancelled": func(l *life) {
			asked(l)
			l.do(l.applied(l.begin(operation.Cancel)[0]))
		},
		"lost": func(l *life) {
			fail(workorder.Lost, reason.AttemptLost)(l)
			l.do(kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource, Gone: true}})
		},
		"unknown": func(l *life) {
			asked(l)
			l.do(l.settle(l.begin(operation.Cancel)[0], operation.Unknown))
			for range 3 { // Within the tries of the bundle it is asked about again.
				for _, in := range l.next().Resolve {
					l.do(l.settle(in, operation.Unknown))
				}
			}
			l.do(kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource}})
		},
	} {
		l := newLife(t)
		ending(l)
		result, exit := "none", reason.AttemptCancellationRequested.Exit()
		if r := l.state.Result; r != nil {
			result, exit = string(r.Conclusion), r.Conclusion.Exit()
		}
		var said string
		for _, e := range l.events {
			if m := e.Subject.Machine(); m == kernel.AttemptMachine || m == kernel.ExecutionMachine {
				said += string(e.Family) + string(e.Body)
			}
		}
		if other, taken := results[result]; taken {
			t.Errorf("%s and %s both come to %q", name, other, result)
		}
		if other, taken := events[said]; taken {
			t.Errorf("%s and %s are the same events", name, other)
		}
		if other, taken := exits[exit.Status()]; taken {
			t.Errorf("%s and %s both exit %d", name, other, exit.Status())
		}
		results[result], events[said], exits[exit.Status()] = name, name, name
	}
}
