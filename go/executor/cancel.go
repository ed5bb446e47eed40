package executor

import (
	"context"
	"fmt"
	"time"

	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// CancelEffect cancels the execution. The adapter is told first, and the host ends what bears the name whatever it
// answers: no adapter can hold up a cancellation. Its domain result is a protocol.RemovalResult, looked at and not
// assumed.
type CancelEffect struct {
	Adapter Adapter
	Witness Witness
	Stopper Stopper
	Request protocol.Request
	// Handle is empty where nothing was prepared; then the adapter is not asked.
	Handle string
	// Patience bounds how long the adapter may take.
	Patience time.Duration
}

// Perform tells the adapter, stops the execution and looks.
func (e CancelEffect) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	return e.perform(ctx, p.Call(), p.Intent())
}

func (e CancelEffect) perform(ctx context.Context, c protocol.Call, in operation.Intent) operation.Outcome {
	if err := checkRequest(c, e.Request); err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	var (
		answer Answer
		lie    *reason.Refusal
	)
	if e.Handle != "" {
		patient, cancel := context.WithTimeout(ctx, e.Patience)
		defer cancel()
		// One call: a second would only delay what the host does anyway.
		if a, err := e.Adapter.Cancel(patient, c, e.Request, e.Handle); err == nil {
			answer, lie = a, contradiction(c, a.Effects, e.Witness.Launches(c.Operation))
		}
	}
	wasAlive, err := e.Stopper.Stop(ctx, in.Resource)
	if err != nil {
		return claimed(operation.Outcome{Knowledge: operation.Unknown, Code: reason.OperationUnknownOutcome,
			Detail: fmt.Sprintf("what bears the name %s could not be stopped: %v", in.Resource, err)}, answer)
	}
	return claimed(marked(removed(ctx, e.Stopper, in, wasAlive), lie), answer)
}

// Resolve asks whether anything bears the name.
func (e CancelEffect) Resolve(ctx context.Context, in operation.Intent) operation.Outcome {
	return removed(ctx, e.Stopper, in, false)
}

// marked notes a lie in an outcome that the host knows by itself.
func marked(out operation.Outcome, lie *reason.Refusal) operation.Outcome {
	if lie != nil {
		out.Code, out.Detail = lie.Code, lie.Error()
	}
	return out
}
