package evidence_test

import (
	"fmt"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/evidence"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// A journal in which somebody drew more than the ceiling of an account, or gave back what
// was never drawn, is told: each event by itself is one that the registry has.
func TestReplayTellsOfAPassedCeiling(t *testing.T) {
	calls := int64(3)
	reservation := workorder.ReservationID("res_01939a3c-7c1e-7000-8000-000000000009")
	amounts := func(n int64) workorder.Amounts { return workorder.Amounts{Calls: n} }
	for name, forged := range map[string]struct {
		family lifecycle.Family
		guard  string
		body   any
	}{
		"nothing":              {},
		"a draw too many":      {"account.drawn", "AttemptReservation", kernel.Drawn{Reservation: reservation, Budget: amounts(4)}},
		"a return of nothing":  {"account.returned", "BudgetSettlement", kernel.BudgetSettlement{Reservation: reservation, Used: amounts(0), Returned: amounts(1)}},
		"a draw that has room": {"account.drawn", "AttemptReservation", kernel.Drawn{Reservation: reservation, Budget: amounts(3)}},
	} {
		t.Run(name, func(t *testing.T) {
			a := fixture.Admit(t, nil)
			at, err := a.Ledger.SetCeiling(t.Context(), "research", workorder.Ceiling{Calls: &calls}, "", ledger.Turn{Actor: "uid:0"})
			if err != nil {
				t.Fatal(err)
			}
			if forged.body != nil {
				body, err := canonical.Marshal(forged.body)
				if err != nil {
					t.Fatal(err)
				}
				results, err := a.Store.Append(t.Context(), journal.Batch{
					Identity: "writ/account-research/ledger/turn/forged", Epoch: a.Store.Epoch(), Actor: "uid:0", At: fixture.Clock{}.Now(),
					Expect: []journal.Expectation{{Subject: at.Subject(), Version: 1}},
					Events: []lifecycle.Event{{
						Subject: at.Subject(), Version: 2, Family: forged.family, Machine: 1, Body: body,
						Guards: []lifecycle.Guard{{Name: forged.guard, Digest: fixture.Digest("forged")}},
					}},
				})
				if err != nil || results[0].Err != nil {
					t.Fatal(err, results)
				}
			}
			var told []string
			r, err := evidence.Replay(t.Context(), a.Store, a.Ledger.Kernel(), 0, evidence.Watch{Refused: func(what string, err error) { told = append(told, fmt.Sprint(what, ": ", err)) }})
			if err != nil {
				t.Fatal(err)
			}
			good := forged.body == nil || name == "a draw that has room"
			if good != (len(told) == 0 && r.Refused == nil) || !good && (len(told) != 1 || r.Refused.Event.Family != forged.family) {
				t.Errorf("told %v, refused %+v", told, r.Refused)
			}
		})
	}
}
