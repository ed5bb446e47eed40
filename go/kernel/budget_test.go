package kernel_test

import (
	"fmt"
	"reflect"
	"slices"
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

func euros(cents int64) *workorder.Money {
	return &workorder.Money{Amount: cents, Currency: "EUR", Scale: 2}
}

func pointer(n int64) *int64 { return &n }

// metered has the attempt draw on the account "research", which opens with the ceiling.
func metered(l *life, ceiling workorder.Ceiling, budget workorder.Budget, price *workorder.Money) {
	l.change = func(b *attemptbundle.Bundle) {
		b.Ceilings.Calls, b.Ceilings.Tokens, b.Ceilings.WallMillis, b.Ceilings.Money = budget.Calls, budget.Tokens, budget.WallMillis, budget.Money
	}
	l.alter = func(r *workorder.Reservation) { r.Account, r.Price = "research", price }
	l.account = kernel.Account{Name: "research"}
	l.ceiling(ceiling)
}

func (l *life) ceiling(c workorder.Ceiling) {
	l.t.Helper()
	d, err := l.kernel.Decide(kernel.State{}, kernel.SetCeiling{Account: l.account, BudgetCeiling: kernel.BudgetCeiling{Ceiling: c}})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range d.Events {
		if l.account, err = l.kernel.ReduceAccount(l.account, e); err != nil {
			l.t.Fatal(err)
		}
	}
}

// launched is the answer of a launch that ran for some milliseconds.
func (l *life) launched(in operation.Intent, k operation.Knowledge, millis int64) kernel.Settle {
	s := l.settle(in, k)
	s.ElapsedMicros = millis * 1000
	if k == operation.Unknown {
		s.Outcome.Code = reason.OperationDissolved // Nobody asks about it again.
	}
	return s
}

// ran drives a metered attempt until its tool has run for some milliseconds and failed.
func (l *life) ran(millis int64) {
	in := l.running()
	l.do(l.applied(in[0]), l.launched(in[1], operation.Applied, millis), fail())
}

func fail() kernel.Fail {
	return kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.FreezeMissing, Detail: "no output"}}
}

func (l *life) wantAccount(reserved, spent workorder.Amounts) {
	l.t.Helper()
	if got := l.account.Reserved(); !reflect.DeepEqual(got, reserved) {
		l.t.Errorf("%+v is reserved, want %+v", got, reserved)
	}
	if got := l.account.Spent; !reflect.DeepEqual(got, spent) {
		l.t.Errorf("%+v is spent, want %+v", got, spent)
	}
}

