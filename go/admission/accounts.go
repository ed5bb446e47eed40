package admission

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// AccountsKind is the registered kind of Accounts.
const AccountsKind = "writ.accounts.v1"

// AccountsFile is where a state folder holds the accounts of its deployment.
const AccountsFile = "accounts.yaml"

// Accounts says what work orders may use up together, and what a run of a tool costs.
type Accounts struct {
	Kind     string    `json:"kind"`
	Accounts []Account `json:"accounts,omitempty"`
	// Prices are of tools. One that is not listed has no price, which is not the same as
	// costing nothing.
	Prices []Price `json:"prices,omitempty"`
}

// Account is a ceiling that work orders draw on by name.
type Account struct {
	Name    string            `json:"name"`
	Ceiling workorder.Ceiling `json:"ceiling"`
	// Closed says why the account reserves nothing any more, for good; empty for an open one.
	Closed string `json:"closed,omitempty"`
}

// Price is what one run of a tool of the lock costs.
type Price struct {
	Tool string          `json:"tool"`
	Run  workorder.Money `json:"run"`
}

// LoadAccounts reads the accounts of a state folder. Without the file there are none.
// Whoever may write the file decides what is spent: one that others than its owner may
// write, or that belongs to somebody else, is refused with budget.bad_accounts.
func LoadAccounts(state string) (Accounts, error) {
	path := filepath.Join(state, AccountsFile)
	a := Accounts{Kind: AccountsKind}
	if found, err := pin.LoadOwned(path, AccountsKind, badAccounts, &a); !found || err != nil {
		return a, err
	}
	for i, account := range a.Accounts {
		if slices.ContainsFunc(a.Accounts[:i], func(b Account) bool { return b.Name == account.Name }) {
			return Accounts{}, badAccounts("two have the name "+account.Name, path, "give each a name of its own")
		}
	}
	for i, price := range a.Prices {
		if slices.ContainsFunc(a.Prices[:i], func(b Price) bool { return b.Tool == price.Tool }) {
			return Accounts{}, badAccounts("the tool "+price.Tool+" has two prices", path, "give it one")
		}
	}
	return a, nil
}

func badAccounts(what, where, remedy string) error {
	return reason.New(reason.BudgetBadAccounts, "the accounts of the deployment cannot be used: "+what, where, remedy)
}

// Find returns the account of a name. The error is a *reason.Refusal if there is none.
func (a Accounts) Find(name string) (Account, error) {
	for _, account := range a.Accounts {
		if account.Name == name {
			return account, nil
		}
	}
	return Account{}, reason.New(reason.BudgetUnknownAccount, fmt.Sprintf("the deployment has no account named %q", name), AccountsFile,
		"name one that it has, or have it added there")
}

// Price returns what one run of a tool costs, nil if nobody has said.
func (a Accounts) Price(tool string) *workorder.Money {
	for _, p := range a.Prices {
		if p.Tool == tool {
			return &p.Run
		}
	}
	return nil
}

// unreadable is the error of what the owner of the state folder says there and cannot be
// read: nobody's order is over by that.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

// resolveBudget finds the account and the price of the work, where it has an account or may
// cost money. Work under a ceiling of money whose price nobody knows is refused here, before
// anything is recorded, and again by the kernel.
func (a *Admission) resolveBudget(_ context.Context, o *order) error {
	if o.order.Account == "" && o.budget.Money == nil {
		return nil
	}
	accounts, err := LoadAccounts(a.State)
	if err != nil {
		return unreadable{err}
	}
	price := accounts.Price(o.tool.Name)
	ceilings := map[string]*workorder.Money{"/limits/money": o.budget.Money}
	if o.order.Account != "" {
		account, err := accounts.Find(o.order.Account)
		if err != nil {
			return o.at("/account", err)
		}
		ceilings["/account"] = account.Ceiling.Money
		if account.Ceiling.Money != nil && o.budget.Money == nil {
			// An order that says nothing of money may cost what one run of it costs.
			o.budget.Money = price
		}
	}
	for _, pointer := range []string{"/limits/money", "/account"} {
		ceiling := ceilings[pointer]
		if ceiling == nil {
			continue
		}
		o.price = price
		if err := o.at(pointer, kernel.Priced(workorder.Reservation{Budget: o.budget, Price: price}, *ceiling, "")); err != nil {
			return err
		}
	}
	return nil
}

// Account records what the deployment says of an account, if it is anything new, and
// returns the account.
func (a *Admission) Account(ctx context.Context, name string, accepted ingress.Accepted) (kernel.Account, error) {
	accounts, err := LoadAccounts(a.State)
	if err != nil {
		return kernel.Account{}, err
	}
	account, err := accounts.Find(name)
	if err != nil {
		return kernel.Account{}, err
	}
	return a.Ledger.SetCeiling(context.WithoutCancel(ctx), name, account.Ceiling, account.Closed, ledger.Turn{
		Blobs: []journal.Blob{accepted.Blob}, Actor: accepted.Receipt.Principal, Cause: accepted.Receipt.ID,
	})
}

// unfunded records why the next attempt at a work order cannot be reserved, together with
// what comes first, and returns why.
func (a *Admission) unfunded(ctx context.Context, before kernel.State, r workorder.Reservation, accepted ingress.Accepted, blobs []journal.Blob, first []kernel.Command, why error) error {
	refusal, _ := reason.As(why)
	_, err := a.Ledger.CommitOrder(ctx, before, r.WorkOrder, ledger.Turn{
		Commands: append(first, kernel.Unfunded{BudgetBlock: kernel.BudgetBlock{
			Account: r.Account, Code: refusal.Code, Why: refusal.What, Asked: r.Budget.Amounts(),
		}}),
		Blobs: blobs, Actor: accepted.Receipt.Principal, Cause: accepted.Receipt.ID,
	})
	if err != nil {
		return fmt.Errorf("record that %s has no budget: %w", r.WorkOrder, err)
	}
	return reason.New(refusal.Code, refusal.What, string(r.WorkOrder), refusal.Remedy)
}
