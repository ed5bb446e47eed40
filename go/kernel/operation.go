package kernel

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Begin asks for an operation. What is durable afterwards is its intent; only then a
// permit for the effect exists.
type Begin struct {
	Intent operation.Intent
}

func (c Begin) decide(d *decision) error {
	in := c.Intent
	if err := in.Check(); err != nil {
		return err
	}
	if o, ok := d.state.operations[in.Key]; ok {
		return d.again(o, in)
	}
	if err := d.mayBegin(in); err != nil {
		return err
	}
	if len(d.begun) > 0 && d.begun[0].Kind.OfOutbox() {
		return notAlone(d.state.Attempt)
	}
	g, err := report("OperationIntent", in)
	if err != nil {
		return err
	}
	if err := d.emit(operationSubject(in.Key), "operation.intended", in, g); err != nil {
		return err
	}
	d.begun = append(d.begun, in)
	return d.began(in, g)
}

// again answers an operation that was asked for before: the same request gets the
// record of the first, another request under the same key is a collision (O4, O5).
func (d *decision) again(o Operation, in operation.Intent) error {
	if o.Intent.Digest != in.Digest || o.Intent.Parent != in.Parent {
		return reason.New(reason.OperationCollision,
			fmt.Sprintf("the operation was recorded with digest %s and is asked for with %s", o.Intent.Digest, in.Digest),
			string(in.Key), "use a new purpose for a new request; nothing was done")
	}
	if !o.Settled() {
		return reason.New(reason.OperationUnknownOutcome, "the operation was begun and its outcome is not known yet",
			string(in.Key), "wait for its owner, or let the next start resolve it")
	}
	d.replayed = append(d.replayed, o.Record)
	return nil
}

// mayBegin refuses an operation that the attempt has no authority for now (B13, C3).
func (d *decision) mayBegin(in operation.Intent) error {
	s := d.state
	if s.Bundle == nil {
		return reason.New(reason.KernelNotReady, "nothing may begin before the attempt is activated", string(in.Key),
			"activate the attempt first")
	}
	fence := s.Fence()
	if fence.Phase == workorder.Closing && !in.Kind.Closing() {
		return reason.New(reason.KernelPhaseForbids, fmt.Sprintf("%s cannot begin while the attempt closes", in.Kind), string(in.Key),
			"an attempt that closes only stops, keeps and removes")
	}
	ordered, err := d.kernel.ordered(s, in)
	if err != nil {
		return err
	}
	if ordered.Digest != in.Digest || ordered.Parent != in.Parent || ordered.Class != in.Class || ordered.Resource != in.Resource {
		return reason.New(reason.CapabilityNotGranted, fmt.Sprintf("the attempt bundle does not order this %s", in.Kind), string(in.Key),
			"name what is to run in the work order; an adapter cannot add to it")
	}
	switch in.Kind {
	case operation.Provision, operation.Materialize, operation.Prepare:
		if !d.in(EnvironmentMachine, "requested") {
			return wrongState(string(in.Key), fmt.Sprintf("%s begins with the environment's request and not later", in.Kind))
		}
	case operation.Checkpoint:
		return d.mayCheckpoint(in)
	case operation.Reset:
		return d.mayReset(in)
	case operation.Launch:
		if parent, ok := s.operations[in.Parent]; !ok || parent.State != "intended" {
			return wrongState(string(in.Key), "a launch begins with the start that it belongs to")
		}
	}
	return nil
}

// began makes the transitions that the beginning of an operation stands for.
func (d *decision) began(in operation.Intent, intent lifecycle.Guard) error {
	switch in.Kind {
	case operation.Start:
		if err := d.of("environment.activated", nil, d.known("PrepareReceipt")); err != nil {
			return err
		}
		return d.of("execution.starting", nil, d.known("EnvironmentAttestation"), d.known("MaterializationReceipt"))
	case operation.Freeze:
		return d.of("environment.freezing", nil, d.known("CompletionReport"))
	case operation.Collect:
		return d.of("execution.collecting", nil, d.known("CompletionReport"))
	case operation.Cancel:
		if d.in(ExecutionMachine, "cancellation_requested") {
			return d.of("execution.cancelling", nil, intent)
		}
	case operation.Destroy:
		switch {
		case d.wasReset():
			return d.of("environment.given_up", nil, intent, d.known("ResetReceipt"))
		case d.in(EnvironmentMachine, provisional...):
			return d.of("environment.withdrawn", nil, d.known("CancelReceipt"))
		case !d.in(EnvironmentMachine, "destroying"):
			return d.of("environment.destroying", nil, intent)
		}
	}
	return nil
}

// Settle records what became known of an operation. It never refuses a fact: an
// answer that comes too late, or to an attempt that has moved on, is kept without a
// transition.
type Settle struct {
	Key     operation.Key
	Outcome operation.Outcome
	// Receipt is the host's receipt in canonical JSON.
	Receipt canonical.Raw
	// Generation is the fence under which the answer was given.
	Generation uint64
	// ElapsedMicros is how long the effect took, in microseconds, as measured by the
	// ledger; it is no part of the receipt.
	ElapsedMicros int64
}

// Answer is the body of every operation event after the intent.
type Answer struct {
	Outcome    operation.Outcome `json:"outcome"`
	Receipt    canonical.Raw     `json:"receipt"`
	Generation uint64            `json:"fence_generation"`
	Elapsed    int64             `json:"elapsed_us"`
}

