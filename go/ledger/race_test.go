package ledger_test

import (
	"sync"
	"testing"

	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// racers is how many race for one thing.
const racers = 64

// race has every racer do it at once, each with a ledger that remembers what the journal
// said before, and returns the winners' answers. Every loser is told why.
func race(t *testing.T, l *life, do func(one *ledger.Ledger, s kernel.State) (ledger.Opened, error)) []ledger.Opened {
	t.Helper()
	var (
		mu    sync.Mutex
		won   []ledger.Opened
		ready sync.WaitGroup
		start = make(chan struct{})
		done  sync.WaitGroup
	)
	for range racers {
		ready.Add(1)
		done.Go(func() {
			one := ledger.New(l.store, l.ledger.Kernel(), fixture.Clock{})
			s, err := one.State(t.Context(), fixture.Attempt)
			ready.Done()
			if err != nil {
				t.Error(err)
				return
			}
			<-start
			opened, err := do(one, s)
			mu.Lock()
			defer mu.Unlock()
			refusal, ok := reason.As(err)
			switch {
			case err == nil:
				won = append(won, opened)
			case !ok || refusal.Code.Exit() != reason.ExitConflict && refusal.Code != reason.KernelWrongState && refusal.Code != reason.BudgetBlocked:
				t.Errorf("a loser was told %v", err)
			}
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
	return won
}

// Of many that activate one reservation at once, one wins: one lease, one set of permits.
// Whoever asked for exactly what won is answered by it, and gets no permit.
func TestOneActivationWins(t *testing.T) {
	l := newLife(t)
	l.submit()
	bundle := fixture.Bundle(t, l.ledger.Kernel(), l.state.Reserved, nil)
	permits := 0
	for _, opened := range race(t, l, func(one *ledger.Ledger, s kernel.State) (ledger.Opened, error) {
		commands, err := fixture.Turn(one.Kernel(), s, kernel.Activate{Bundle: bundle, Now: fixture.At(0)})
		if err != nil {
			return ledger.Opened{}, err
		}
		return one.Commit(t.Context(), ledger.Turn{Fence: s.Fence(), Commands: commands, Actor: "uid:0"})
	}) {
		permits += len(opened.Permits)
	}
	if permits != 3 {
		t.Errorf("%d permits were handed out for three operations", permits)
	}
	s, err := ledger.New(l.store, l.ledger.Kernel(), fixture.Clock{}).State(t.Context(), fixture.Attempt)
	if err != nil || s.Of(kernel.AttemptMachine).State != "leased" || s.Of(kernel.AttemptMachine).Version != 2 {
		t.Errorf("the attempt is %+v, %v", s.Of(kernel.AttemptMachine), err)
	}
}

// Activations that differ, a cancellation among them: one of them happened.
func TestOneOfDifferentActivationsWins(t *testing.T) {
	l := newLife(t)
	l.submit()
	bundle := fixture.Bundle(t, l.ledger.Kernel(), l.state.Reserved, nil)
	var mu sync.Mutex
	n := 0
	won := race(t, l, func(one *ledger.Ledger, s kernel.State) (ledger.Opened, error) {
		mu.Lock()
		n++
		command := kernel.Command(kernel.Activate{Bundle: bundle, Now: fixture.At(0)})
		if n%2 == 0 {
			command = kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.AttemptLost, Detail: string(rune('a' + n%26))}}
		}
		mu.Unlock()
		return one.Commit(t.Context(), ledger.Turn{Fence: s.Fence(), Commands: []kernel.Command{command}, Actor: "uid:0"})
	})
	first := 0
	for _, opened := range won {
		if opened.Sequence == 2 {
			first++
		}
	}
	if len(won) == 0 || first != len(won) {
		t.Errorf("%d won, %d of them with the second turn", len(won), first)
	}
}

// Of many that reserve the next attempt at one work order, one gets the ordinal.
func TestOneReservationGetsTheOrdinal(t *testing.T) {
	l := newLife(t)
	l.submit()
	l.turn(kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Lost, Code: reason.AttemptLost, Detail: "gone"}})
	order, err := l.ledger.Order(t.Context(), fixture.WorkOrder)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	n := 0
	won := race(t, l, func(one *ledger.Ledger, _ kernel.State) (ledger.Opened, error) {
		mu.Lock()
		n++
		r := fixture.Reserved(t, one.Kernel())
		suffix := string(rune('A'+n/26)) + string(rune('a'+n%26))
		mu.Unlock()
		r.ID, r.Attempt = r.ID+workorder.ReservationID(suffix), r.Attempt+workorder.AttemptID(suffix)
		r.Fence.Attempt, r.Ordinal = r.Attempt, order.Attempts+1
		return one.Reserve(t.Context(), order, r.Attempt, ledger.Turn{Commands: []kernel.Command{kernel.Reserve{Reservation: r}}, Actor: "uid:0"})
	})
	if len(won) != 1 {
		t.Errorf("%d got the second attempt", len(won))
	}
}
