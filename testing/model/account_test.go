package model_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/workorder"
)

// account is what every attempt of a history draws its time on. share is what one takes, in
// milliseconds: the wall limit of the fixed bundle.
const (
	account = "research"
	share   = 30_000
)

// setCeiling has the deployment say how much time there is.
func (m *machine) setCeiling(t *rapid.T, millis int64) {
	_, err := m.ledger.SetCeiling(m.ctx, account, workorder.Ceiling{WallMillis: &millis}, "", ledger.Turn{Actor: "uid:0"})
	m.commit(t, ledger.Opened{}, err, func() { m.ref.ceiling = millis })
}

func (m *machine) changeCeiling(t *rapid.T) {
	m.setCeiling(t, share*rapid.Int64Range(1, 6).Draw(t, "shares"))
}

// drawn is what attempts hold of the account, and what they have used up, by what became of
// each of them.
func (m *machine) drawn(t *rapid.T) (reserved, spent int64) {
	for id := range m.ref.attempts {
		b := m.state(t, id).Budget
		switch {
		case b == nil || b.Reserved.WallMillis != share:
			t.Fatalf("%s has the budget %+v", id, b)
		case b.Returned == nil:
			reserved += share
		default:
			if b.Used.WallMillis+b.Returned.WallMillis != share {
				t.Fatalf("of %d ms %s used %+v and gave back %+v", share, id, b.Used, b.Returned)
			}
			spent += b.Used.WallMillis
		}
	}
	return reserved, spent
}

// holdAccount holds the account against the attempts that drew on it (K8).
func (m *machine) holdAccount(t *rapid.T) {
	reserved, spent := m.drawn(t)
	a, err := m.ledger.Account(m.ctx, account)
	must(t, err)
	if a.Reserved().WallMillis != reserved || a.Spent.WallMillis != spent {
		t.Fatalf("of the account %d ms are reserved and %d spent, of its attempts %d and %d", a.Reserved().WallMillis, a.Spent.WallMillis, reserved, spent)
	}
}

// hasRoom reports whether one more attempt can draw on the account.
func (m *machine) hasRoom(t *rapid.T) bool {
	reserved, spent := m.drawn(t)
	return reserved+spent+share <= m.ref.ceiling
}

// settleBudget has a person say what an attempt used of which nobody knows. Only one that is
// over, and whose receipts do not say it, can be settled so.
func (m *machine) settleBudget(t *rapid.T) {
	a, s := m.attempt(t, func(s kernel.State) bool { return s.Bundle != nil })
	at := s.Of(kernel.BudgetMachine)
	text := fmt.Sprintf("/writ settle-budget %s --calls 0 --tokens 0 --wall-ms %d --money 0 --expected-version %d --reason seen",
		a.id, rapid.Int64Range(0, share).Draw(t, "used"), at.Version)
	m.deliver(t, text, func(answer ingress.Answer) {
		if may := at.State == "incomplete" && m.kernel.Closed(s); may != (answer.State == "applied") {
			t.Fatalf("the budget of an attempt that is %s is %s, and its settlement %s: %v", s.Of(kernel.AttemptMachine).State, at.State, answer.State, answer.Refusal())
		}
		if answer.State == "applied" {
			m.seen["settled"]++
		}
	})
}