// However an attempt ends, its budget ends with it: in the same turn, with the account.
func TestABudgetEndsWithItsAttempt(t *testing.T) {
	budget := workorder.Budget{Calls: 2, WallMillis: 30_000, Retries: 1}
	all := budget.Amounts()
	none := workorder.Amounts{}
	for name, tc := range map[string]struct {
		live            func(l *life)
		state           lifecycle.State
		reserved, spent workorder.Amounts
	}{
		"under way": {func(l *life) { l.running() }, "reserved", all, none},
		"abandoned": {func(l *life) {
			l.reserve()
			l.do(kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.AttemptLost, Detail: "gone"}})
		}, "released", none, none},
		"denied": {func(l *life) {
			l.reserve()
			l.do(kernel.Block{Decision: fixture.Digest("decision"), Blocked: kernel.Blocked{Decision: fixture.Digest("decision"), Code: reason.PolicyDenied, Why: "no"}})
		}, "released", none, none},
		"withdrawn": {func(l *life) {
			l.reserve()
			l.do(kernel.CancelOrder{CancelRequested: kernel.CancelRequested{Reason: "asked"}})
		}, "released", none, none},
		"failed before its launch": {func(l *life) {
			l.prepared()
			l.do(fail())
		}, "released", none, none},
		"skipped": {func(l *life) {
			in := l.running()
			l.do(l.settle(in[0], operation.NotApplied), l.settle(in[1], operation.NotApplied), fail())
		}, "released", none, none},
		"succeeded": {func(l *life) {
			in := l.running()
			l.do(l.applied(in[0]), l.launched(in[1], operation.Applied, 1200), kernel.Complete{Report: protocol.CompletionReport{Launches: []operation.Key{in[1].Key}}})
			in = l.begin(operation.Freeze, operation.Collect)
			l.do(l.applied(in[0]), l.applied(in[1]))
			l.want(kernel.BudgetMachine, "charged")
			l.do(kernel.Accept{})
		}, "settled", none, workorder.Amounts{WallMillis: 1200}},
		"failed": {func(l *life) { l.ran(700) }, "settled", none, workorder.Amounts{WallMillis: 700}},
		// What ran longer than was reserved, ran: nothing of it comes back, and all of it counts.
		"overrun": {func(l *life) { l.ran(30_012) }, "settled", none, workorder.Amounts{WallMillis: 30_012}},
		"cancelled": {func(l *life) {
			in := l.running()
			l.do(l.applied(in[0]), l.launched(in[1], operation.Applied, 5))
			l.do(kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "asked"}})
			l.do(l.applied(l.begin(operation.Cancel)[0]))
		}, "settled", none, workorder.Amounts{WallMillis: 5}},
		// Of what nobody knows, everything counts.
		"lost": {func(l *life) { l.running(); l.recover() }, "incomplete", all, none},
		"unknown": {func(l *life) {
			in := l.running()
			l.do(l.applied(in[0]), l.launched(in[1], operation.Unknown, 40), fail())
		}, "incomplete", all, none},
		// An answer without a time, as of a later life, does not say how long it ran.
		"asked later": {func(l *life) { l.ran(0) }, "incomplete", all, none},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			metered(l, workorder.Ceiling{WallMillis: pointer(60_000), Calls: pointer(2)}, budget, nil)
			tc.live(l)
			l.want(kernel.BudgetMachine, tc.state)
			l.wantAccount(tc.reserved, tc.spent)
			if s, err := replay(l.kernel, kernel.State{}, l.own()); err != nil || !reflect.DeepEqual(s, l.state) {
				t.Errorf("replay comes to another state: %v\n%+v\n%+v", err, s.Budget, l.state.Budget)
			}
		})
	}
}

// An attempt of which nothing is counted has no event more than without budgets.
func TestNothingIsWrittenOfWhatIsNotCounted(t *testing.T) {
	l := newLife(t)
	l.finish()
	for _, e := range l.events {
		if m := e.Subject.Machine(); m == kernel.BudgetMachine || m == kernel.AccountMachine {
			t.Errorf("%s was written", e.Family)
		}
	}
	// An order that bounds its calls is metered without an account.
	l = newLife(t)
	l.change = func(b *attemptbundle.Bundle) { b.Ceilings.Calls = 1 }
	l.ran(3)
	l.want(kernel.BudgetMachine, "settled")
	if b := l.state.Budget; b.Used.WallMillis != 3 || b.Returned.Calls != 1 || b.Returned.WallMillis != b.Reserved.WallMillis-3 {
		t.Errorf("%+v came to %+v", b, b.Returned)
	}
}

// Money is counted by the price that the reservation fixed.
func TestMoneyIsChargedByThePrice(t *testing.T) {
	l := newLife(t)
	metered(l, workorder.Ceiling{Money: euros(250)}, workorder.Budget{WallMillis: 1000, Money: euros(100)}, euros(7))
	l.ran(10)
	l.wantAccount(workorder.Amounts{}, workorder.Amounts{WallMillis: 10, Money: euros(7)})
	if b := l.state.Budget; *b.Returned.Money != *euros(93) {
		t.Errorf("%+v comes back", b.Returned.Money)
	}
}

