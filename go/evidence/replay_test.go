package evidence_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/evidence"
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

// effect comes to what it is told to.
type effect struct{ out operation.Outcome }

func (e effect) Perform(context.Context, ledger.Permit) operation.Outcome    { return e.out }
func (e effect) Resolve(context.Context, operation.Intent) operation.Outcome { return e.out }

// nothing is that of one that does not take place.
func nothing(why string) effect {
	return effect{operation.Outcome{Knowledge: operation.NotApplied, Code: reason.EnvironmentUnsupported, Detail: why}}
}

// history is a journal with an attempt that failed to be provisioned and was told of it
// again after it was closed, and a work order with two attempts that nothing came of.
func history(t *testing.T) (*fixture.Admitted, []workorder.AttemptID) {
	t.Helper()
	a := fixture.Admit(t, nil)
	opened := a.Next(a.Activation())
	for i := range 20 {
		if len(opened.Permits) == 0 {
			break
		}
		var commands []kernel.Command
		for _, p := range opened.Permits {
			e := nothing("it failed")
			if p.Intent().Kind == operation.Cleanup || p.Intent().Kind == operation.Destroy {
				e.out = operation.Done(protocol.RemovalResult{Resource: a.State.Resource, Gone: true})
			}
			commands = append(commands, a.Run(p, e))
		}
		if i == 0 {
			commands = append(commands, kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.AttemptFailed, Detail: "nothing was provided"}})
		}
		opened = a.Next(commands...)
	}
	if !a.Ledger.Kernel().Finished(a.State) {
		plan, err := a.Ledger.Kernel().Next(a.State)
		t.Fatalf("the attempt does not end: %+v, %v", plan, err)
	}
	late, err := a.Ledger.Resolve(t.Context(), a.State, a.State.Operations()[0].Intent, effect{operation.Done(protocol.PrepareResult{Handle: "h"})})
	if err != nil {
		t.Fatal(err)
	}
	a.Next(late)
	ids := []workorder.AttemptID{fixture.Attempt}
	k := a.Ledger.Kernel()
	var s kernel.State
	for i := range 2 {
		r := fixture.Reserved(t, k)
		id := func(prefix string, n int) string { return fmt.Sprintf("%s_01939a3c-7c1e-7000-8000-%012d", prefix, n) }
		r.WorkOrder = workorder.ID(id("wo", 100))
		r.ID, r.Attempt, r.Ordinal = workorder.ReservationID(id("res", 101+i)), workorder.AttemptID(id("att", 101+i)), int64(i+1)
		r.Fence.Attempt = r.Attempt
		commands := []kernel.Command{kernel.Reserve{Reservation: r}}
		if i == 0 {
			submit := fixture.Submit()
			submit.ID = r.WorkOrder
			commands = append([]kernel.Command{submit}, commands...)
		} else {
			var err error
			if s, err = a.Ledger.Order(t.Context(), r.WorkOrder); err != nil {
				t.Fatal(err)
			}
		}
		opened, err := a.Ledger.Reserve(t.Context(), s, r.Attempt, ledger.Turn{Commands: commands, Actor: "uid:0"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Ledger.Commit(t.Context(), ledger.Turn{Fence: opened.State.Fence(), Actor: "uid:0", Commands: []kernel.Command{
			kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Lost, Detail: "test"}},
		}}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.Attempt)
	}
	return a, ids
}

