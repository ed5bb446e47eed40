package kernel

import (
	"fmt"
	"slices"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// BudgetMachine is the machine of the budget of one reservation.
const BudgetMachine = "budget"

// Budget is what became of the budget of a reservation. One of which nothing is counted
// has none: see Metered.
type Budget struct {
	Reserved workorder.Amounts
	// Used is the sum of what the receipts say; once it is settled, what counts as used.
	Used workorder.Amounts
	// Returned is what can be reserved again, nil before it is settled or released.
	Returned *workorder.Amounts

	// contradicted are the operations of which a receipt came after the end of the budget.
	contradicted []operation.Key
}

// Metered reports whether something of a reservation's budget is counted: it draws on an
// account, or the order bounds calls, tokens or money. Time alone is bounded by the
// environment, which ends what takes longer; nothing would be learned from counting it.
func Metered(r workorder.Reservation) bool {
	return r.Account != "" || r.Budget.Calls > 0 || r.Budget.Tokens > 0 || r.Budget.Money != nil
}

// Drawn is the body of budget.reserved and account.drawn.
type Drawn struct {
	Reservation workorder.ReservationID `json:"reservation"`
	Budget      workorder.Amounts       `json:"budget"`
}

// Usage is the body of the events that charge a budget.
type Usage struct {
	Operation operation.Key `json:"operation"`
	// Receipt is the digest of the receipt of that operation.
	Receipt canonical.Digest  `json:"receipt"`
	Used    workorder.Amounts `json:"used"`
	// Complete says that the receipt tells all that was used: what is missing is not zero.
	Complete bool `json:"complete"`
}

// BudgetSettlement is the body of the events that end a budget, and of those by which its
// account takes back what is left.
type BudgetSettlement struct {
	Reservation workorder.ReservationID `json:"reservation"`
	Used        workorder.Amounts       `json:"used"`
	Returned    workorder.Amounts       `json:"returned"`
	// Principal and Reason are those of the person who said what an incomplete receipt
	// counts for; empty where the receipts say it themselves.
	Principal string `json:"principal,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// reserveBudget reserves what a reservation may use, before its lease. g is the reservation.
func (d *decision) reserveBudget(r workorder.Reservation, g lifecycle.Guard) error {
	if !Metered(r) {
		return nil
	}
	if m := r.Budget.Money; m != nil {
		if err := Priced(r, *m, string(r.WorkOrder)); err != nil {
			return err
		}
	}
	drawn := Drawn{Reservation: r.ID, Budget: r.Budget.Amounts()}
	if err := d.of("budget.reserved", drawn, g); err != nil {
		return err
	}
	if r.Account != "" {
		d.moves = append(d.moves, Move{Account: r.Account, reservation: &r, guard: g})
	}
	return nil
}

// Priced refuses work under a ceiling of money unless its price is known in that money, and
// is no more than the work may cost: what has no price could cost anything.
func Priced(r workorder.Reservation, ceiling workorder.Money, where string) error {
	may := workorder.Money{Currency: ceiling.Currency, Scale: ceiling.Scale}
	if r.Budget.Money != nil {
		may = *r.Budget.Money
	}
	switch {
	case r.Price == nil:
		return reason.New(reason.BudgetUnpriced, "the work has no price, and runs under a ceiling of money", where,
			"have the deployment say what it costs, if only that it is nothing")
	case r.Budget.Calls > 0 || r.Budget.Tokens > 0:
		return reason.New(reason.BudgetUnpriced, "calls of models have no price, and run under a ceiling of money", where, "leave calls and tokens out")
	case !r.Price.Like(ceiling) || !may.Like(ceiling):
		return reason.New(reason.BudgetCurrency, "what the work costs and may cost is not counted as the ceiling over it", where,
			fmt.Sprintf("write all in %s, with scale %d: nothing is converted", ceiling.Currency, ceiling.Scale))
	case may.Amount < r.Price.Amount:
		return reason.New(reason.BudgetExhausted, "one run costs more than the work may cost", where, "raise limits.money of the work order")
	}
	return nil
}

// charge charges what the receipt of an operation says was used, once: with the answer that
// moved the operation, or with the first one that contradicts that it did not take place.
// before is where it stood.
func (d *decision) charge(before Operation, c Settle) error {
	if d.state.Budget == nil {
		return nil
	}
	moved := d.state.operations[c.Key].State != before.State
	contradicts := c.Outcome.Knowledge == operation.Applied && before.State != "applied" && !slices.Contains(d.state.Budget.contradicted, c.Key)
	if !moved && !contradicts {
		return nil
	}
	u, ok := d.used(before.Intent.Kind, c)
	if !ok {
		return nil
	}
	g, err := report("UsageReceipt", u)
	if err != nil {
		return err
	}
	family := lifecycle.Family("budget.charged")
	switch at := d.state.Of(BudgetMachine).State; {
	case at == "settled":
		family = "budget.charged_late"
	case at == "released":
		family = "budget.charged_after_release"
	case !u.Complete && at != "incomplete":
		family = "budget.incomplete"
	}
	return d.of(family, u, g)
}

// counted reports whether operations of a kind use something that a budget counts.
func counted(kind operation.Kind) bool { return kind == operation.Launch }

// used is what an answer says that an operation used; false for a kind that uses nothing
// that is counted, and for one that did not take place. What ran used the time that the
// ledger measured beside its receipt. An answer that came without, as by asking for it in
// a later life, does not say all.
func (d *decision) used(kind operation.Kind, c Settle) (Usage, bool) {
	if !counted(kind) || c.Outcome.Knowledge == operation.NotApplied {
		return Usage{}, false
	}
	u := Usage{
		Operation: c.Key, Receipt: canonical.Sum(c.Receipt),
		Used:     workorder.Amounts{WallMillis: (c.ElapsedMicros + 999) / 1000},
		Complete: c.Outcome.Knowledge == operation.Applied && c.ElapsedMicros > 0,
	}
	if d.state.Budget.Reserved.Money != nil && u.Complete {
		// What the reservation fixed, so that a price that changes meanwhile changes nothing.
		u.Used.Money = d.state.Reserved.Price
	}
	return u, true
}

// closeBudget ends the budget of an attempt that is at its end: what was charged is final,
// and the rest goes back. One with an incomplete receipt stays reserved as a whole until a
// person settles it.
func (d *decision) closeBudget() error {
	b, at := d.state.Budget, d.state.Of(BudgetMachine).State
	if b == nil || at != "reserved" && at != "charged" || !d.kernel.Closed(d.state) {
		return nil
	}
	for _, o := range d.state.operations {
		if o.State == "intended" && counted(o.Intent.Kind) {
			return nil // Its answer is charged first.
		}
	}
	family := lifecycle.Family("budget.released")
	if at == "charged" {
		family = "budget.settled"
	}
	return d.endBudget(family, BudgetSettlement{Used: b.Used})
}

// endBudget emits the settlement of a budget, of which Used is known.
func (d *decision) endBudget(family lifecycle.Family, s BudgetSettlement) error {
	s.Reservation, s.Returned = d.state.Reservation, d.state.Budget.Reserved.Less(s.Used)
	if s.Used.Money == nil && s.Returned.Money != nil {
		none := *s.Returned.Money
		none.Amount = 0
		s.Used.Money = &none
	}
	g, err := report("BudgetSettlement", s)
	if err != nil {
		return err
	}
	if err := d.of(family, s, g); err != nil {
		return err
	}
	if account := d.state.Reserved.Account; account != "" {
		d.moves = append(d.moves, Move{Account: account, settlement: &s, guard: g})
	}
	return nil
}

// SettleBudget has an authenticated person say what an incomplete receipt counts for.
type SettleBudget struct {
	Used workorder.Amounts
	// ExpectedVersion is how many events the budget had when the person looked.
	ExpectedVersion   uint64
	Principal, Reason string
}

func (c SettleBudget) decide(d *decision) error {
	b, at := d.state.Budget, d.state.Of(BudgetMachine)
	switch {
	case at.State != "incomplete":
		return wrongState(string(d.state.Attempt), "the attempt has no budget that waits for a settlement")
	case !d.kernel.Closed(d.state):
		return wrongState(string(d.state.Attempt), "the attempt is not at its end, and may use more")
	case c.ExpectedVersion != at.Version:
		return reason.New(reason.IngressStale,
			fmt.Sprintf("the budget is at event %d, and the settlement was decided at event %d", at.Version, c.ExpectedVersion),
			string(d.state.Attempt), "look again with `writ show`, and decide on what is there now")
	case (c.Used.Money == nil) != (b.Reserved.Money == nil) || c.Used.Money != nil && !c.Used.Money.Like(*b.Reserved.Money):
		return reason.New(reason.BudgetCurrency, "what was used is not in the money that was reserved", string(d.state.Attempt),
			"say it in the currency of the reservation")
	}
	return d.endBudget("budget.settled", BudgetSettlement{Used: c.Used, Principal: c.Principal, Reason: c.Reason})
}

// absorbBudget takes from an event of a budget what it says of the amounts.
func absorbBudget(s *State, e lifecycle.Event, body any) error {
	b := Budget{}
	if s.Budget != nil {
		b = *s.Budget
	}
	switch e.Family {
	case "budget.reserved":
		var r Drawn
		if err := into(body, e.Body, &r); err != nil {
			return err
		}
		b.Reserved = r.Budget
	case "budget.charged", "budget.incomplete":
		var u Usage
		if err := into(body, e.Body, &u); err != nil {
			return err
		}
		if o := s.operations[u.Operation]; o.receipt == "" || o.receipt != u.Receipt {
			return reason.New(reason.KernelForeignGuard, "a budget is charged with a receipt that no operation of the attempt has", string(u.Operation),
				"run `writ verify` and keep the state folder as it is")
		}
		b.Used = b.Used.Plus(u.Used)
	case "budget.settled", "budget.released":
		var t BudgetSettlement
		if err := into(body, e.Body, &t); err != nil {
			return err
		}
		b.Used, b.Returned = t.Used, &t.Returned
	case "budget.charged_late", "budget.charged_after_release":
		var u Usage
		if err := into(body, e.Body, &u); err != nil {
			return err
		}
		b.contradicted = append(slices.Clone(b.contradicted), u.Operation)
	}
	s.Budget = &b
	return nil
}

// BudgetBlock is the body of the events by which a work order waits for a budget, or is at
// its end for want of one.
type BudgetBlock struct {
	Account string      `json:"account"`
	Code    reason.Code `json:"code"`
	Why     string      `json:"why"`
	// Asked is what the next attempt would reserve.
	Asked workorder.Amounts `json:"asked"`
}

// Unfunded records that an account has no room for the next attempt at a work order: with
// budget.blocked for now, else for good.
type Unfunded struct {
	BudgetBlock
}

func (c Unfunded) decide(d *decision) error {
	g, err := report("BudgetReport", c.BudgetBlock)
	if err != nil {
		return err
	}
	waits := d.in(WorkOrderMachine, "blocked_budget")
	if c.Code == reason.BudgetBlocked {
		if waits {
			return nil // It waits already.
		}
		return d.of("work_order.blocked_budget", c.BudgetBlock, g)
	}
	if d.in(WorkOrderMachine, "blocked_dependency", "blocked_policy") {
		// What it waited for so far is over; the registry leads on from here.
		if err := d.of("work_order.blocked_budget", c.BudgetBlock, g); err != nil {
			return err
		}
	}
	return d.of("work_order.budget_exhausted", c.BudgetBlock, g)
}