// Work under a ceiling of money without a price, or with one that cannot be compared, is
// refused by the kernel too.
func TestWorkWithoutAPrice(t *testing.T) {
	dollars := &workorder.Money{Amount: 1, Currency: "USD", Scale: 2}
	mills := &workorder.Money{Amount: 1, Currency: "EUR", Scale: 3}
	money, time := workorder.Ceiling{Money: euros(250)}, workorder.Ceiling{WallMillis: pointer(60_000)}
	for name, tc := range map[string]struct {
		ceiling workorder.Ceiling
		budget  workorder.Budget
		price   *workorder.Money
		code    reason.Code
	}{
		"no price, the order's own ceiling": {time, workorder.Budget{WallMillis: 1, Money: euros(1)}, nil, reason.BudgetUnpriced},
		"no price, the account's ceiling":   {money, workorder.Budget{WallMillis: 1}, nil, reason.BudgetUnpriced},
		"calls of models":                   {money, workorder.Budget{WallMillis: 1, Calls: 1}, euros(0), reason.BudgetUnpriced},
		"tokens of models":                  {time, workorder.Budget{WallMillis: 1, Tokens: 1, Money: euros(5)}, euros(0), reason.BudgetUnpriced},
		"another currency":                  {money, workorder.Budget{WallMillis: 1, Money: euros(1)}, dollars, reason.BudgetCurrency},
		"another scale":                     {money, workorder.Budget{WallMillis: 1, Money: euros(1)}, mills, reason.BudgetCurrency},
		"an order in another currency":      {money, workorder.Budget{WallMillis: 1, Money: dollars}, dollars, reason.BudgetCurrency},
		"more than the order may cost":      {money, workorder.Budget{WallMillis: 1, Money: euros(1)}, euros(2), reason.BudgetExhausted},
		"more than nothing":                 {money, workorder.Budget{WallMillis: 1}, euros(2), reason.BudgetExhausted},
		"free":                              {money, workorder.Budget{WallMillis: 1}, euros(0), ""},
		"an account that counts no money":   {time, workorder.Budget{WallMillis: 1, Money: dollars}, dollars, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			metered(l, tc.ceiling, tc.budget, tc.price)
			if err := l.try(fixture.Submit(), kernel.Reserve{Reservation: l.reservation()}); reason.CodeOf(err) != tc.code && (tc.code != "" || err != nil) {
				t.Errorf("got %v, want %q", err, tc.code)
			}
			if m := l.account.Reserved().Money; m != nil && tc.ceiling.Money == nil {
				t.Errorf("an account that counts no money has %+v reserved", m)
			}
		})
	}
}

// A person settles what an incomplete receipt counts for, once, on what is there.
func TestAPersonSettlesABudget(t *testing.T) {
	budget := workorder.Budget{Calls: 2, WallMillis: 30_000}
	l := newLife(t)
	metered(l, workorder.Ceiling{WallMillis: pointer(60_000)}, budget, nil)
	in := l.running()
	settle := kernel.SettleBudget{Used: workorder.Amounts{WallMillis: 900}, ExpectedVersion: 2, Principal: "uid:1000", Reason: "seen"}
	l.refused(reason.KernelWrongState, settle)
	l.do(l.applied(in[0]), l.launched(in[1], operation.Unknown, 40))
	l.refused(reason.KernelWrongState, settle) // The attempt may use more.
	l.recover()
	l.wantAccount(budget.Amounts(), workorder.Amounts{})
	settle.ExpectedVersion = 1
	l.refused(reason.IngressStale, settle)
	settle.ExpectedVersion = l.state.Of(kernel.BudgetMachine).Version
	dear := settle
	dear.Used.Money = euros(1)
	l.refused(reason.BudgetCurrency, dear)
	l.do(settle)
	l.want(kernel.BudgetMachine, "settled")
	l.wantAccount(workorder.Amounts{}, workorder.Amounts{WallMillis: 900})
	l.refused(reason.KernelWrongState, settle)

	// What is learned later is kept, and changes no amount.
	before := *l.state.Budget
	l.do(l.launched(in[1], operation.Applied, 800))
	l.do(l.launched(in[1], operation.Applied, 801))
	after, at := *l.state.Budget, l.state.Of(kernel.BudgetMachine)
	if l.family(kernel.BudgetMachine) != "budget.charged_late" || at.Version != settle.ExpectedVersion+2 || after.Used != before.Used || *after.Returned != *before.Returned {
		t.Errorf("after %s the budget is %+v, and was %+v", l.family(kernel.BudgetMachine), after, before)
	}
	l.wantAccount(workorder.Amounts{}, workorder.Amounts{WallMillis: 900})
}

