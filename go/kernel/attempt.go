package kernel

import (
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// RequestCancel records that somebody wants the attempt to stop. It is a request:
// what comes of it is another event.
type RequestCancel struct {
	CancelRequested
}

// CancelRequested is the body of the …cancellation_requested events.
type CancelRequested struct {
	Reason string `json:"reason"`
}

func (c RequestCancel) decide(d *decision) error {
	if d.in(ExecutionMachine, "completed") {
		return wrongState(string(d.state.Attempt), "the execution is completed: there is nothing left to cancel")
	}
	g, err := report("CancellationRequest", c.CancelRequested)
	if err != nil {
		return err
	}
	if err := d.of("attempt.cancellation_requested", c.CancelRequested, g); err != nil {
		return err
	}
	if err := d.of("work_order.cancellation_requested", c.CancelRequested, g); err != nil {
		return err
	}
	if d.in(ExecutionMachine, executing...) {
		return d.of("execution.cancellation_requested", c.CancelRequested, g)
	}
	return nil
}

// Accept reduces a completed attempt: its result, which is that of the recorded
// collection, is reported, accepted and applied to the work order.
type Accept struct {
	// Proposals are what is to leave: all that the attempt bundle orders, in its order.
	Proposals []Proposal
}

// The namespaces in which a result counts. Observe and shadow reach nothing that others
// rely on.
const (
	authoritativeNamespace = "authoritative"
	observeNamespace       = "observe"
	shadowNamespace        = "shadow"
)

// namespace is where a result of the attempt counts, by its mode.
func (s State) namespace() string {
	switch s.Bundle.Bundle().Mode {
	case capability.Observe:
		return observeNamespace
	case capability.Shadow:
		return shadowNamespace
	}
	return authoritativeNamespace
}

// Collected is the result of an attempt whose outputs are collected, as a reducer will
// accept it.
func (s State) Collected() (workorder.Result, error) {
	var collected protocol.CollectResult
	for _, o := range s.Operations() {
		if o.Intent.Kind == operation.Collect && o.State == "applied" {
			if err := canonical.Decode(o.Record.Outcome.Result, &collected); err != nil {
				return workorder.Result{}, err
			}
		}
	}
	return workorder.Result{
		Kind: workorder.ResultKind, Attempt: s.Attempt, Conclusion: workorder.Succeeded,
		Manifest: collected.Manifest, Structured: collected.Structured,
	}, nil
}

// Reduces is what the reducer of the attempt makes of a result.
func (s State) Reduces(result canonical.Digest) Reduction {
	return Reduction{Attempt: s.Attempt, Result: result, Namespace: s.namespace()}
}

// Reduction is the body of work_order.applied.
type Reduction struct {
	Attempt workorder.AttemptID `json:"attempt"`
	Result  canonical.Digest    `json:"result"`
	// Namespace is where the result counts: "authoritative", or "shadow" for a mode
	// that must not reach what others rely on.
	Namespace string `json:"namespace"`
}

func (c Accept) decide(d *decision) error {
	if !d.in(ExecutionMachine, "completed") || !d.in(EnvironmentMachine, "frozen") {
		return wrongState(string(d.state.Attempt), "only a completed execution with frozen outputs can be accepted")
	}
	r, err := d.state.Collected()
	if err != nil {
		return err
	}
	g, err := report("AttemptResult", r)
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return d.of("attempt.result_reported", r, g) },
		func() error { return d.of("work_order.result_pending", nil, g) },
		func() error { return d.of("attempt.accepted", nil, g) },
		func() error { return d.reduceResult(g.Digest) },
		func() error { return d.propose(c.Proposals) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// reduceResult applies a result to the work order, in the namespace of the attempt's mode.
func (d *decision) reduceResult(result canonical.Digest) error {
	reduction := d.state.Reduces(result)
	applied, err := report("ReductionReceipt", reduction)
	if err != nil {
		return err
	}
	return d.of("work_order.applied", reduction, applied)
}

// Fence raises the fence of an attempt whose supervisor is gone, so that no answer to
// it can move anything any more, and opens its reconciliation.
type Fence struct {
	// Why says how the loss was noticed, Code how the attempt is called then; attempt.lost if it
	// is empty.
	Why  string
	Code reason.Code
}

// Fenced is the body of attempt.fenced.
type Fenced struct {
	Generation uint64 `json:"fence_generation"`
	Why        string `json:"why"`
}

func (c Fence) decide(d *decision) error {
	f := Fenced{Generation: d.state.Generation + 1, Why: c.Why}
	g, err := report("FenceObservation", f)
	if err != nil {
		return err
	}
	if err := d.of("attempt.fenced", f, g); err != nil {
		return err
	}
	if !d.in(WorkOrderMachine, "reconciling") {
		if err := d.of("work_order.reconciling", nil, g); err != nil {
			return err
		}
	}
	code := c.Code
	if code == "" {
		code = reason.AttemptLost
	}
	return d.lose(Failure{Conclusion: workorder.Lost, Code: code, Detail: c.Why})
}
