package executor

import (
	"context"

	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
)

// PerformUnder performs an effect as under a permit for the intent: only the ledger mints permits.
func PerformUnder(ctx context.Context, effect any, c protocol.Call, in operation.Intent) operation.Outcome {
	return effect.(interface {
		perform(context.Context, protocol.Call, operation.Intent) operation.Outcome
	}).perform(ctx, c, in)
}