// What contradicts a release is kept for a person to see; of many, the first.
func TestUsageAfterTheRelease(t *testing.T) {
	l := newLife(t)
	metered(l, workorder.Ceiling{WallMillis: pointer(60_000)}, workorder.Budget{WallMillis: 30_000}, nil)
	in := l.running()
	l.do(l.settle(in[0], operation.NotApplied), l.settle(in[1], operation.NotApplied), fail())
	l.want(kernel.BudgetMachine, "released")
	l.do(l.launched(in[1], operation.Applied, 800))
	l.do(l.launched(in[1], operation.Applied, 801))
	if at := l.state.Of(kernel.BudgetMachine); l.family(kernel.BudgetMachine) != "budget.charged_after_release" || at.Version != 3 {
		t.Errorf("the budget is %+v after %s", at, l.family(kernel.BudgetMachine))
	}
	l.wantAccount(workorder.Amounts{}, workorder.Amounts{})
}

// A later receipt does not make an incomplete one complete.
func TestALaterReceiptCompletesNothing(t *testing.T) {
	l := newLife(t)
	metered(l, workorder.Ceiling{WallMillis: pointer(60_000)}, workorder.Budget{WallMillis: 30_000}, nil)
	in := l.running()
	l.do(l.applied(in[0]), l.launched(in[1], operation.Unknown, 40))
	l.do(l.launched(in[1], operation.Applied, 41), fail())
	l.want(kernel.BudgetMachine, "incomplete")
	if l.state.Budget.Used.WallMillis != 81 || l.family(kernel.BudgetMachine) != "budget.charged" {
		t.Errorf("%s: %+v", l.family(kernel.BudgetMachine), l.state.Budget)
	}
	l.wantAccount(workorder.Amounts{WallMillis: 30_000}, workorder.Amounts{})
}

// What does not fit waits, if it would once everything came back; else never fits.
func TestRoomInAnAccount(t *testing.T) {
	l := newLife(t)
	metered(l, workorder.Ceiling{Calls: pointer(10), WallMillis: pointer(1000)}, workorder.Budget{Calls: 6, WallMillis: 300}, nil)
	room := func(asked workorder.Amounts, code reason.Code) {
		t.Helper()
		if err := l.account.Room(asked); reason.CodeOf(err) != code && (code != "" || err != nil) {
			t.Errorf("for %+v: %v, want %q", asked, err, code)
		}
	}
	room(workorder.Amounts{Calls: 10, Tokens: 1 << 50, WallMillis: 1000}, "")
	room(workorder.Amounts{Calls: 11}, reason.BudgetExhausted)
	room(workorder.Amounts{WallMillis: 1<<63 - 1}, reason.BudgetExhausted)
	l.reserve()
	room(workorder.Amounts{Calls: 4}, "")
	room(workorder.Amounts{Calls: 5}, reason.BudgetBlocked)
	room(workorder.Amounts{Calls: 11}, reason.BudgetExhausted)

	// A lowered ceiling reserves less from now on; what is reserved stays.
	l.ceiling(workorder.Ceiling{Calls: pointer(5), WallMillis: pointer(1000)})
	room(workorder.Amounts{Calls: 1}, reason.BudgetBlocked)
	room(workorder.Amounts{Calls: 6}, reason.BudgetExhausted)
	room(workorder.Amounts{WallMillis: 700}, "")
	l.wantAccount(workorder.Amounts{Calls: 6, WallMillis: 300}, workorder.Amounts{})
	l.ceiling(workorder.Ceiling{WallMillis: pointer(1000)})
	room(workorder.Amounts{Calls: 1 << 50}, "")

	// A closed one reserves nothing, and takes back what was reserved.
	d, err := l.kernel.Decide(kernel.State{}, kernel.CloseAccount{Account: l.account, CancelRequested: kernel.CancelRequested{Reason: "over"}})
	if err != nil {
		t.Fatal(err)
	}
	if l.account, err = l.kernel.ReduceAccount(l.account, d.Events[0]); err != nil {
		t.Fatal(err)
	}
	room(workorder.Amounts{}, reason.BudgetExhausted)
	l.do(kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.AttemptLost, Detail: "gone"}})
	if l.family(kernel.AccountMachine) != "account.returned_late" {
		t.Errorf("it came back with %s", l.family(kernel.AccountMachine))
	}
	l.wantAccount(workorder.Amounts{}, workorder.Amounts{})
	if err := (kernel.Account{Name: "other"}).Room(workorder.Amounts{}); !reason.Is(err, reason.BudgetUnknownAccount) {
		t.Errorf("an account without a ceiling has room: %v", err)
	}
}

