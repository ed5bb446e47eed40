package sdk

import (
	"context"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/workorder"
)

// TakeOffered proposes what the workload has offered, as it stands. The kind is the one that the payload itself names,
// or the one that is asked for where it names none: judging it is for the host.
func TakeOffered(ctx context.Context, h Host, in Checkpoint) (Checkpointed, error) {
	payload, err := h.Offered(ctx)
	if err != nil {
		return Checkpointed{}, err
	}
	out := Checkpointed{PayloadKind: in.Parameters.PayloadKind, Payload: canonical.Sum(payload), PayloadBytes: int64(len(payload))}
	if v, err := canonical.Parse(payload, canonical.DefaultLimits()); err == nil {
		if kind, ok := v.Get("kind"); ok && kind.Kind() == canonical.KindString && kind.Str() != "" {
			out.PayloadKind = kind.Str()
		}
	}
	return out, nil
}

// envelope makes the checkpoint envelope of what an adapter proposes: it is bound to the call and its bundle, whatever
// the adapter says.
func (h *link) envelope(c Checkpointed) workorder.CheckpointEnvelope {
	return workorder.CheckpointEnvelope{
		Kind: workorder.CheckpointKind, Attempt: h.call.Fence.Attempt, Fence: h.call.Fence, Operation: string(h.call.Operation),
		PayloadKind: c.PayloadKind, Payload: c.Payload, PayloadBytes: c.PayloadBytes, Artifacts: []canonical.Digest{}, Policy: h.bundle.Decision,
	}
}