func (c Settle) decide(d *decision) error {
	o, ok := d.state.operations[c.Key]
	if !ok {
		return wrongState(string(c.Key), "an outcome is reported for an operation that was never begun")
	}
	if o.Settled() && string(o.Record.Receipt) == string(c.Receipt) {
		return nil // The same answer once more: nothing new became known.
	}
	if !c.Outcome.Knowledge.Valid() {
		return wrongState(string(c.Key), fmt.Sprintf("%q is no state of knowledge", c.Outcome.Knowledge))
	}
	answer := Answer{Outcome: c.Outcome, Receipt: c.Receipt, Generation: c.Generation, Elapsed: c.ElapsedMicros}
	receipt := guard("OperationReceipt", canonical.Sum(c.Receipt))
	if err := d.emit(operationSubject(c.Key), settlingFamily(o, c), answer, receipt); err != nil {
		return err
	}
	if err := d.charge(o, c); err != nil {
		return err
	}
	if late := o.Settled() || c.Generation != d.state.Generation; late {
		return nil
	}
	return d.settled(o.Intent, c)
}

// settlingFamily is the event that an answer makes of an operation where it stands.
func settlingFamily(o Operation, c Settle) lifecycle.Family {
	switch {
	case o.Settled():
		return lifecycle.Family("operation.late_" + string(o.State))
	case Personal(o), o.State == "unknown" && c.Outcome.Knowledge == operation.Unknown:
		return "operation.late_unknown"
	case o.State == "unknown":
		return lifecycle.Family("operation.resolved_" + string(c.Outcome.Knowledge))
	}
	return lifecycle.Family("operation." + string(c.Outcome.Knowledge))
}

// Personal reports whether only a person can settle an operation any more: its outcome is
// unknown and nobody can be asked. A later answer is kept for them and moves nothing.
func Personal(o Operation) bool {
	return o.State == "unknown" && o.Intent.Class == operation.NonReconcilable
}

// settled makes the transitions that a known outcome stands for, where the machines
// wait for it. An outcome in any other state is a fact without a transition.
func (d *decision) settled(in operation.Intent, c Settle) error {
	if in.Kind.OfOutbox() {
		return d.left(in, c)
	}
	receipt := guard(protocol.ReceiptName(in.Kind, c.Outcome), canonical.Sum(c.Receipt))
	applied := c.Outcome.Knowledge == operation.Applied
	if in.Kind == operation.Destroy && in.Key.Purpose() == protocol.RetentionPurpose {
		return d.forgotten(applied, receipt)
	}
	if in.Kind == operation.Destroy && d.in(EnvironmentMachine, "destroying") {
		if kept := protocol.Kept(c.Outcome); kept != nil {
			return d.of("environment.retained", *kept, receipt)
		}
		if applied {
			return d.of("environment.destroyed", nil, receipt)
		}
		f := Failure{Conclusion: workorder.Failed, Stage: string(in.Kind), Code: c.Outcome.Code, Detail: c.Outcome.Detail}
		g, err := report("FailureReport", f)
		if err != nil {
			return err
		}
		return d.of("environment.destroy_failed", f, g)
	}
	if in.Kind == operation.Reset && d.in(EnvironmentMachine, "frozen") {
		return d.reset(c, receipt)
	}
	if !applied {
		return nil
	}
	switch {
	case in.Kind == operation.Provision && d.in(EnvironmentMachine, "requested"):
		return d.of("environment.provisioned", nil, receipt)
	case in.Kind == operation.Materialize && d.in(EnvironmentMachine, "attested"):
		return d.of("environment.materialized", nil, receipt)
	case in.Kind == operation.Prepare && d.in(ExecutionMachine, "") && d.in(AttemptMachine, "leased"):
		return d.of("execution.prepared", nil, receipt)
	case in.Kind == operation.Start && d.in(ExecutionMachine, "starting") && d.in(AttemptMachine, "leased"):
		if err := d.of("execution.running", nil, receipt); err != nil {
			return err
		}
		return d.of("attempt.running", nil, receipt)
	case in.Kind == operation.Freeze && d.in(EnvironmentMachine, "freezing"):
		return d.of("environment.frozen", nil, receipt)
	case in.Kind == operation.Collect && d.in(ExecutionMachine, "collecting"):
		return d.of("execution.completed", nil, receipt)
	case in.Kind == operation.Cancel && d.in(AttemptMachine, "cancellation_requested"):
		return d.cancelled(receipt)
	}
	return nil
}

// cancelled closes execution, attempt and work order once a cancellation is proven.
func (d *decision) cancelled(receipt lifecycle.Guard) error {
	if d.in(ExecutionMachine, "cancelling") {
		if err := d.of("execution.cancelled", nil, receipt); err != nil {
			return err
		}
	}
	r := workorder.Result{
		Kind: workorder.ResultKind, Attempt: d.state.Attempt, Conclusion: workorder.Cancelled,
		Code: reason.AttemptCancelled, Detail: "cancelled: " + d.state.CancelReason,
	}
	g, err := report("AttemptResult", r)
	if err != nil {
		return err
	}
	if err := d.of("attempt.closed_no_effect", r, receipt); err != nil {
		return err
	}
	return d.of("work_order.cancelled", nil, g)
}

func operationSubject(key operation.Key) lifecycle.Subject {
	return lifecycle.Of(OperationMachine, string(key))
}
