package ledger_test

import (
	"reflect"
	"testing"

	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// draft begins a turn with commands.
func (l *life) draft(commands ...kernel.Command) *ledger.Draft {
	l.t.Helper()
	d, err := l.ledger.Draft(l.t.Context(), l.state.Fence())
	if err == nil {
		err = d.Add(commands...)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return d
}

func (l *life) activation() kernel.Activate {
	l.t.Helper()
	return kernel.Activate{Bundle: fixture.Bundle(l.t, l.ledger.Kernel(), l.state.Reserved, nil), Now: fixture.At(0)}
}

var changedMyMind = kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Failed, Detail: "changed my mind"}}

// A drafted turn comes to what the same commands come to at once.
func TestADraftIsTheTurn(t *testing.T) {
	drafted, plain := newLife(t), newLife(t)
	drafted.submit()
	plain.submit()
	d := drafted.draft(drafted.activation())
	plan, err := d.Next()
	if err != nil || len(plan.Begin) == 0 {
		t.Fatalf("the draft plans %+v, %v", plan, err)
	}
	var begin []kernel.Command
	for _, in := range plan.Begin {
		begin = append(begin, kernel.Begin{Intent: in})
	}
	got, err := drafted.ledger.Commit(t.Context(), ledger.Turn{Fence: drafted.state.Fence(), Draft: d, Commands: begin, Actor: "uid:0"})
	if err != nil {
		t.Fatal(err)
	}
	want := plain.next(plain.activation())
	if len(got.Permits) != len(want.Permits) || !reflect.DeepEqual(got.State, want.State) {
		t.Error("the drafted turn opens something else")
	}
	for i, l := range []*life{drafted, plain} {
		s, err := ledger.Load(t.Context(), l.store, l.ledger.Kernel(), fixture.Attempt)
		if err != nil || !reflect.DeepEqual(s, want.State) {
			t.Errorf("journal %d holds another turn: %v", i, err)
		}
	}
	// A draft is good for one turn.
	drafted.state = got.State
	drafted.refused(reason.KernelWrongState, ledger.Turn{Fence: drafted.state.Fence(), Draft: d})
}

// What happened to the attempt since is what a draft is decided on.
func TestADraftOfAnotherStateIsDecidedAgain(t *testing.T) {
	l := newLife(t)
	l.submit()
	d := l.draft(l.activation())
	l.turn(changedMyMind)
	l.refused(reason.KernelWrongState, ledger.Turn{Fence: l.state.Fence(), Draft: d})
}

// Nothing of a draft is recorded once a command of it was refused.
func TestARefusedDraftIsNoTurn(t *testing.T) {
	l := newLife(t)
	l.submit()
	d := l.draft(l.activation())
	if err := d.Add(l.activation()); !reason.Is(err, reason.KernelWrongState) {
		t.Fatalf("the second activation: %v", err)
	}
	if _, err := d.Next(); !reason.Is(err, reason.KernelWrongState) {
		t.Errorf("a refused draft has a plan: %v", err)
	}
	l.refused(reason.KernelWrongState, ledger.Turn{Fence: l.state.Fence(), Draft: d})
	s, err := ledger.Load(t.Context(), l.store, l.ledger.Kernel(), fixture.Attempt)
	if err != nil || s.Events() != l.state.Events() {
		t.Errorf("the attempt has %d events after %d: %v", s.Events(), l.state.Events(), err)
	}
}

func TestAStaleFenceDraftsNothing(t *testing.T) {
	l := newLife(t)
	l.activate()
	old := l.state.Fence()
	l.turn(kernel.Fence{Why: "test"})
	if _, err := l.ledger.Draft(t.Context(), old); !reason.Is(err, reason.KernelStaleFence) {
		t.Errorf("got %v", err)
	}
}
