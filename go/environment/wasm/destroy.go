package wasm

import (
	"context"
	"errors"
	"time"

	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/retention"
)

// Destroy implements environment.Environment. The workspace is memory of the worker: what
// is to be kept is copied out while the worker lives, and nothing of its guest does; then
// the worker goes. A worker that is dead has taken it along.
func (a *attempt) Destroy(policy protocol.RetentionParameters) ledger.Effect {
	return effect{a, operation.Destroy, func(ctx context.Context) operation.Outcome { return a.destroy(ctx, policy) }}
}

func (a *attempt) destroy(ctx context.Context, policy protocol.RetentionParameters) operation.Outcome {
	var nothing *reason.Refusal
	if policy.Keep {
		var doubt *retention.DoubtError
		switch err := a.keep(ctx, policy); {
		case errors.As(err, &doubt):
			return operation.Refused(operation.Unknown, err)
		case reason.Is(err, reason.RetentionNothingLeft):
			nothing, _ = reason.As(err)
		case err != nil:
			// The worker stays as it is, for the next try.
			return operation.Refused(operation.NotApplied, err)
		}
	}
	a.mu.Lock()
	w := a.worker
	a.worker = nil
	a.mu.Unlock()
	var wasAlive bool
	if w != nil {
		wasAlive = w.Alive()
		if err := w.Close(ctx); err != nil {
			return operation.Refused(operation.Unknown, err)
		}
	}
	found, err := a.provider.Reconcile(ctx, a.order.Resource)
	if err != nil {
		return operation.Refused(operation.Unknown, err)
	}
	found.WasAlive = found.WasAlive || wasAlive
	return a.provider.destroyed(ctx, found, nothing)
}

// keepTimeout bounds the copying of a workspace. A worker that does not serve it within that
// is killed, and keeps it to itself.
const keepTimeout = 10 * time.Minute

// keep copies the workspace out. It fails with retention.nothing_left where there is none.
func (a *attempt) keep(ctx context.Context, policy protocol.RetentionParameters) error {
	a.mu.Lock()
	launched, ended := a.launched, a.ended
	a.mu.Unlock()
	w, name := a.living(), a.order.Resource
	switch {
	case w == nil:
		return retention.Nothing("its worker was dead, and the workspace with it", name)
	case !launched:
		return retention.Nothing("nothing had run in it", name)
	case ended == nil:
		return retention.Nothing("its tool could be ended only together with its worker", name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, keepTimeout,
		reason.New(reason.RetentionUnreadable, "the worker did not serve its workspace in time", name, "run again"))
	defer cancel()
	l := a.bundle.Environment.Limits
	_, err := a.provider.kept.Keep(ctx, retention.Order{
		Attempt: a.order.Fence.Attempt, Bundle: a.order.Bundle.Digest(), Resource: name, Policy: policy, Files: l.Files, Bytes: l.DiskBytes,
	}, workspace{w})
	if _, ours := reason.As(err); err != nil && !ours && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// destroyed is the outcome of a destroy once nothing alive bears the name: what is kept, is
// found by the name. What stands there and was not kept, or was changed since, is nobody's
// environment: the receipt names it, and it is left alone. nothing says why nothing was to
// be kept, nil where nobody asked.
func (p *Provider) destroyed(ctx context.Context, found protocol.EnvironmentReconciliation, nothing *reason.Refusal) operation.Outcome {
	kept, there, err := p.kept.Find(ctx, found.Resource)
	switch {
	case reason.Is(err, reason.RetentionOccupied):
		nothing, _ = reason.As(err)
	case err != nil:
		return operation.Refused(operation.Unknown, err) // It could not be looked at.
	}
	if !found.Gone {
		return removed(found)
	}
	result := protocol.RemovalResult{Resource: found.Resource, WasAlive: found.WasAlive, Gone: true}
	if there {
		result.Kept, result.Retention = kept.Bytes, &kept
		return operation.Done(result)
	}
	out := operation.Done(result)
	if nothing != nil {
		out = out.Because(nothing)
	}
	return out
}

// forget removes what was kept under a name. Until it is gone, what is left of it is not
// known.
func (p *Provider) forget(found protocol.EnvironmentReconciliation) operation.Outcome {
	if err := p.kept.Remove(found.Resource); err != nil {
		return operation.Refused(operation.Unknown, err)
	}
	out := removed(found)
	if !found.Gone {
		out.Knowledge = operation.Unknown // The bytes are gone: it is not that nothing took place.
	}
	return out
}
