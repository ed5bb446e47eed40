package outbox

import (
	"context"

	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
)

// Unreachable is the effect of a sending that Prepare refused: it does nothing, and does
// not know what became of it.
type Unreachable struct {
	Err error
}

var _ ledger.Effect = Unreachable{}

// Perform implements ledger.Effect.
func (u Unreachable) Perform(context.Context, ledger.Permit) operation.Outcome {
	return operation.Refused(operation.NotApplied, u.Err)
}

// Resolve implements ledger.Effect.
func (u Unreachable) Resolve(context.Context, operation.Intent) operation.Outcome {
	return operation.Refused(operation.Unknown, u.Err)
}
