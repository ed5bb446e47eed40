package kernel

import (
	"fmt"
	"maps"
	"slices"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// AccountMachine is the machine of accounts.
const AccountMachine = "account"

// Account is a ceiling that several work orders draw on, as it stands in the journal.
type Account struct {
	Name string
	At   Standing
	// Ceiling is the newest one that was recorded.
	Ceiling workorder.Ceiling
	// Spent is what settled reservations used.
	Spent workorder.Amounts

	// open are the reservations that are not settled, each with all that it drew.
	open map[workorder.ReservationID]workorder.Amounts
}

// Subject is the subject of the account.
func (a Account) Subject() lifecycle.Subject { return lifecycle.Of(AccountMachine, a.Name) }

// Reserved is the sum of what is drawn and not settled.
func (a Account) Reserved() workorder.Amounts {
	var sum workorder.Amounts
	for _, drawn := range a.open {
		sum = sum.Plus(drawn)
	}
	return sum
}

// Open lists the reservations that are not settled, sorted.
func (a Account) Open() []workorder.ReservationID { return slices.Sorted(maps.Keys(a.open)) }

// Drawn is what a reservation that is not settled has drawn, false if there is none.
func (a Account) Drawn(id workorder.ReservationID) (workorder.Amounts, bool) {
	drawn, ok := a.open[id]
	return drawn, ok
}

// Room returns nil if the account has room for what is asked. Else it refuses with
// budget.blocked, if it would have once everything that is reserved came back, and with
// budget.exhausted if it would not even then.
func (a Account) Room(asked workorder.Amounts) error {
	asked = a.counted(asked)
	switch a.At.State {
	case "":
		return reason.New(reason.BudgetUnknownAccount, "no ceiling was recorded for the account "+a.Name, a.Name, "name an account of the deployment")
	case "closed":
		return reason.New(reason.BudgetExhausted, "the account "+a.Name+" is closed", a.Name, "submit the work order anew, under another account")
	}
	if unit := a.Ceiling.Passed(a.Spent, asked); unit != "" {
		return reason.New(reason.BudgetExhausted, fmt.Sprintf("the account %s has less %s left than the work asks for, whatever comes back", a.Name, unit),
			a.Name, "have the deployment raise the ceiling, or ask for less; then submit the work order anew")
	}
	if unit := a.Ceiling.Passed(a.Spent.Plus(a.Reserved()), asked); unit != "" {
		return reason.New(reason.BudgetBlocked, fmt.Sprintf("the account %s has no room for the %s that the work asks for until something comes back", a.Name, unit),
			a.Name, "wait for what is reserved there, or settle what a lost attempt left: `writ show account/"+a.Name+"`")
	}
	return nil
}

// counted leaves money out where the account has no ceiling of it: it could be of any
// currency, and nobody asks for the sum.
func (a Account) counted(m workorder.Amounts) workorder.Amounts {
	if a.Ceiling.Money == nil {
		m.Money = nil
	}
	return m
}

// money is an amount in the money that the account has counted in, nil if it has in none.
func (a Account) money() *workorder.Money {
	if m := a.Spent.Plus(a.Reserved()).Money; m != nil {
		return m
	}
	return a.Ceiling.Money
}

// ReduceAccount applies one recorded event of an account. It refuses a draw for which there
// is no room, and a settlement of what was not drawn.
func (k Kernel) ReduceAccount(a Account, e lifecycle.Event) (Account, error) {
	t, err := k.transitions.Apply(a.At.State, e, nil)
	if err != nil {
		return Account{}, err
	}
	if err := t.Projected(projector); err != nil {
		return Account{}, err
	}
	if e.Version != a.At.Version+1 {
		return Account{}, reason.New(reason.JournalChainBroken, fmt.Sprintf("%s has event %d after event %d", e.Subject, e.Version, a.At.Version),
			string(e.Subject), "run `writ verify` and keep the state folder as it is")
	}
	switch e.Family {
	case "account.opened", "account.raised":
		var c BudgetCeiling
		err = canonical.Decode(e.Body, &c)
		a.Ceiling = c.Ceiling
	case "account.drawn":
		var drawn Drawn
		if err = canonical.Decode(e.Body, &drawn); err != nil {
			break
		}
		if err = a.Room(drawn.Budget); err != nil {
			break
		}
		if _, twice := a.open[drawn.Reservation]; twice {
			err = wrongState(string(e.Subject), "the reservation has drawn before")
		}
		a.open = maps.Clone(a.open)
		if a.open == nil {
			a.open = map[workorder.ReservationID]workorder.Amounts{}
		}
		a.open[drawn.Reservation] = drawn.Budget
	case "account.returned", "account.returned_late":
		var s BudgetSettlement
		if err = canonical.Decode(e.Body, &s); err != nil {
			break
		}
		if _, drawn := a.open[s.Reservation]; !drawn {
			err = wrongState(string(e.Subject), "a reservation is settled that has drawn nothing, or is settled already")
		}
		a.open = maps.Clone(a.open)
		delete(a.open, s.Reservation)
		a.Spent = a.Spent.Plus(s.Used)
	}
	if err != nil {
		return Account{}, err
	}
	a.At = Standing{State: t.To, Version: e.Version, Machine: e.Machine}
	return a, nil
}

// Move is what a decision moves of an account: what a reservation draws, or what a
// settlement gives back. Its event is appended with those of the decision or not at all,
// by Moved.
type Move struct {
	Account string

	// One of both is set. guard is that of the reservation.
	reservation *workorder.Reservation
	settlement  *BudgetSettlement
	guard       lifecycle.Guard
}

// Moved adds to a decision what it moves of its account, and returns the account as it is
// then. The error is a refusal, as of Room, where there is no room; or where there is a
// ceiling of money over work without a price.
func (k Kernel) Moved(d Decision, a Account) (Decision, Account, error) {
	d.Events = slices.Clone(d.Events)
	for _, m := range d.Moves {
		if m.Account != a.Name {
			return Decision{}, Account{}, fmt.Errorf("%s is moved, not the account %s", m.Account, a.Name)
		}
		e, err := m.event(a)
		if err != nil {
			return Decision{}, Account{}, err
		}
		e.Machine = k.transitions.Latest(AccountMachine).Version
		if a, err = k.ReduceAccount(a, e); err != nil {
			return Decision{}, Account{}, err
		}
		d.Events = append(d.Events, e)
	}
	return d, a, nil
}

// event is the event of the account that a move becomes.
func (m Move) event(a Account) (e lifecycle.Event, err error) {
	e = lifecycle.Event{Subject: a.Subject(), Version: a.At.Version + 1}
	if m.reservation != nil {
		drawn, err := m.draw(a)
		if err != nil {
			return lifecycle.Event{}, err
		}
		e.Family, e.Guards = "account.drawn", []lifecycle.Guard{m.guard}
		e.Body, err = canonical.Marshal(drawn)
		return e, err
	}
	s := *m.settlement
	if drawn := a.open[s.Reservation]; drawn.Money == nil {
		s.Used.Money, s.Returned.Money = nil, nil // The account did not count money then.
	}
	g, err := report("BudgetSettlement", s)
	if err != nil {
		return lifecycle.Event{}, err
	}
	e.Family, e.Guards = "account.returned", []lifecycle.Guard{g}
	if a.At.State == "closed" {
		e.Family = "account.returned_late"
	}
	e.Body, err = canonical.Marshal(s)
	return e, err
}

// draw is what the reservation draws, if the account has room for it.
func (m Move) draw(a Account) (Drawn, error) {
	r := m.reservation
	if ceiling := a.Ceiling.Money; ceiling != nil {
		if err := Priced(*r, *ceiling, string(r.WorkOrder)); err != nil {
			return Drawn{}, err
		}
	}
	asked := a.counted(r.Budget.Amounts())
	return Drawn{Reservation: r.ID, Budget: asked}, a.Room(asked)
}

// SetCeiling records the ceiling of an account, where it is not the one that is recorded.
type SetCeiling struct {
	Account Account
	BudgetCeiling
}

// BudgetCeiling is the body of account.opened and account.raised.
type BudgetCeiling struct {
	Ceiling workorder.Ceiling `json:"ceiling"`
}

func (c SetCeiling) decide(d *decision) error {
	g, err := report("BudgetCeiling", c.BudgetCeiling)
	if err != nil {
		return err
	}
	was, err := canonical.DigestOf(BudgetCeiling{c.Account.Ceiling})
	if err != nil {
		return err
	}
	if m := c.Account.money(); m != nil && c.Ceiling.Money != nil && !m.Like(*c.Ceiling.Money) {
		return reason.New(reason.BudgetCurrency, fmt.Sprintf("the account %s counts in %s with scale %d, and keeps to it", c.Account.Name, m.Currency, m.Scale),
			c.Account.Name, "open another account for the other money")
	}
	d.stand(c.Account.Subject(), c.Account.At)
	switch {
	case c.Account.At.Version == 0:
		return d.emit(c.Account.Subject(), "account.opened", c.BudgetCeiling, g)
	case was == g.Digest || c.Account.At.State == "closed":
		return nil
	}
	return d.emit(c.Account.Subject(), "account.raised", c.BudgetCeiling, g)
}

// CloseAccount has an account reserve nothing any more. What is reserved stays.
type CloseAccount struct {
	Account Account
	CancelRequested
}

func (c CloseAccount) decide(d *decision) error {
	if c.Account.At.State == "closed" {
		return nil
	}
	g, err := report("CancellationRequest", c.CancelRequested)
	if err != nil {
		return err
	}
	d.stand(c.Account.Subject(), c.Account.At)
	return d.emit(c.Account.Subject(), "account.closed", c.CancelRequested, g)
}
