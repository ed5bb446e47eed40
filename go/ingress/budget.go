package ingress

import (
	"context"

	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/workorder"
)

// settleBudget has a person say what the incomplete receipt of an attempt counts for. The
// money is in the currency and scale of the reservation, and 0 where that has none.
func (c *hearing) settleBudget(ctx context.Context, in Intent, first []kernel.Command) error {
	l := c.desk.Ledger
	state, err := l.State(ctx, workorder.AttemptID(in.Target))
	if err != nil {
		return err
	}
	amounts := map[string]int64{}
	for _, flag := range []string{"calls", "tokens", "wall-ms", "money", "expected-version"} {
		n, err := number(in, flag)
		if err != nil {
			return err
		}
		amounts[flag] = int64(n)
	}
	settle := kernel.SettleBudget{
		Used:            workorder.Amounts{Calls: amounts["calls"], Tokens: amounts["tokens"], WallMillis: amounts["wall-ms"]},
		ExpectedVersion: uint64(amounts["expected-version"]), Principal: c.accepted.Receipt.Principal, Reason: in.Flag("reason"),
	}
	switch {
	case state.Budget != nil && state.Budget.Reserved.Money != nil:
		money := *state.Budget.Reserved.Money
		money.Amount = amounts["money"]
		settle.Used.Money = &money
	case amounts["money"] != 0:
		return malformed("--money is not 0, and the reservation counts no money", "write --money 0")
	}
	subject := lifecycle.Of(kernel.BudgetMachine, string(state.Reservation))
	_, err = l.Commit(ctx, c.turn(state.Fence(), append(first, settle, kernel.Apply{Delivery: c.delivery(), Became: subject})))
	return err
}
