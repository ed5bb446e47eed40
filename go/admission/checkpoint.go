package admission

import (
	"context"
	"fmt"
	"slices"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

const (
	defaultIntervalMillis = 1000
	// maxCheckpoints bounds the checkpoints of one attempt: each is two turns of the journal.
	maxCheckpoints = 10_000
)

// resolveCheckpoint fixes which checkpoints are taken, refuses an executor or environment
// that cannot take them (R7), and finds the validated checkpoint that the attempt starts from.
func (a *Admission) resolveCheckpoint(ctx context.Context, o *order) error {
	c := o.order.Checkpoint
	if c == nil || c.Policy != workorder.OfferedCheckpoints {
		o.checkpoint = attemptbundle.CheckpointPolicy{Policy: workorder.NoCheckpoints}
		return nil
	}
	o.checkpoint = attemptbundle.CheckpointPolicy{
		Policy: c.Policy, PayloadKind: c.PayloadKind, MaxBytes: attemptbundle.MaxCheckpointBytes, IntervalMillis: or(c.IntervalMillis, defaultIntervalMillis),
	}
	if c.PayloadKind == "" {
		o.checkpoint.PayloadKind = workorder.ToolProgressKind
	}
	o.checkpoint.MaxCount = min(o.manifest.Limits.WallMillis/o.checkpoint.IntervalMillis+1, maxCheckpoints)
	switch kind := o.checkpoint.PayloadKind; {
	case !slices.Contains(workorder.PayloadKinds(), kind):
		return o.at("/checkpoint/payload_kind", reason.New(reason.CheckpointUnregisteredKind, fmt.Sprintf("no payload kind %q is registered", kind),
			"checkpoint.payload_kind", "write "+workorder.ToolProgressKind))
	case !o.executor.Checkpoint:
		return o.at("/checkpoint/policy", reason.New(reason.AdapterUnsupported, "the adapter "+o.adapter.Name+" does not declare checkpoints",
			"checkpoint.policy", "run without checkpoints, or choose an executor that declares them"))
	case !o.provider.Capabilities().Checkpoint:
		return o.at("/checkpoint/policy", reason.New(reason.EnvironmentUnsupported, "nothing in the environment "+o.order.Environment.Provider+" can offer checkpoints",
			"checkpoint.policy", "run without checkpoints, or choose an environment that can"))
	}
	for i, in := range o.order.Inputs {
		if in.Name == workorder.CheckpointInput {
			return o.document.Invalid(o.document.Problem(fmt.Sprintf("/inputs/%d/name", i), "reserved",
				fmt.Sprintf("the input %q is where an attempt finds its checkpoint", in.Name), "give the input another name", reason.MaterializeUnsupportedEntry))
		}
	}
	return a.startFrom(ctx, o)
}

// startFrom puts the newest validated checkpoint of a recorded order among the inputs.
func (a *Admission) startFrom(ctx context.Context, o *order) error {
	if o.known == nil {
		return nil
	}
	from := o.known.StartsFrom(o.tool.Digest, o.checkpoint.PayloadKind)
	if from == nil {
		return nil
	}
	payload, err := a.Artifacts.Read(ctx, from.Payload, from.PayloadBytes)
	if err != nil {
		return fmt.Errorf("checkpoint of %s: %w", from.Attempt, err)
	}
	o.from, o.sources = from, o.sources.WithCheckpoint(payload)
	o.inputs.Inputs = append(slices.Clone(o.inputs.Inputs), protocol.InputMount{
		Name: workorder.CheckpointInput, Files: []protocol.InputFile{{Path: workorder.CheckpointFile, Size: from.PayloadBytes, Digest: from.Payload}},
	})
	return nil
}

// checkpointActions are the actions that checkpoints imply: they leave the environment, and
// are read in the next one.
func (o *order) checkpointActions() []workorder.Action {
	var asked []workorder.Action
	if o.checkpoint.Taken() {
		asked = append(asked, workorder.Action{Action: "checkpoint.propose", Resource: "none"})
	}
	if o.from != nil {
		asked = append(asked, workorder.Action{Action: "input.read", Resource: "input:" + workorder.CheckpointInput + "/**"})
	}
	return asked
}

// given are the artifacts of the context package: the checkpoint that the attempt starts from.
func (o *order) given() []canonical.Digest {
	if o.from == nil {
		return []canonical.Digest{}
	}
	return []canonical.Digest{o.from.Payload}
}
