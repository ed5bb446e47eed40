package kernel

import (
	"fmt"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Reserve allocates an attempt. It grants nothing.
type Reserve struct {
	Reservation workorder.Reservation
}

func (c Reserve) decide(d *decision) error {
	r := c.Reservation
	if d.state.Attempt != "" {
		return wrongState(string(d.state.Attempt), "the attempt is reserved already")
	}
	if r.Ordinal != d.state.Attempts+1 {
		return wrongState(string(r.ID), fmt.Sprintf("%d attempts were reserved for the work order, and this one counts itself as number %d", d.state.Attempts, r.Ordinal))
	}
	if r.WorkOrder != d.state.WorkOrder || r.Order != d.state.Order.Digest {
		return reason.New(reason.BundleDigestMismatch, "the reservation is for another work order", string(r.ID),
			"reserve for the work order that was submitted")
	}
	if r.Fence.Attempt != r.Attempt || r.Fence.Generation == 0 {
		return wrongState(string(r.ID), "the reservation's fence is not one of its attempt")
	}
	g, err := report("AttemptReservation", r)
	if err != nil {
		return err
	}
	d.state.Reservation, d.state.Attempt = r.ID, r.Attempt
	if err := d.of("work_order.reserved", OrderReserved{r.Attempt, r.Ordinal}, g); err != nil {
		return err
	}
	if err := d.of("reservation.created", r, g); err != nil {
		return err
	}
	if err := d.of("attempt.reserved", Born{r.ID, r.WorkOrder}, g); err != nil {
		return err
	}
	return d.reserveBudget(r, g)
}

// OrderReserved is the body of work_order.reserved.
type OrderReserved struct {
	Attempt workorder.AttemptID `json:"attempt"`
	Ordinal int64               `json:"ordinal"`
}

// Born is the body of attempt.reserved: where the rest of the attempt stands.
type Born struct {
	Reservation workorder.ReservationID `json:"reservation"`
	WorkOrder   workorder.ID            `json:"work_order"`
}

// Activate binds the bundle into the attempt's descriptor and starts the lease, in
// the one transaction that the returned events are appended in (B11, B12). The work
// order is ready by the policy decision that the bundle names.
type Activate struct {
	Bundle *attemptbundle.Compiled
	// Now is the clock observation of the batch: the lease begins with it.
	Now lifecycle.Observation
	// Clock is how many events the clock has.
	Clock uint64
}

// Activated is the body of attempt.leased.
type Activated struct {
	Descriptor workorder.Descriptor `json:"descriptor"`
	Lease      Lease                `json:"lease"`
	// Bundle is the attempt bundle itself, so that the journal alone can rebuild it.
	Bundle canonical.Raw `json:"bundle"`
}

func (c Activate) decide(d *decision) error {
	b := c.Bundle.Bundle()
	if err := d.checkActivation(b, c.Now.UnixMilli); err != nil {
		return err
	}
	reservation, err := canonical.DigestOf(d.state.Reserved)
	if err != nil {
		return err
	}
	descriptor := workorder.Descriptor{
		Kind: workorder.DescriptorKind, Attempt: d.state.Attempt, WorkOrder: d.state.WorkOrder,
		Reservation: reservation, Bundle: c.Bundle.Digest(), Fence: d.state.Reserved.Fence,
	}
	// Reducing the lease would parse these very bytes again.
	d.state.Bundle = c.Bundle
	receipt, err := report("ActivationReceipt", descriptor)
	if err != nil {
		return err
	}
	if !d.in(WorkOrderMachine, "ready") {
		if err := d.of("work_order.ready", b.Policy, guard("PolicyDecision", b.Policy.Decision)); err != nil {
			return err
		}
	}
	if err := d.of("work_order.activated", descriptor, receipt); err != nil {
		return err
	}
	if err := d.of("reservation.consumed", descriptor, receipt); err != nil {
		return err
	}
	if err := d.of("attempt.leased", Activated{descriptor, newLease(c.Now, c.Clock, b.LeaseMillis), canonical.Raw(c.Bundle.Bytes())}, receipt); err != nil {
		return err
	}
	return d.of("environment.requested", Requested{
		Manifest: d.state.Reserved.Digests.Environment, Resource: d.state.Fence().ResourceName(),
	}, receipt)
}

// checkActivation holds the bundle against the reservation, part by part.
func (d *decision) checkActivation(b *attemptbundle.Bundle, now int64) error {
	r := d.state.Reserved
	if !d.in(ReservationMachine, "reserved") || !d.in(AttemptMachine, "reserved") {
		return wrongState(string(d.state.Attempt), "the reservation is not open any more; another activation, an expiry or a withdrawal came first")
	}
	if now >= r.ExpiresUnixMilli {
		return reason.New(reason.BundleExpired, "the preparation of the attempt took longer than its reservation allows",
			string(r.ID), "let the next tick make another attempt: nothing had begun")
	}
	want, err := canonical.DigestOf(r)
	if err != nil {
		return err
	}
	mismatch := func(what string) error {
		return reason.New(reason.BundleDigestMismatch, "the attempt bundle was compiled for another "+what, string(b.Attempt.ID),
			"compile the bundle for this reservation")
	}
	stream := d.state.Of(WorkOrderMachine)
	switch {
	case b.Reservation.ID != r.ID || b.Reservation.Digest != want || b.Reservation.ExpiresUnixMilli != r.ExpiresUnixMilli:
		return mismatch("reservation")
	case b.WorkOrder.ID != r.WorkOrder || b.WorkOrder.Digest != r.Order:
		return mismatch("work order")
	case b.Attempt.ID != r.Attempt || b.Attempt.Ordinal != r.Ordinal:
		return mismatch("attempt")
	case b.Fence != r.Fence:
		return mismatch("fence")
	case b.Cause.Subject != d.state.subject(WorkOrderMachine) || b.Cause.ExpectedVersion != stream.Version:
		return reason.New(reason.KernelStaleFence,
			fmt.Sprintf("the attempt bundle expects %s at event %d, it is at event %d", b.Cause.Subject, b.Cause.ExpectedVersion, stream.Version),
			string(b.Attempt.ID), "compile the bundle again: something happened to the work order meanwhile")
	case b.Transitions != d.kernel.transitions.Digest():
		return mismatch("transition registry")
	case b.Operations.EffectClasses != d.kernel.classes.Digest():
		return mismatch("effect-class registry")
	}
	if err := d.startsRight(b); err != nil {
		return err
	}
	got, err := b.Digests()
	if err != nil {
		return err
	}
	return r.Digests.Compare(got)
}

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
