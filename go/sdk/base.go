package sdk

import (
	"context"

	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// Base answers what an adapter does not answer itself. Embed it.
type Base struct{}

// Prepare accepts the bundle. The handle follows from adapter and attempt.
func (Base) Prepare(_ context.Context, _ Host, in Prepare) (Prepared, error) {
	return Prepared{Handle: in.Bundle.Handle()}, nil
}

// Start launches the one tool that the bundle orders.
func (Base) Start(ctx context.Context, h Host, in Start) (Started, error) {
	_, err := h.Launch(ctx, in.Bundle.Launch())
	return Started{}, err
}

// Poll waits for the one tool that the bundle orders.
func (Base) Poll(ctx context.Context, h Host, in Poll) (Status, error) {
	l, err := h.Observe(ctx, in.Bundle.Launch(), in.Wait)
	if err != nil || !l.Ended() {
		return Status{}, err
	}
	return Status{Completed: true, Launches: []Launched{l}}, nil
}

// Checkpoint is not supported. An adapter that declares checkpoints answers it itself: see TakeOffered.
func (Base) Checkpoint(context.Context, Host, Checkpoint) (Checkpointed, error) {
	return Checkpointed{}, Unsupported("checkpoints", "run without checkpoints, or choose an executor that declares them")
}

// Cancel has nothing to do: the host stops the workload.
func (Base) Cancel(context.Context, Host, Cancel) error { return nil }

// Collect names the path that the bundle declares.
func (Base) Collect(_ context.Context, _ Host, in Collect) (Collected, error) {
	return Collected{Result: in.Parameters.Result}, nil
}

// Reconcile asks the host for the launch that Start makes.
func (Base) Reconcile(ctx context.Context, h Host, in Reconcile) (Reconciled, error) {
	if in.Call.Operation.Kind() != operation.Start {
		return Reconciled{Knowledge: operation.Unknown}, nil
	}
	_, err := h.Observe(ctx, in.Bundle.Launch(), 0)
	switch {
	case err == nil:
		return Reconciled{Knowledge: operation.Applied}, nil
	case reason.Is(err, reason.IDUnknown):
		return Reconciled{Knowledge: operation.NotApplied}, nil
	}
	return Reconciled{Knowledge: operation.Unknown}, err
}

// Cleanup has nothing to do.
func (Base) Cleanup(context.Context, Host, Cleanup) error { return nil }

// Unsupported refuses what the adapter does not offer (adapter.unsupported).
func Unsupported(what, remedy string) error {
	return reason.New(reason.AdapterUnsupported, "the adapter does not support "+what, "", remedy)
}
