package ledger_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// ticking is a clock by which every effect takes three milliseconds.
type ticking struct {
	fixture.Clock
	mu  sync.Mutex
	now int64
}

func (c *ticking) Micros() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += 3000
	return c.now
}

// other is a ledger over the same journal that remembers nothing.
func (l *life) other() *ledger.Ledger {
	return ledger.New(l.store, l.ledger.Kernel(), &ticking{})
}

const account = "research"

func (l *life) ceiling(calls int64) kernel.Account {
	l.t.Helper()
	a, err := l.ledger.SetCeiling(l.t.Context(), account, workorder.Ceiling{Calls: &calls}, "", ledger.Turn{Actor: "uid:0"})
	if err != nil {
		l.t.Fatal(err)
	}
	return a
}

// draw reserves an attempt at a work order of its own, the n-th, for one call.
func (l *life) draw(one *ledger.Ledger, n int) (ledger.Opened, error) {
	return drawFor(l.t, one, fmt.Sprintf("%03d", n))
}

// drawFor is draw for a work order whose id ends in suffix.
func drawFor(t *testing.T, one *ledger.Ledger, suffix string) (ledger.Opened, error) {
	t.Helper()
	r := fixture.ReservedFor(t, one.Kernel(), oneCall)
	r.ID, r.Attempt, r.WorkOrder = r.ID+workorder.ReservationID(suffix), r.Attempt+workorder.AttemptID(suffix), r.WorkOrder+workorder.ID(suffix)
	r.Fence.Attempt, r.Account = r.Attempt, account
	var err error
	if r.Digests.Fence, err = canonical.DigestOf(r.Fence); err != nil {
		return ledger.Opened{}, err
	}
	submit := fixture.Submit()
	submit.ID = r.WorkOrder
	return one.Reserve(t.Context(), kernel.State{}, r.Attempt, ledger.Turn{Commands: []kernel.Command{submit, kernel.Reserve{Reservation: r}}, Actor: "uid:0"})
}

func oneCall(b *attemptbundle.Bundle) { b.Ceilings.Calls = 1 }

// together does it for every racer at once, and returns the errors.
func together(do func(n int) error) []error {
	var done sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, racers)
	for n := range racers {
		done.Go(func() {
			<-start
			errs[n] = do(n)
		})
	}
	close(start)
	done.Wait()
	return errs
}

// Of many that draw on one account at once, as many get it as it has room for, whether they
// share a ledger or each has one that knows nothing of the others. What they give back at
// once comes back whole.
func TestReservationsRaceForOneAccount(t *testing.T) {
	const room = 23
	for name, shared := range map[string]bool{"one ledger": true, "ledgers of their own": false} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.ceiling(room)
			ledgers, states := make([]*ledger.Ledger, racers), make([]kernel.State, racers)
			for n := range ledgers {
				ledgers[n] = l.ledger
				if !shared {
					ledgers[n] = l.other()
				}
			}
			won := 0
			for n, err := range together(func(n int) error {
				opened, err := l.draw(ledgers[n], n)
				states[n] = opened.State
				return err
			}) {
				switch {
				case err == nil:
					won++
				case !reason.Is(err, reason.BudgetBlocked):
					t.Errorf("racer %d was told %v", n, err)
				}
			}
			a := l.read()
			if won != room || a.Reserved().Calls != room || len(a.Open()) != room {
				t.Errorf("%d won, and %+v is reserved of %d", won, a.Reserved(), room)
			}
			for n, err := range together(func(n int) error {
				if states[n].Attempt == "" {
					return nil
				}
				_, err := ledgers[n].Commit(t.Context(), ledger.Turn{Fence: states[n].Fence(), Actor: "uid:0", Commands: []kernel.Command{
					kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.AttemptLost, Detail: "gone"}},
				}})
				return err
			}) {
				if err != nil {
					t.Errorf("racer %d cannot give back: %v", n, err)
				}
			}
			if a = l.read(); a.Reserved() != (workorder.Amounts{}) || a.Spent != (workorder.Amounts{}) || a.At.Version != 1+2*room {
				t.Errorf("%+v is reserved, %+v spent, at %+v", a.Reserved(), a.Spent, a.At)
			}
		})
	}
}

// read is the account as the journal alone has it.
func (l *life) read() kernel.Account {
	l.t.Helper()
	a, err := ledger.LoadAccount(l.t.Context(), l.store, l.ledger.Kernel(), account)
	if err != nil {
		l.t.Fatal(err)
	}
	return a
}

// A turn that lost a race for something else than the account is told so, and is not tried
// for ever.
func TestAConflictBesideTheAccount(t *testing.T) {
	l := newLife(t)
	l.ceiling(2)
	if _, err := l.draw(l.ledger, 1); err != nil {
		t.Fatal(err)
	}
	r := fixture.ReservedFor(t, l.ledger.Kernel(), oneCall)
	r.WorkOrder, r.Account = r.WorkOrder+"001", account
	submit := fixture.Submit()
	submit.ID = r.WorkOrder
	_, err := l.other().Reserve(t.Context(), kernel.State{}, r.Attempt, ledger.Turn{Commands: []kernel.Command{submit, kernel.Reserve{Reservation: r}}, Actor: "uid:0"})
	if !reason.Is(err, reason.JournalConflict) {
		t.Errorf("a work order was submitted twice: %v", err)
	}
	if a := l.read(); a.Reserved().Calls != 1 {
		t.Errorf("%+v is reserved", a.Reserved())
	}
}