// An account counts in one money for good.
func TestAnAccountKeepsItsMoney(t *testing.T) {
	l := newLife(t)
	metered(l, workorder.Ceiling{Money: euros(250)}, workorder.Budget{WallMillis: 1000, Money: euros(100)}, euros(7))
	l.ran(10)
	l.ceiling(workorder.Ceiling{WallMillis: pointer(5)})
	dollars := kernel.BudgetCeiling{Ceiling: workorder.Ceiling{Money: &workorder.Money{Amount: 5, Currency: "USD", Scale: 2}}}
	if _, err := l.kernel.Decide(kernel.State{}, kernel.SetCeiling{Account: l.account, BudgetCeiling: dollars}); !reason.Is(err, reason.BudgetCurrency) {
		t.Errorf("euros became dollars: %v", err)
	}
}

// Replay refuses a draw that has no room and a return of what was not drawn: whoever checks
// a journal learns of it.
func TestReplayHoldsTheCeiling(t *testing.T) {
	l := newLife(t)
	metered(l, workorder.Ceiling{Calls: pointer(6)}, workorder.Budget{Calls: 6, WallMillis: 300}, nil)
	opened := l.account
	l.reserve()
	drawn := l.events[len(l.events)-1]
	again := drawn
	again.Version++
	wide := l.account
	wide.Ceiling = workorder.Ceiling{}
	if _, err := l.kernel.ReduceAccount(wide, again); !reason.Is(err, reason.KernelWrongState) {
		t.Errorf("a reservation draws twice: %v", err)
	}
	other := again
	other.Body = canonical.Raw(strings.Replace(string(drawn.Body), `"reservation":"res_01939a3c-7c1e-7000-8000-000000000003"`, `"reservation":"res_01939a3c-7c1e-7000-8000-000000000004"`, 1))
	if _, err := l.kernel.ReduceAccount(l.account, other); !reason.Is(err, reason.BudgetBlocked) {
		t.Errorf("a second draw passes the ceiling: %v", err)
	}
	if _, err := l.kernel.ReduceAccount(opened, again); !reason.Is(err, reason.JournalChainBroken) {
		t.Errorf("an event is missing: %v", err)
	}
	l.do(kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.AttemptLost, Detail: "gone"}})
	returned := l.events[len(l.events)-1]
	returned.Version++
	if _, err := l.kernel.ReduceAccount(l.account, returned); !reason.Is(err, reason.KernelWrongState) {
		t.Errorf("a budget comes back twice: %v", err)
	}
}

// A budget is charged with receipts of its attempt only.
func TestAForeignReceiptChargesNothing(t *testing.T) {
	l := newLife(t)
	l.change = func(b *attemptbundle.Bundle) { b.Ceilings.Calls = 1 }
	l.ran(3)
	i := slices.IndexFunc(l.events, func(e lifecycle.Event) bool { return e.Family == "budget.charged" })
	before, err := replay(l.kernel, kernel.State{}, l.events[:i])
	if err != nil {
		t.Fatal(err)
	}
	var u kernel.Usage
	if err := canonical.Decode(l.events[i].Body, &u); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(u *kernel.Usage){
		"of another operation": func(u *kernel.Usage) { u.Operation += "-again" },
		"of nobody":            func(u *kernel.Usage) { u.Receipt = fixture.Digest("nobody's") },
	} {
		foreign, e := u, l.events[i]
		change(&foreign)
		if e.Body, err = canonical.Marshal(foreign); err != nil {
			t.Fatal(err)
		}
		if _, err := l.kernel.Reduce(before, e); !reason.Is(err, reason.KernelForeignGuard) {
			t.Errorf("a receipt %s is charged: %v", name, err)
		}
	}
}

