package executor

import (
	"context"
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// Collector binds what was frozen to a structured result.
type Collector interface {
	// Collect validates the frozen artifact at a declared path and binds it to the manifest. The path is empty where
	// the bundle declares no structured result. An error is a *reason.Refusal and means that nothing was collected.
	Collect(ctx context.Context, path string) (protocol.CollectResult, error)
}

// CollectEffect collects the result. The adapter names the path, the host accepts only the declared one, and the
// collector validates what was frozen there. Its domain result is a protocol.CollectResult.
type CollectEffect struct {
	Adapter   Adapter
	Witness   Witness
	Collector Collector
	Request   protocol.Request
	Handle    string
}

// Perform asks the adapter and collects.
func (e CollectEffect) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	return e.perform(ctx, p.Call(), p.Intent())
}

func (e CollectEffect) perform(ctx context.Context, c protocol.Call, in operation.Intent) operation.Outcome {
	if err := checkRequest(c, e.Request); err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	var declared protocol.CollectParameters
	if err := canonical.DecodeCanonical(e.Request.Parameters, &declared); err != nil {
		return operation.Refused(operation.NotApplied, fmt.Errorf("parameters of %s: %w", c.Operation, err))
	}
	answer, err := made(ctx, in.Class, func(ctx context.Context) (Answer, error) { return e.Adapter.Collect(ctx, c, e.Request, e.Handle) })
	if err != nil {
		// Collecting is the host's own work, and it has not begun.
		return operation.Refused(operation.NotApplied, err)
	}
	if l := contradiction(c, answer.Effects, e.Witness.Launches(c.Operation)); l != nil {
		return claimed(operation.Refused(operation.NotApplied, l), answer)
	}
	if answer.Refusal != nil {
		return claimed(operation.Refused(operation.NotApplied, answer.Refusal), answer)
	}
	var said Collected
	if err := canonical.DecodeCanonical(answer.Result, &said); err != nil {
		return claimed(operation.Refused(operation.NotApplied, noResult(c, err)), answer)
	}
	if said.Result != declared.Result {
		return claimed(operation.Refused(operation.NotApplied, lied(c.Operation,
			fmt.Sprintf("the adapter reports its result at %q, the bundle declares %q", said.Result, declared.Result))), answer)
	}
	result, err := e.Collector.Collect(ctx, declared.Result)
	if err != nil {
		return claimed(operation.Refused(operation.NotApplied, err), answer)
	}
	return claimed(operation.Done(result), answer)
}

// Resolve says that nothing was collected: a collection that was not recorded has left nothing.
func (e CollectEffect) Resolve(context.Context, operation.Intent) operation.Outcome {
	return operation.Outcome{Knowledge: operation.NotApplied, Code: reason.OperationDissolved,
		Detail: "the collection was not recorded before the host ended; the frozen outputs are untouched"}
}
