package environment

import (
	"context"
	"time"

	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// ByName resolves operations, and removes what they left, by the resource's name alone:
// for a process that never held the environment, or has lost it.
type ByName struct {
	Provider Provider
}

// Perform implements ledger.Effect for the operations that remove.
func (b ByName) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	switch p.Intent().Kind {
	case operation.Cancel, operation.Cleanup, operation.Destroy:
	case operation.Reset:
		// Nobody is there any more who could be emptied and measured. What the name still
		// bears is for destroy, which comes next.
		return operation.Refused(operation.NotApplied, reason.New(reason.EnvironmentDead, "the process that held the environment is gone, and nobody can measure it", p.Intent().Resource,
			"it is destroyed as it is"))
	default:
		return operation.Refused(operation.NotApplied, reason.New(reason.OperationPermitInvalid, "only a removal can be performed by name",
			string(p.Intent().Key), "this is a fault of the caller: report it"))
	}
	return b.Provider.Resolve(ctx, p.Intent())
}

// Resolve implements ledger.Effect.
func (b ByName) Resolve(ctx context.Context, in operation.Intent) operation.Outcome {
	return b.Provider.Resolve(ctx, in)
}

// Look asks what bears the environment's name, within the bundle's deadline. An answer
// that cannot be had is no answer: what is left is then unknown.
func Look(ctx context.Context, p Provider, s kernel.State) protocol.EnvironmentReconciliation {
	ctx, cancel := ReconciliationContext(ctx, s)
	defer cancel()
	found, err := p.Reconcile(ctx, s.Resource)
	if err != nil {
		return protocol.EnvironmentReconciliation{Resource: s.Resource, Why: err.Error()}
	}
	return found
}

// ReconciliationContext bounds one reconciliation by the deadline that the attempt
// bundle sets for it.
func ReconciliationContext(ctx context.Context, s kernel.State) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(s.Bundle.Bundle().Reconciliation.DeadlineMillis)*time.Millisecond)
}
