package kernel

import (
	"fmt"

	"github.com/writ-runtime/writ/go/lifecycle"
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

// ExpireReservation closes an attempt whose reservation ran out before it was activated, by a clock whose
// newest reading is recorded and counts. Nothing had begun, so the work order waits as before.
type ExpireReservation struct {
	Clock Clock
}

func (c ExpireReservation) decide(d *decision) error {
	if err := d.merelyReserved(); err != nil {
		return err
	}
	if err := d.expiresBy(c.Clock); err != nil {
		return err
	}
	if end := (lifecycle.Observation{Domain: c.Clock.Domain, UnixMilli: d.state.Reserved.ExpiresUnixMilli}); !c.Clock.Last.Reached(end) {
		return notYet(string(d.state.Reservation), "the reservation", c.Clock, end)
	}
	g, err := report("ClockObservation", c.Clock.Last)
	if err != nil {
		return err
	}
	if err := d.of("reservation.expired", c.Clock.Last, g); err != nil {
		return err
	}
	f := Failure{Conclusion: workorder.Timeout, Stage: "activate", Code: reason.BundleExpired,
		Detail: "the preparation of the attempt took longer than its reservation allows",
		Remedy: "nothing: nothing had begun, and the work order waits for its next attempt as before"}
	if err := d.of("attempt.expired_no_effect", f.result(d.state.Attempt), g); err != nil {
		return err
	}
	return d.unbegun(f)
}

// unbegun has the work order wait for its next attempt as before, unless too many were lost
// one after the other before anything of them began.
func (d *decision) unbegun(f Failure) error {
	if d.state.Attempts < maxUnactivated {
		return nil
	}
	g, err := report("FailureReport", f)
	if err != nil {
		return err
	}
	return d.of("work_order.preparation_failed", f, g)
}
