package supervisor

import (
	"context"

	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
)

// refusing is the effect of a call to an adapter that could not be started.
type refusing struct {
	err error
}

func (r refusing) Perform(context.Context, ledger.Permit) operation.Outcome {
	return operation.Refused(operation.NotApplied, r.err)
}

func (r refusing) Resolve(context.Context, operation.Intent) operation.Outcome {
	return operation.Refused(operation.Unknown, r.err)
}