// A ceiling is recorded once, raised and lowered, and closed for good.
func TestCeilings(t *testing.T) {
	l := newLife(t)
	if _, err := l.draw(l.ledger, 1); !reason.Is(err, reason.BudgetUnknownAccount) {
		t.Errorf("something was drawn without a ceiling: %v", err)
	}
	if a := l.ceiling(2); a.At.Version != 1 {
		t.Errorf("opened: %+v", a.At)
	}
	if a := l.ceiling(2); a.At.Version != 1 {
		t.Errorf("the same once more: %+v", a.At)
	}
	if _, err := l.draw(l.ledger, 2); err != nil {
		t.Fatal(err)
	}
	l.ceiling(1)
	if _, err := l.draw(l.ledger, 3); !reason.Is(err, reason.BudgetBlocked) {
		t.Errorf("something was drawn under a lowered ceiling: %v", err)
	}
	l.ceiling(3)
	if _, err := l.draw(l.ledger, 4); err != nil {
		t.Errorf("a raised ceiling has no room: %v", err)
	}
	calls := int64(3)
	a, err := l.ledger.SetCeiling(t.Context(), account, workorder.Ceiling{Calls: &calls}, "over", ledger.Turn{Actor: "uid:0"})
	if err != nil || a.At.State != "closed" {
		t.Errorf("closed: %+v, %v", a.At, err)
	}
	if a = l.ceiling(9); a.At.State != "closed" {
		t.Errorf("opened again: %+v", a.At)
	}
	if _, err := l.draw(l.ledger, 5); !reason.Is(err, reason.BudgetExhausted) {
		t.Errorf("something was drawn on a closed account: %v", err)
	}
	// Many that say the same at once say it once.
	l = newLife(t)
	for _, err := range together(func(int) error {
		_, err := l.other().SetCeiling(t.Context(), account, workorder.Ceiling{Calls: &calls}, "", ledger.Turn{Actor: "uid:0"})
		return err
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	if a := l.read(); a.At.Version != 1 {
		t.Errorf("%+v", a.At)
	}
}

// What a life reserved, the next one charges, from the receipt and by the time that was
// measured beside it; the journal alone has all of it.
func TestABudgetIsChargedInALaterLife(t *testing.T) {
	l := newLife(t)
	l.ledger = l.other()
	l.ceiling(2)
	opened, err := l.draw(l.ledger, 1)
	if err != nil {
		t.Fatal(err)
	}
	id := opened.State.Attempt
	l.ledger = l.other()
	if l.state, err = l.ledger.State(t.Context(), id); err != nil || l.state.Budget == nil || l.state.Budget.Reserved.Calls != 1 {
		t.Fatalf("%+v, %v", l.state.Budget, err)
	}
	p := l.next(kernel.Activate{Bundle: fixture.Bundle(t, l.ledger.Kernel(), l.state.Reserved, oneCall), Now: fixture.At(0)}).Permits
	expected, report := fixture.Attestation(t, l.ledger.Kernel(), l.state)
	p = l.next(
		l.run(p[0], applied(protocol.ProvisionResult{Provider: "wasm", Resource: l.state.Resource})), kernel.Attest{Expected: expected, Report: report},
		l.run(p[1], applied(protocol.MaterializeResult{Inputs: fixture.Digest("inputs"), Files: 1, Bytes: 2})),
		l.run(p[2], applied(protocol.PrepareResult{Handle: "h"})),
	).Permits
	launch := protocol.LaunchResult{Tool: fixture.Digest("textstat"), Ended: protocol.EndedExited}
	settled := []kernel.Command{l.run(p[0], applied(protocol.StartResult{Handle: "h"})), l.run(p[1], applied(launch))}
	l.turn(append(settled, kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.FreezeMissing, Detail: "no output"}})...)
	if a := l.read(); a.Spent != (workorder.Amounts{WallMillis: 3}) || a.Reserved() != (workorder.Amounts{}) {
		t.Errorf("%+v is spent, %+v reserved", a.Spent, a.Reserved())
	}
	replayed, err := ledger.Load(t.Context(), l.store, l.ledger.Kernel(), id)
	if err != nil || replayed.Of(kernel.BudgetMachine).State != "settled" || replayed.Budget.Used != l.state.Budget.Used || *replayed.Budget.Returned != *l.state.Budget.Returned {
		t.Errorf("%+v, %v", replayed.Budget, err)
	}
	// All that belongs together stands in one turn.
	var turn uint64
	for _, s := range []lifecycle.Subject{lifecycle.Of(kernel.BudgetMachine, string(l.state.Reservation)), lifecycle.Of(kernel.AccountMachine, account), lifecycle.Of(kernel.AttemptMachine, string(id))} {
		events, err := l.store.Events(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		last := events[len(events)-1].Sequence
		if turn != 0 && last != turn {
			t.Errorf("%s ends in turn %d, the others in %d", s, last, turn)
		}
		turn = last
	}
	for _, o := range l.state.Operations() {
		if o.Intent.Kind == operation.Launch && o.ElapsedMicros != 3000 {
			t.Errorf("the launch took %d µs", o.ElapsedMicros)
		}
	}
}