// replayed replays a journal and returns the last state told of each attempt.
func replayed(t *testing.T, a *fixture.Admitted, until uint64) (evidence.Replayed, map[workorder.AttemptID]kernel.State, int) {
	t.Helper()
	states, again := map[workorder.AttemptID]kernel.State{}, 0
	out, err := evidence.Replay(t.Context(), a.Store, a.Ledger.Kernel(), until, evidence.Watch{Attempt: func(s kernel.State, told bool) {
		if _, before := states[s.Attempt]; before != told {
			t.Errorf("%s was told before: %v, and again: %v", s.Attempt, before, told)
		}
		if told {
			again++
		}
		states[s.Attempt] = s
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out, states, again
}

// One pass over the journal comes to the same states as reading each attempt by itself, at
// every turn, and to the same index twice.
func TestReplay(t *testing.T) {
	a, ids := history(t)
	whole, _, again := replayed(t, a, 0)
	if whole.Refused != nil || whole.Attempts != 3 || whole.Orders != 2 || again != 1 {
		t.Fatalf("%+v, %d told again", whole, again)
	}
	for turn := uint64(1); turn <= whole.Turns; turn++ {
		out, states, _ := replayed(t, a, turn)
		if out.Turns != turn || out.Index == nil || out.Index.Sequence != turn {
			t.Fatalf("up to turn %d: %+v", turn, out)
		}
		for _, id := range ids {
			want, err := ledger.LoadBefore(t.Context(), a.Store, a.Ledger.Kernel(), id, turn+1)
			got, told := states[id]
			if (err == nil) != told {
				t.Errorf("%s up to turn %d: told %v, loaded %v", id, turn, told, err)
			}
			// A later attempt at the same work order says nothing new of one that is over.
			if err == nil && told && a.Ledger.Kernel().Finished(want) {
				continue
			}
			if err == nil && !reflect.DeepEqual(got, want) {
				t.Errorf("%s up to turn %d:\n%+v\nand by itself\n%+v", id, turn, got, want)
			}
		}
	}
	first, err := canonical.DigestOf(whole.Index)
	if err != nil {
		t.Fatal(err)
	}
	a.Reopen()
	later, states, _ := replayed(t, a, 0)
	if again, err := canonical.DigestOf(later.Index); err != nil || again != first {
		t.Errorf("in a later life the index is %s, and was %s: %v", again, first, err)
	}
	if got, err := a.Ledger.State(t.Context(), fixture.Attempt); err != nil || !reflect.DeepEqual(got, states[fixture.Attempt]) {
		t.Errorf("the attempt that was told again: %v", err)
	}
}

// An event that stands in a journal and that the registry does not have, or whose guard is
// missing, is refused by whoever replays it; what it is not about goes on.
func TestReplayRefuses(t *testing.T) {
	attempt := lifecycle.Of(kernel.AttemptMachine, string(fixture.Attempt))
	for name, change := range map[string]func(*lifecycle.Event){
		"an edge that is not there": func(e *lifecycle.Event) { e.Family = "attempt.running" },
		"a missing guard":           func(e *lifecycle.Event) { e.Guards = nil },
		"a version that is unknown": func(e *lifecycle.Event) { e.Machine = 99 },
		"a body that it cannot have": func(e *lifecycle.Event) {
			e.Body = canonical.Raw(`{"until":1}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := fixture.Admit(t, nil)
			d, err := a.Ledger.Kernel().Decide(a.State, kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Lost, Detail: "test"}})
			if err != nil {
				t.Fatal(err)
			}
			for i := range d.Events {
				if d.Events[i].Subject == attempt {
					change(&d.Events[i])
				}
			}
			results, err := a.Store.Append(t.Context(), journal.Batch{
				Identity: "writ/forged/ledger/turn/1", Epoch: a.Store.Epoch(), Actor: "uid:0", At: fixture.Clock{}.Now(), Events: d.Events,
			})
			if err != nil || results[0].Err != nil {
				t.Fatal(err, results)
			}
			var told []string
			out, err := evidence.Replay(t.Context(), a.Store, a.Ledger.Kernel(), 0, evidence.Watch{
				Attempt: func(kernel.State, bool) { t.Error("a refused attempt is told") },
				Refused: func(what string, err error) { told = append(told, what) },
			})
			if err != nil || out.Refused == nil || out.Refused.Sequence != results[0].Sequence || out.Refused.Event.Subject != attempt || out.Index != nil {
				t.Fatalf("%+v, %v", out, err)
			}
			if len(told) != 2 || told[0] != "index" || told[1] != string(fixture.Attempt) {
				t.Errorf("told of %v", told)
			}
			if _, err := ledger.Load(t.Context(), a.Store, a.Ledger.Kernel(), fixture.Attempt); err == nil {
				t.Error("the ledger takes it")
			}
		})
	}
}
