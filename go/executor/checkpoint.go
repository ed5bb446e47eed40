package executor

import (
	"context"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// CheckpointEffect has the adapter propose a checkpoint of its running workload. Its domain result is a
// workorder.CheckpointEnvelope, which is the adapter's word: only the kernel's judgement makes a checkpoint of it.
type CheckpointEffect struct {
	Adapter Adapter
	Witness Witness
	Request protocol.Request
	Handle  string
}

// Perform asks the adapter. Its answer is all that the operation leaves, so a lost one leaves nothing: the workload's
// next offer is asked for anew.
func (e CheckpointEffect) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	return e.perform(ctx, p.Call(), p.Intent())
}

func (e CheckpointEffect) perform(ctx context.Context, c protocol.Call, in operation.Intent) operation.Outcome {
	if err := checkRequest(c, e.Request); err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	answer, err := made(ctx, in.Class, func(ctx context.Context) (Answer, error) { return e.Adapter.Checkpoint(ctx, c, e.Request, e.Handle) })
	if err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	if l := contradiction(c, answer.Effects, e.Witness.Launches(c.Operation)); l != nil {
		return claimed(operation.Refused(operation.NotApplied, l), answer)
	}
	if answer.Refusal != nil {
		return claimed(operation.Refused(operation.NotApplied, answer.Refusal), answer)
	}
	var envelope workorder.CheckpointEnvelope
	if err := canonical.DecodeCanonical(answer.Result, &envelope); err != nil {
		return claimed(operation.Refused(operation.NotApplied, noResult(c, err)), answer)
	}
	return claimed(operation.Outcome{Knowledge: operation.Applied, Result: answer.Result}, answer)
}

// Resolve says that nothing was taken: a checkpoint that was not recorded has left nothing.
func (e CheckpointEffect) Resolve(context.Context, operation.Intent) operation.Outcome {
	return operation.Outcome{Knowledge: operation.NotApplied, Code: reason.OperationDissolved,
		Detail: "the checkpoint was not recorded before the host ended; nothing starts from it"}
}