// From every state of a work order that may wait for a budget, it waits or is at its end.
func TestAWorkOrderWithoutABudget(t *testing.T) {
	block := func(code reason.Code) kernel.Unfunded {
		return kernel.Unfunded{BudgetBlock: kernel.BudgetBlock{Account: "research", Code: code, Why: "no room"}}
	}
	depend := kernel.Depend{Dependency: kernel.Dependency{Code: reason.DependencyWaiting, Why: "it waits", On: []kernel.DependsOn{{WorkOrder: "wo_2", State: "active"}}}}
	for name, before := range map[string][]kernel.Command{
		"submitted":          {fixture.Submit()},
		"blocked_dependency": {fixture.Submit(), depend},
		"blocked_budget":     {fixture.Submit(), block(reason.BudgetBlocked)},
	} {
		l := newLife(t)
		l.do(before...)
		l.do(block(reason.BudgetBlocked))
		l.want(kernel.WorkOrderMachine, "blocked_budget")
		n := len(l.events)
		if l.do(block(reason.BudgetBlocked)); len(l.events) != n {
			t.Errorf("%s: it is recorded twice that it waits", name)
		}
		l = newLife(t)
		l.do(before...)
		l.do(block(reason.BudgetExhausted))
		l.want(kernel.WorkOrderMachine, "budget_exhausted")
	}
}

