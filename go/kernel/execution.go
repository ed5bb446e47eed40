package kernel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// executing are the states of an execution that can still fail, be cancelled or be
// lost.
//
//writ:immutable a list of registered states
var executing = []lifecycle.State{"prepared", "starting", "running", "checkpoint_proposed", "completion_reported", "collecting"}

// Complete records that polling found nothing of the workload running any more, and
// how each launched process ended.
type Complete struct {
	Report protocol.CompletionReport
}

func (c Complete) decide(d *decision) error {
	// What was launched is what the journal says, not what the report lists (F3).
	var launched []operation.Key
	for _, o := range d.state.Operations() {
		if o.Intent.Kind != operation.Launch {
			continue
		}
		if !o.Settled() {
			return wrongState(string(o.Intent.Key), "the workload is reported complete while a launched process is unaccounted for")
		}
		launched = append(launched, o.Intent.Key)
	}
	if !slices.Equal(launched, slices.Sorted(slices.Values(c.Report.Launches))) {
		return wrongState(string(d.state.Attempt), "the completion report does not list exactly what was launched")
	}
	g, err := report("CompletionReport", c.Report)
	if err != nil {
		return err
	}
	return d.of("execution.completion_reported", c.Report, g)
}

// Fail records that the attempt did not succeed, from wherever it stands. A loss or
// an unknown opens reconciliation instead: what is not known is not called failed.
type Fail struct {
	Failure
	// Retry is when and how another attempt may follow, if the failure is of a class
	// that is retried. Its zero value follows with none.
	Retry Retry
}

// Failure is the body of the …failed, …lost and …unknown events.
type Failure struct {
	Conclusion workorder.Conclusion `json:"conclusion"`
	// Stage is the operation kind at which it went wrong.
	Stage  string      `json:"stage,omitempty"`
	Code   reason.Code `json:"code"`
	Detail string      `json:"detail"`
	Remedy string      `json:"remedy,omitempty"`
}

// result is what an attempt that failed so came to.
func (f Failure) result(id workorder.AttemptID) workorder.Result {
	return workorder.Result{
		Kind: workorder.ResultKind, Attempt: id, Conclusion: f.Conclusion,
		Code: f.Code, Detail: f.Detail, Remedy: f.Remedy, Stage: f.Stage,
	}
}

func (c Fail) decide(d *decision) error {
	if c.Conclusion == workorder.Lost || c.Conclusion == workorder.Unknown {
		return d.lose(c.Failure)
	}
	g, err := report("FailureReport", c.Failure)
	if err != nil {
		return err
	}
	if d.in(ExecutionMachine, executing...) {
		if err := d.of("execution.failed", c.Failure, g); err != nil {
			return err
		}
	}
	if d.in(EnvironmentMachine, provisional...) {
		if err := d.of("environment.failed", c.Failure, g); err != nil {
			return err
		}
	}
	return d.conclude("attempt.failed", "work_order.failed", c.Failure, c.Retry)
}

// lose marks execution and environment as lost or unknown, each from where it stands.
func (d *decision) lose(f Failure) error {
	g, err := report("FailureReport", f)
	if err != nil {
		return err
	}
	family := lifecycle.Family("")
	switch {
	case d.in(ExecutionMachine, "prepared", "cancellation_requested"):
		family = "execution.lost_closing"
	case d.in(ExecutionMachine, "cancelling"):
		family = "execution.cancel_lost"
	case d.in(ExecutionMachine, executing...) && f.Conclusion == workorder.Unknown:
		family = "execution.unknown"
	case d.in(ExecutionMachine, executing...):
		family = "execution.lost"
	}
	if family != "" {
		if err := d.of(family, f, g); err != nil {
			return err
		}
	}
	if d.in(EnvironmentMachine, provisional...) {
		return d.of("environment.unknown", f, g)
	}
	return nil
}

// conclude reports the attempt's result and closes the attempt with it. The work order is
// closed too, unless it may be attempted again.
func (d *decision) conclude(attempt, order lifecycle.Family, f Failure, again Retry) error {
	wait := d.retry(f, again)
	if wait != nil && attempt == "attempt.failed" {
		attempt = "attempt.retryable_failed"
	}
	if wait == nil && d.exhausted(f) {
		f.Remedy = fmt.Sprintf("no attempt is left: it was attempt %d, and the work order allows %d retries; submit it again if it may run again",
			d.state.Reserved.Ordinal, d.state.Bundle.Bundle().Ceilings.Retries)
	}
	r := f.result(d.state.Attempt)
	g, err := report("AttemptResult", r)
	if err != nil {
		return err
	}
	if !d.in(AttemptMachine, "reconciling") {
		if err := d.of("attempt.result_reported", r, g); err != nil {
			return err
		}
		if err := d.of(attempt, nil, g); err != nil {
			return err
		}
	} else if err := d.of(attempt, r, g); err != nil {
		return err
	}
	if wait != nil {
		return d.of("work_order.retry_wait", *wait, g)
	}
	return d.of(order, struct {
		Attempt workorder.AttemptID `json:"attempt"`
	}{d.state.Attempt}, g)
}

