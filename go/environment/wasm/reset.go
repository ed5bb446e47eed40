package wasm

import (
	"context"
	"fmt"

	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// Reset implements environment.Environment: the living worker forgets inputs and workspace,
// counts what is left of them, and measures itself anew.
func (a *attempt) Reset(accept func(attestation.Expectation, attestation.Report) error) ledger.Effect {
	return effect{a, operation.Reset, func(ctx context.Context) operation.Outcome { return a.reset(ctx, accept) }}
}

func (a *attempt) reset(ctx context.Context, accept func(attestation.Expectation, attestation.Report) error) operation.Outcome {
	w := a.living()
	if w == nil {
		return operation.Refused(operation.NotApplied, a.dead("reset"))
	}
	expected, err := a.expected()
	if err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	report, left, err := w.Reset(ctx)
	if err != nil {
		// A worker that gave no answer may have forgotten everything, and proves nothing.
		return operation.Refused(operation.Unknown, err)
	}
	if left.Files != 0 || left.Bytes != 0 {
		return operation.Refused(operation.NotApplied, reason.New(reason.EnvironmentMismatch,
			fmt.Sprintf("the reset left %d files and %d bytes behind", left.Files, left.Bytes), a.order.Resource, "it is destroyed as it is"))
	}
	if err := accept(expected, report); err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	digest, err := canonical.DigestOf(report)
	if err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	return operation.Done(protocol.ResetResult{Resource: a.order.Resource, Report: digest, FilesLeft: left.Files, BytesLeft: left.Bytes})
}
