package kernel

import (
	"fmt"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

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
