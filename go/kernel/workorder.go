package kernel

import (
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Submit records a work order that came through ingress.
type Submit struct {
	ID        workorder.ID
	Submitted Submitted
	// Ingress is the digest of the ingress receipt of the delivery.
	Ingress canonical.Digest
}

func (c Submit) decide(d *decision) error {
	if d.state.WorkOrder != "" {
		return wrongState(string(c.ID), "a work order is submitted once")
	}
	d.state.WorkOrder = c.ID
	return d.of("work_order.submitted", c.Submitted, guard("IngressReceipt", c.Ingress))
}

// Block records that policy does not allow the order, releases the reservation and
// closes the attempt before anything could begin (C3).
type Block struct {
	Decision canonical.Digest
	Blocked  Blocked
}

// Blocked is the body of work_order.blocked_policy.
type Blocked struct {
	Decision canonical.Digest `json:"decision"`
	Code     reason.Code      `json:"code"`
	// Why is one sentence; the decision record holds the whole explanation.
	Why string `json:"why"`
}

func (c Block) decide(d *decision) error {
	if err := d.merelyReserved(); err != nil {
		return err
	}
	g := guard("PolicyDecision", c.Decision)
	if err := d.of("work_order.blocked_policy", c.Blocked, g); err != nil {
		return err
	}
	if err := d.of("reservation.denied", c.Blocked, g); err != nil {
		return err
	}
	return d.of("attempt.denied", workorder.Result{
		Kind: workorder.ResultKind, Attempt: d.state.Attempt,
		Conclusion: workorder.Failed, Code: c.Blocked.Code, Detail: c.Blocked.Why, Stage: "policy",
	}, g)
}

// Abandon closes an attempt that was reserved and never activated: its supervisor
// ended first, or the bundle could not be compiled. Nothing had begun.
type Abandon struct {
	Failure
}

func (c Abandon) decide(d *decision) error {
	if err := d.merelyReserved(); err != nil {
		return err
	}
	g, err := report("FailureReport", c.Failure)
	if err != nil {
		return err
	}
	if err := d.of("reservation.abandoned", c.Failure, g); err != nil {
		return err
	}
	if err := d.of("attempt.abandoned", c.Failure.result(d.state.Attempt), g); err != nil {
		return err
	}
	if c.Conclusion == workorder.Lost {
		return d.unbegun(c.Failure) // Nothing had begun.
	}
	return d.of("work_order.preparation_failed", c.Failure, g)
}

// CancelOrder withdraws a work order that nothing has started yet, with the attempt that
// was reserved for it, if there is one.
type CancelOrder struct {
	CancelRequested
}

func (c CancelOrder) decide(d *decision) error {
	g, err := report("CancellationRequest", c.CancelRequested)
	if err != nil {
		return err
	}
	if d.state.Attempt != "" && d.in(AttemptMachine, "reserved") {
		if err := d.of("reservation.released", c.CancelRequested, g); err != nil {
			return err
		}
		r := workorder.Result{
			Kind: workorder.ResultKind, Attempt: d.state.Attempt, Conclusion: workorder.Cancelled, Code: reason.AttemptCancelled,
			Detail: c.Reason, Stage: "activate",
		}
		if err := d.of("attempt.cancelled_no_effect", r, g); err != nil {
			return err
		}
	}
	return d.of("work_order.cancelled_before_start", c.CancelRequested, g)
}

// Resume records that a person lets a work order be attempted although turns were left out
// when the journal was recovered: what became of it may stand in them.
type Resume struct {
	Resumed
	// Ingress is the digest of the ingress receipt of the command.
	Ingress canonical.Digest
}

// Resumed is the body of work_order.resumed.
type Resumed struct {
	Principal string `json:"principal"`
	Reason    string `json:"reason"`
}

func (c Resume) decide(d *decision) error {
	return d.of("work_order.resumed", c.Resumed, guard("IngressReceipt", c.Ingress))
}

// Unpreparable closes a work order that no further attempt can be prepared for: what it
// names is not there any more, or is not what it was.
type Unpreparable struct {
	Failure
}

func (c Unpreparable) decide(d *decision) error {
	g, err := report("FailureReport", c.Failure)
	if err != nil {
		return err
	}
	return d.of("work_order.preparation_failed", c.Failure, g)
}

// merelyReserved refuses what is only possible before an activation.
func (d *decision) merelyReserved() error {
	if !d.in(AttemptMachine, "reserved") {
		return wrongState(string(d.state.Attempt), "the attempt is not merely reserved")
	}
	return nil
}

// wrongState refuses a command that came at the wrong time.
func wrongState(where, what string) error {
	return reason.New(reason.KernelWrongState, what, where, "see where it stands with `writ show`")
}