// Reconciled closes what was lost with what the provider found under the
// environment's name. Nothing is assumed: a resource that is not gone stays unknown
// and waits for a person.
type Reconciled struct {
	Found protocol.EnvironmentReconciliation
	// Retry is when and how another attempt may follow a loss.
	Retry Retry
}

func (c Reconciled) decide(d *decision) error {
	cancelled := d.state.CancelReason != ""
	f := Failure{Conclusion: workorder.Lost, Code: reason.AttemptLost, Detail: "the attempt was lost",
		Remedy: "nothing had left the environment: another attempt at the work order is safe"}
	if d.state.FencedBy != "" {
		f.Detail = d.state.FencedBy
	}
	if first := d.state.Failure; first != nil {
		// Why it was lost is what a person asks first.
		f.Stage, f.Code, f.Detail = first.Stage, first.Code, first.Detail
	}
	f.Detail += "; nothing of it is left"
	attempt, order, execution, environment := lifecycle.Family("attempt.reconciled_retryable"), lifecycle.Family("work_order.failed"),
		lifecycle.Family("execution.reconciled_failed"), lifecycle.Family("environment.reconciled_failed")
	switch {
	case !c.Found.Gone || d.state.ambiguous():
		f = Failure{Conclusion: workorder.Unknown, Code: reason.AttemptUnknown,
			Detail: strings.TrimSuffix("something of the attempt may still be alive: it could be neither found nor ended: "+c.Found.Why, ": "),
			Remedy: "end what bears the name " + c.Found.Resource + ", then decide what became of it: docs/recovery.md"}
		if c.Found.Gone {
			f.Detail = "an effect of the attempt may have taken place, and nobody can ask about it"
			f.Remedy = "find out whether it did, and say so: docs/recovery.md"
		}
		attempt, order = "attempt.unknown_terminal", "work_order.unknown_terminal"
		execution = "execution.unknown_terminal"
		if !c.Found.Gone || d.state.hardestOpen(operation.Kind.OfEnvironment) == operation.NonReconcilable {
			environment = "environment.unknown_terminal"
		}
	case cancelled:
		f = Failure{Conclusion: workorder.Cancelled, Code: reason.AttemptCancelled, Detail: "cancelled: " + d.state.CancelReason}
		attempt, order, execution = "attempt.reconciled_cancelled", "work_order.cancelled", "execution.reconciled_cancelled"
	}
	if d.in(AttemptMachine, "cancellation_requested") {
		if err := d.unproven(); err != nil {
			return err
		}
	}
	if d.in(ExecutionMachine, "lost", "unknown") {
		g, err := report("ReconciliationResult", c.Found)
		if err != nil {
			return err
		}
		if err := d.of("execution.reconciling", nil); err != nil {
			return err
		}
		if err := d.of(execution, c.Found, g); err != nil {
			return err
		}
	}
	if d.in(EnvironmentMachine, "unknown") {
		g, err := report("EnvironmentReconciliation", c.Found)
		if err != nil {
			return err
		}
		if err := d.of("environment.reconciling", nil); err != nil {
			return err
		}
		if err := d.of(environment, c.Found, g); err != nil {
			return err
		}
	}
	if d.in(AttemptMachine, "leased", "running") {
		// The supervisor lives: the loss was the environment's. The attempt passes
		// through reconciliation like one whose supervisor died.
		fenced := Fenced{Generation: d.state.Generation + 1, Why: "the environment was lost"}
		g, err := report("FenceObservation", fenced)
		if err != nil {
			return err
		}
		if err := d.of("attempt.fenced", fenced, g); err != nil {
			return err
		}
		if err := d.of("work_order.reconciling", nil, g); err != nil {
			return err
		}
	}
	if !d.in(AttemptMachine, "reconciling") {
		return nil
	}
	return d.conclude(attempt, order, f, c.Retry)
}

// unproven opens the reconciliation of a cancellation that was tried and not proven.
func (d *decision) unproven() error {
	f := Failure{Conclusion: workorder.Unknown, Stage: "cancel", Code: reason.AttemptUnknown,
		Detail: "the cancellation could not be proven"}
	g, err := report("FailureReport", f)
	if err != nil {
		return err
	}
	if err := d.of("attempt.reconciling", f, g); err != nil {
		return err
	}
	if err := d.of("work_order.cancellation_unproven", f, g); err != nil {
		return err
	}
	if d.in(ExecutionMachine, "cancelling") {
		if err := d.of("execution.cancel_unknown", f, g); err != nil {
			return err
		}
		if d.in(EnvironmentMachine, provisional...) {
			return d.of("environment.unknown", f, g)
		}
		return nil
	}
	return d.lose(f)
}