// Whatever is reserved, charged, settled and raised in whatever order, no reservation
// passes the ceiling that stands when it is made, and what was drawn is what is reserved,
// used or came back.
func TestAnAccountConserves(t *testing.T) {
	k := fixture.Kernel(t)
	rapid.Check(t, func(rt *rapid.T) {
		l := newLife(t)
		l.account = kernel.Account{Name: "research"}
		var history []lifecycle.Event
		limit := func(name string, unit int64) *int64 {
			n := rapid.Int64Range(-1, 20).Draw(rt, name) * unit
			if n < 0 {
				return nil
			}
			return &n
		}
		raise := func() {
			c := workorder.Ceiling{Calls: limit("calls", 1), WallMillis: limit("wall", 100)}
			if rapid.Bool().Draw(rt, "money") {
				c.Money = euros(rapid.Int64Range(0, 200).Draw(rt, "cents"))
			}
			d, err := k.Decide(kernel.State{}, kernel.SetCeiling{Account: l.account, BudgetCeiling: kernel.BudgetCeiling{Ceiling: c}})
			if err != nil {
				rt.Fatal(err)
			}
			for _, e := range d.Events {
				if l.account, err = k.ReduceAccount(l.account, e); err != nil {
					rt.Fatal(err)
				}
			}
			history = append(history, d.Events...)
		}
		raise()
		var open, waiting []*life
		spent := workorder.Amounts{}
		made := 0
		reserve := func() {
			one := newLife(t)
			one.kernel, one.account = k, l.account
			budget := workorder.Budget{Calls: rapid.Int64Range(0, 5).Draw(rt, "asked calls"), WallMillis: rapid.Int64Range(1, 600).Draw(rt, "asked wall")}
			price := euros(0)
			if budget.Calls == 0 && rapid.Bool().Draw(rt, "asked money") {
				budget.Money, price = euros(rapid.Int64Range(5, 60).Draw(rt, "asked cents")), euros(rapid.Int64Range(0, 5).Draw(rt, "price"))
			}
			made++
			one.change = func(b *attemptbundle.Bundle) {
				b.Ceilings.Calls, b.Ceilings.WallMillis, b.Ceilings.Money = budget.Calls, budget.WallMillis, budget.Money
			}
			one.alter = func(r *workorder.Reservation) {
				r.Account, r.Price = "research", price
				r.ID = workorder.ReservationID(fmt.Sprintf("res_01939a3c-7c1e-7000-8000-%012d", made))
			}
			before := l.account
			err := one.try(fixture.Submit(), kernel.Reserve{Reservation: one.reservation()})
			taken := before.Spent.Plus(before.Reserved())
			switch code := reason.CodeOf(err); {
			case err == nil:
				if over := before.Ceiling.Passed(taken, budget.Amounts()); over != "" {
					rt.Fatalf("the ceiling %+v of %s is passed: %+v on %+v", before.Ceiling, over, budget, taken)
				}
				l.account = one.account
				history = append(history, one.events[len(one.events)-1])
				open = append(open, one)
			case code == reason.BudgetUnpriced && before.Ceiling.Money != nil && budget.Calls > 0:
			case code == reason.BudgetBlocked:
				if before.Ceiling.Passed(before.Spent, budget.Amounts()) != "" || before.Ceiling.Passed(taken, budget.Amounts()) == "" {
					rt.Fatalf("%+v waits on %+v under %+v", budget, taken, before.Ceiling)
				}
			case code == reason.BudgetExhausted:
				if before.Ceiling.Passed(before.Spent, budget.Amounts()) == "" {
					rt.Fatalf("%+v is refused for good on %+v under %+v", budget, before.Spent, before.Ceiling)
				}
			default:
				rt.Fatal(err)
			}
		}
		// end ends an attempt, and takes over what it moved.
		end := func(one *life, how func()) {
			one.account = l.account
			how()
			l.account = one.account
			for _, e := range one.events {
				if e.Subject.Machine() == kernel.AccountMachine && e.Version > uint64(len(history)) {
					history = append(history, e)
				}
			}
			switch one.state.Of(kernel.BudgetMachine).State {
			case "incomplete":
				waiting = append(waiting, one)
			case "settled", "released":
				b := one.state.Budget
				if !reflect.DeepEqual(*b.Returned, b.Reserved.Less(b.Used)) {
					rt.Fatalf("of %+v %+v was used and %+v comes back", b.Reserved, b.Used, b.Returned)
				}
				settled := one.events[slices.IndexFunc(one.events, func(e lifecycle.Event) bool { return e.Family == "account.returned" })]
				var s kernel.BudgetSettlement
				if err := canonical.Decode(settled.Body, &s); err != nil {
					rt.Fatal(err)
				}
				spent = spent.Plus(s.Used)
			default:
				rt.Fatalf("the budget is %+v", one.state.Of(kernel.BudgetMachine))
			}
		}
		take := func(from *[]*life) *life {
			i := rapid.IntRange(0, len(*from)-1).Draw(rt, "which")
			one := (*from)[i]
			*from = slices.Delete(*from, i, i+1)
			return one
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch what := rapid.IntRange(0, 9).Draw(rt, "what"); {
			case what == 0:
				raise()
			case what <= 4:
				reserve()
			case what == 5 && len(open) > 0:
				one := take(&open)
				end(one, func() {
					one.do(kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.AttemptLost, Detail: "gone"}})
				})
			case what == 6 && len(waiting) > 0:
				one := take(&waiting)
				used := workorder.Amounts{WallMillis: rapid.Int64Range(0, 700).Draw(rt, "settled wall")}
				if one.state.Budget.Reserved.Money != nil {
					used.Money = euros(rapid.Int64Range(0, 60).Draw(rt, "settled cents"))
				}
				end(one, func() {
					one.do(kernel.SettleBudget{Used: used, ExpectedVersion: one.state.Of(kernel.BudgetMachine).Version, Principal: "uid:1000", Reason: "seen"})
				})
			case what >= 7 && len(open) > 0:
				one := take(&open)
				knowledge := operation.Applied
				if what == 9 {
					knowledge = operation.Unknown
				}
				end(one, func() {
					in := one.launch()
					one.do(one.applied(in[0]), one.launched(in[1], knowledge, rapid.Int64Range(1, 700).Draw(rt, "ran")), fail())
				})
			}
			reserved := workorder.Amounts{}
			for _, one := range slices.Concat(open, waiting) {
				drawn, ok := l.account.Drawn(one.state.Reservation)
				if !ok {
					rt.Fatalf("%s has drawn nothing", one.state.Reservation)
				}
				reserved = reserved.Plus(drawn)
			}
			if !reflect.DeepEqual(l.account.Reserved(), reserved) || !reflect.DeepEqual(l.account.Spent, spent) {
				rt.Fatalf("%+v and %+v are on the account, %+v and %+v were drawn", l.account.Reserved(), l.account.Spent, reserved, spent)
			}
		}
		replayed := kernel.Account{Name: "research"}
		for _, e := range history {
			var err error
			if replayed, err = k.ReduceAccount(replayed, e); err != nil {
				rt.Fatal(err)
			}
		}
		if !reflect.DeepEqual(replayed.Reserved(), l.account.Reserved()) || replayed.At != l.account.At {
			rt.Fatalf("replay comes to %+v, not %+v", replayed, l.account)
		}
	})
}
