package attemptbundle

import (
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// CheckpointPolicy says whether checkpoints of the attempt are taken, and within which bounds
// (B9).
type CheckpointPolicy struct {
	// Policy is workorder.NoCheckpoints or workorder.OfferedCheckpoints.
	Policy string `json:"policy"`
	// PayloadKind is the registered kind that is taken, empty where none is.
	PayloadKind string `json:"payload_kind"`
	// MaxBytes bounds one payload, MaxCount how many are taken.
	MaxBytes int64 `json:"max_bytes"`
	MaxCount int64 `json:"max_count"`
	// IntervalMillis is the least time between two.
	IntervalMillis int64 `json:"interval_ms"`
}

// Taken reports whether checkpoints are taken at all.
func (c CheckpointPolicy) Taken() bool { return c.Policy == workorder.OfferedCheckpoints }

// StartingPoint names the validated checkpoint that an attempt starts from. Its payload is
// among the inputs, as the one file of the input workorder.CheckpointInput.
type StartingPoint struct {
	// Attempt is the earlier attempt that made it.
	Attempt      workorder.AttemptID `json:"attempt"`
	Envelope     canonical.Digest    `json:"envelope"`
	PayloadKind  string              `json:"payload_kind"`
	Payload      canonical.Digest    `json:"payload"`
	PayloadBytes int64               `json:"payload_bytes"`
	Position     int64               `json:"position"`
}

// MaxCheckpointBytes bounds every checkpoint payload: what is kept beside the journal's turn,
// and handed to an adapter in one message.
const MaxCheckpointBytes = 64 << 10

// checkCheckpoints refuses checkpoints without bounds, and a starting point that the tool
// would not find.
func checkCheckpoints(b *Bundle) error {
	c := b.Checkpoint
	switch {
	case c == CheckpointPolicy{Policy: workorder.NoCheckpoints}:
	case !c.Taken():
		return refuse(reason.BundleUnbounded, "checkpoint_policy", "takes no checkpoints and bounds them, or is none that is known", "write none, or offered with its bounds")
	case c.MaxBytes <= 0 || c.MaxBytes > MaxCheckpointBytes || c.MaxCount <= 0 || c.IntervalMillis <= 0:
		return refuse(reason.BundleUnbounded, "checkpoint_policy", "is not bounded", "give it positive numbers, and payloads of 64 KiB at most")
	}
	p := b.StartsFrom
	if p == nil {
		return nil
	}
	for _, in := range b.Inputs.Inputs {
		if in.Name == workorder.CheckpointInput && len(in.Files) == 1 && in.Files[0].Path == workorder.CheckpointFile &&
			in.Files[0].Digest == p.Payload && in.Files[0].Size == p.PayloadBytes && p.Payload.Valid() && p.Envelope.Valid() {
			return nil
		}
	}
	return refuse(reason.BundleUnpinned, "starts_from", "names a checkpoint that is not among the inputs", "give its payload as the input "+workorder.CheckpointInput)
}
