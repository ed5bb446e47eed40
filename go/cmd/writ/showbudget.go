package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// shownBudget is what `writ show` prints of the budget of an attempt.
type shownBudget struct {
	State lifecycle.State `json:"state"`
	// Version counts its events: what a settlement expects.
	Version  uint64             `json:"version"`
	Account  string             `json:"account,omitempty"`
	Reserved workorder.Amounts  `json:"reserved"`
	Used     workorder.Amounts  `json:"used"`
	Returned *workorder.Amounts `json:"returned"`
}

// newShownBudget is nil for an attempt of which nothing is counted.
func newShownBudget(s kernel.State) *shownBudget {
	if s.Budget == nil {
		return nil
	}
	at := s.Of(kernel.BudgetMachine)
	return &shownBudget{
		State: at.State, Version: at.Version, Account: s.Reserved.Account,
		Reserved: s.Budget.Reserved, Used: s.Budget.Used, Returned: s.Budget.Returned,
	}
}

func (b *shownBudget) write(w io.Writer, s style, id workorder.AttemptID) {
	if b == nil {
		return
	}
	state := string(b.State)
	if b.Account != "" {
		state += ", of the account " + b.Account
	}
	used := "used"
	if b.State == "incomplete" {
		used = "known" // What is missing is not zero.
	}
	lines := append([]string{state}, columns([][]string{{"reserved", amounts(b.Reserved)}, {used, amounts(b.Used)}})...)
	if b.Returned != nil {
		lines = append(lines, "returned  "+amounts(*b.Returned))
	}
	if b.State == "incomplete" {
		lines = append(lines, "a receipt does not say all that was used, so all of it counts until a person settles it",
			s.faint(fmt.Sprintf("/writ settle-budget %s … --expected-version %d …", id, b.Version)))
	}
	section(w, s, "budget", lines...)
}

// amounts writes what there is of each unit.
func amounts(a workorder.Amounts) string {
	parts := []string{millis(a.WallMillis), count(int(a.Calls), "call"), count(int(a.Tokens), "token")}
	if a.Money != nil {
		parts = append(parts, money(*a.Money))
	}
	return strings.Join(parts, ", ")
}

// money writes an amount with its point.
func money(m workorder.Money) string {
	digits, scale := strconv.FormatInt(m.Amount, 10), int(m.Scale)
	if scale > 0 {
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	return digits + " " + m.Currency
}

// accountPrefix begins what `writ show` takes for an account.
const accountPrefix = kernel.AccountMachine + "/"

// shownAccount is what `writ show account/NAME` prints.
type shownAccount struct {
	Account  string            `json:"account"`
	State    lifecycle.State   `json:"state"`
	Ceiling  workorder.Ceiling `json:"ceiling"`
	Reserved workorder.Amounts `json:"reserved"`
	Spent    workorder.Amounts `json:"spent"`
	// Open are the reservations that are not settled.
	Open   []openReservation `json:"open"`
	Events []shownEvent      `json:"events"`
}

type openReservation struct {
	Reservation workorder.ReservationID `json:"reservation"`
	Attempt     workorder.AttemptID     `json:"attempt"`
	Drawn       workorder.Amounts       `json:"drawn"`
}

func (c *command) showAccount(ctx context.Context, r *host.Reading, name string) error {
	a, err := ledger.LoadAccount(ctx, r.Journal, r.Kernel, name)
	if err != nil {
		return err
	}
	if a.At.Version == 0 {
		return reason.New(reason.IDUnknown, "no ceiling was ever recorded for such an account", name,
			"an account is recorded when a work order first draws on it")
	}
	out := shownAccount{Account: name, State: a.At.State, Ceiling: a.Ceiling, Reserved: a.Reserved(), Spent: a.Spent, Open: []openReservation{}}
	for _, id := range a.Open() {
		made, err := r.Journal.Events(ctx, lifecycle.Of(kernel.ReservationMachine, string(id)))
		if err != nil {
			return err
		}
		var reserved workorder.Reservation
		if err := canonical.Decode(made[0].Body, &reserved); err != nil {
			return err
		}
		drawn, _ := a.Drawn(id)
		out.Open = append(out.Open, openReservation{id, reserved.Attempt, drawn})
	}
	if out.Events, err = events(ctx, r, []lifecycle.Subject{a.Subject()}); err != nil {
		return err
	}
	return c.print(out, func(w io.Writer) { out.write(w, c.style()) })
}

func (o shownAccount) write(w io.Writer, s style) {
	fmt.Fprintf(w, "\n%s  %s\n\n", s.bold(plain(o.Account)), o.State)
	var rows [][]string
	row := func(unit string, ceiling *int64, reserved, spent int64, as func(int64) string) {
		limit := "no ceiling"
		if ceiling != nil {
			limit = "ceiling " + as(*ceiling)
		}
		rows = append(rows, []string{unit, limit, "reserved " + as(reserved), "spent " + as(spent)})
	}
	row("calls", o.Ceiling.Calls, o.Reserved.Calls, o.Spent.Calls, decimal)
	row("tokens", o.Ceiling.Tokens, o.Reserved.Tokens, o.Spent.Tokens, decimal)
	row("time", o.Ceiling.WallMillis, o.Reserved.WallMillis, o.Spent.WallMillis, millis)
	if m := o.Ceiling.Money; m != nil {
		in := func(amount int64) string {
			return money(workorder.Money{Amount: amount, Currency: m.Currency, Scale: m.Scale})
		}
		row("money", &m.Amount, amountOf(o.Reserved.Money), amountOf(o.Spent.Money), in)
	}
	section(w, s, "budget", columns(rows)...)
	var open [][]string
	for _, one := range o.Open {
		open = append(open, []string{string(one.Attempt), amounts(one.Drawn)})
	}
	section(w, s, "open", few(columns(open), "writ show --json "+accountPrefix+o.Account)...)
	fmt.Fprintln(w)
	writeEvents(w, s, o.Events)
}

// millis writes a time, however long it is.
func millis(ms int64) string {
	if ms > 1e9 {
		return decimal(ms/1000) + " s"
	}
	return duration(ms * 1000)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func amountOf(m *workorder.Money) int64 {
	if m == nil {
		return 0
	}
	return m.Amount
}
