package kernel

import (
	"fmt"
	"strconv"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Checkpoint is a checkpoint that this reducer has validated: the body of
// execution.checkpointed, and of work_order.checkpointed, by which the work order's own
// history holds the newest one.
type Checkpoint struct {
	Envelope workorder.CheckpointEnvelope `json:"envelope"`
	// Digest names the envelope.
	Digest canonical.Digest `json:"envelope_digest"`
	// Position is how much of the work it covers, in the tool's own units.
	Position int64 `json:"position"`
	// Tool is the tool whose progress it is.
	Tool canonical.Digest `json:"tool"`
}

// StartsFrom is what an attempt with that tool, which takes payloads of that kind, starts
// from: the newest validated checkpoint of the work order. It is nil where there is none, and
// where another tool made it: that one's state says nothing to this one.
func (s State) StartsFrom(tool canonical.Digest, payloadKind string) *attemptbundle.StartingPoint {
	c := s.Checkpoint
	if c == nil || c.Tool != tool || c.Envelope.PayloadKind != payloadKind {
		return nil
	}
	return &attemptbundle.StartingPoint{
		Attempt: c.Envelope.Attempt, Envelope: c.Digest, PayloadKind: c.Envelope.PayloadKind,
		Payload: c.Envelope.Payload, PayloadBytes: c.Envelope.PayloadBytes, Position: c.Position,
	}
}

// startsRight refuses a bundle that starts from anything but what the reducer has validated.
func (d *decision) startsRight(b *attemptbundle.Bundle) error {
	want, got := d.state.StartsFrom(ranTool(b), b.Checkpoint.PayloadKind), b.StartsFrom
	if want == nil && got == nil || want != nil && got != nil && *want == *got {
		return nil
	}
	return reason.New(reason.BundleDigestMismatch, "the attempt bundle starts from another point than the newest validated checkpoint of the work order",
		string(b.Attempt.ID), "compile the bundle again")
}

// ranTool is the digest at which a bundle pins the tool that it runs.
func ranTool(b *attemptbundle.Bundle) canonical.Digest {
	for _, tool := range b.Pins.Tools {
		if tool.Name == b.Execution.Tool {
			return tool.Digest
		}
	}
	return ""
}

// Checkpoint returns the intent of the attempt's next checkpoint.
func (k Kernel) Checkpoint(s State) (operation.Intent, error) {
	return k.order(s, want{operation.Checkpoint, strconv.FormatInt(s.checkpoints()+1, 10)})
}

// checkpoints counts the checkpoints that were asked for.
func (s State) checkpoints() (n int64) {
	for _, o := range s.operations {
		if o.Intent.Kind == operation.Checkpoint {
			n++
		}
	}
	return n
}

// orders reports whether the bundle orders a checkpoint for that purpose: it is a number
// within the bundle's bound, which is 0 where none are taken. Which number comes next is for
// mayCheckpoint to say.
func (s State) orders(purpose string) bool {
	n, err := strconv.ParseInt(purpose, 10, 64)
	return err == nil && n <= s.Bundle.Bundle().Checkpoint.MaxCount
}

// mayCheckpoint refuses a checkpoint that is not the next one of a running execution.
func (d *decision) mayCheckpoint(in operation.Intent) error {
	if !d.in(ExecutionMachine, "running") {
		return wrongState(string(in.Key), "a checkpoint is taken while the execution runs")
	}
	if want := strconv.FormatInt(d.state.checkpoints()+1, 10); in.Key.Purpose() != want {
		return wrongState(string(in.Key), "the next checkpoint of the attempt is number "+want)
	}
	for _, o := range d.state.operations {
		if o.Intent.Kind == operation.Checkpoint && !o.Settled() {
			return wrongState(string(in.Key), "another checkpoint is being taken: "+string(o.Intent.Key))
		}
	}
	return nil
}

// ProposeCheckpoint has the reducer judge the checkpoint that an applied operation came to, with the
// payload as it was offered. It never refuses: what it does not accept is recorded with the
// reason, and is never started from.
type ProposeCheckpoint struct {
	Operation operation.Key
	Payload   []byte
}

func (c ProposeCheckpoint) decide(d *decision) error {
	o, ok := d.state.operations[c.Operation]
	if !ok || o.Intent.Kind != operation.Checkpoint {
		return wrongState(string(c.Operation), "no checkpoint was begun under this key")
	}
	if o.State != "applied" || o.Judged {
		return nil // It came to no checkpoint, or this one was judged.
	}
	var e workorder.CheckpointEnvelope
	if err := canonical.DecodeCanonical(o.Record.Outcome.Result, &e); err != nil || e.Kind != workorder.CheckpointKind {
		return d.refuseResult(o, reason.New(reason.CheckpointMalformed, "what the operation came to is no checkpoint envelope", string(c.Operation), askVendor))
	}
	if e.Operation != string(o.Intent.Key) {
		return d.refuseResult(o, reason.New(reason.CheckpointForeign, "the checkpoint is of another operation: "+e.Operation, string(c.Operation), askVendor))
	}
	if late := d.late(o, e); late != nil {
		return d.refuseResult(o, late)
	}
	envelope, err := report("CheckpointEnvelope", e)
	if err != nil {
		return err
	}
	if err := d.of("execution.checkpoint_proposed", e, envelope); err != nil {
		return err
	}
	position, err := d.judge(o, e, c.Payload)
	if err != nil {
		return d.refuseCheckpoint(err)
	}
	checkpoint := Checkpoint{Envelope: e, Digest: envelope.Digest, Position: position, Tool: ranTool(d.state.Bundle.Bundle())}
	if err := d.of("execution.checkpointed", checkpoint, guard(operation.Checkpoint.ReceiptName(), o.receipt)); err != nil {
		return err
	}
	return d.of("work_order.checkpointed", checkpoint, envelope)
}

const askVendor = "report it to the adapter's vendor"

// late says why a checkpoint came too late to be judged; nil if it did not.
func (d *decision) late(o Operation, e workorder.CheckpointEnvelope) error {
	switch {
	case e.Fence.Generation != d.state.Generation:
		return reason.New(reason.KernelStaleFence, fmt.Sprintf("the checkpoint is of fence generation %d, the fence is at generation %d", e.Fence.Generation, d.state.Generation),
			string(o.Intent.Key), "nothing: it is kept, and nothing starts from it")
	case !d.in(ExecutionMachine, "running"):
		return reason.New(reason.CheckpointLate, fmt.Sprintf("the checkpoint came when the execution was %s", d.state.Of(ExecutionMachine).State),
			string(o.Intent.Key), "nothing: it is kept, and nothing starts from it")
	}
	return nil
}

// judge holds a checkpoint against what it was asked for and against its registered kind, and
// returns the position at which the work stands.
func (d *decision) judge(o Operation, e workorder.CheckpointEnvelope, payload []byte) (int64, error) {
	s, policy, where := d.state, d.state.Bundle.Bundle().Checkpoint, string(o.Intent.Key)
	switch {
	case e.Attempt != s.Attempt || e.Fence.Attempt != s.Attempt:
		return 0, reason.New(reason.CheckpointForeign, fmt.Sprintf("the checkpoint is of attempt %s, fence of %s", e.Attempt, e.Fence.Attempt), where, askVendor)
	case e.Policy != s.Decision():
		return 0, reason.New(reason.CheckpointForeign, "the checkpoint was made under another policy decision: "+string(e.Policy), where, askVendor)
	case e.PayloadKind != policy.PayloadKind:
		return 0, reason.New(reason.CheckpointUnregisteredKind, fmt.Sprintf("the payload is of kind %q, the attempt bundle takes %q", e.PayloadKind, policy.PayloadKind),
			where, "have the tool offer the kind that the work order names")
	case int64(len(payload)) > policy.MaxBytes || e.PayloadBytes != int64(len(payload)):
		return 0, reason.New(reason.CheckpointTooLarge, fmt.Sprintf("the payload takes %d bytes, the envelope says %d, the attempt bundle allows %d", len(payload), e.PayloadBytes, policy.MaxBytes),
			where, "have the tool offer less")
	case e.Payload != canonical.Sum(payload):
		return 0, reason.New(reason.CheckpointDigestMismatch, fmt.Sprintf("the envelope names payload %s, what came is %s", e.Payload, canonical.Sum(payload)), where, askVendor)
	case len(e.Artifacts) > 0:
		return 0, reason.New(reason.CheckpointMalformed, "a payload of this kind refers to no artifacts, and the envelope names some", where, askVendor)
	}
	position, err := workorder.CheckPayload(e.PayloadKind, payload)
	if err != nil {
		return 0, err
	}
	// A newer tool counts in units of its own, and so does another kind of payload.
	if last := s.StartsFrom(ranTool(s.Bundle.Bundle()), e.PayloadKind); last != nil && position <= last.Position {
		return 0, reason.New(reason.CheckpointNotNewer, fmt.Sprintf("the checkpoint stands at %d, the one before it at %d", position, last.Position), where,
			"have the tool offer a checkpoint when it has come further")
	}
	return position, nil
}

// refuseCheckpoint records that the checkpoint just proposed is not accepted. The execution
// runs on.
func (d *decision) refuseCheckpoint(why error) error {
	f, g, err := refusal(why)
	if err != nil {
		return err
	}
	return d.of("execution.checkpoint_refused", f, g)
}

// refuseResult records that what an operation came to is not used: it came too late, or is
// nothing that could be judged.
func (d *decision) refuseResult(o Operation, why error) error {
	f, g, err := refusal(why)
	if err != nil {
		return err
	}
	return d.emit(operationSubject(o.Intent.Key), "operation.refused", f, g)
}

// refusal is the report of why a checkpoint is refused.
func refusal(why error) (Failure, lifecycle.Guard, error) {
	r, ok := reason.As(why)
	if !ok {
		return Failure{}, lifecycle.Guard{}, why
	}
	f := Failure{Conclusion: workorder.Failed, Stage: string(operation.Checkpoint), Code: r.Code, Detail: r.What, Remedy: r.Remedy}
	g, err := report("FailureReport", f)
	return f, g, err
}

// absorbCheckpoint marks the operation whose checkpoint is judged.
func absorbCheckpoint(s *State, e lifecycle.Event, body any) error {
	var envelope workorder.CheckpointEnvelope
	if err := into(body, e.Body, &envelope); err != nil {
		return err
	}
	key := operation.Key(envelope.Operation)
	if o, ok := s.operations[key]; ok && o.Intent.Kind == operation.Checkpoint {
		o.Judged = true
		s.operations[key] = o
	}
	return nil
}
