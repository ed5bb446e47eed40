package executor

import (
	"context"

	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// CleanupEffect ends the adapter's part in the execution. The environment is destroyed after it, by an operation of
// its own. Its domain result is a protocol.RemovalResult over what the prober found.
type CleanupEffect struct {
	Adapter Adapter
	Witness Witness
	// Prober looks for the workload; the environment itself may still stand.
	Prober  Prober
	Request protocol.Request
	Handle  string
}

// Perform tells the adapter and looks. An adapter that cannot be reached has nothing left to clean up: it holds
// nothing outside its process.
func (e CleanupEffect) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	return e.perform(ctx, p.Call(), p.Intent())
}

func (e CleanupEffect) perform(ctx context.Context, c protocol.Call, in operation.Intent) operation.Outcome {
	if err := checkRequest(c, e.Request); err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	answer, err := made(ctx, in.Class, func(ctx context.Context) (Answer, error) { return e.Adapter.Cleanup(ctx, c, e.Request, e.Handle) })
	var lie *reason.Refusal
	if err == nil {
		lie = contradiction(c, answer.Effects, e.Witness.Launches(c.Operation))
	}
	return claimed(marked(removed(ctx, e.Prober, in, false), lie), answer)
}

// Resolve asks whether anything bears the name.
func (e CleanupEffect) Resolve(ctx context.Context, in operation.Intent) operation.Outcome {
	return removed(ctx, e.Prober, in, false)
}
