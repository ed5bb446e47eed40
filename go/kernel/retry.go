package kernel

import (
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/workorder"
)

// The delays between attempts: the first, doubled with each further one, and the longest.
const (
	retryBaseMillis = 1000
	retryMaxMillis  = 5 * 60 * 1000
)

// Retry is the reading of a clock at which an attempt ended, and a number drawn by lot.
// What follows from both is recorded, so that replay needs neither.
type Retry struct {
	At lifecycle.Observation
	// Lot is drawn uniformly from all numbers; its remainder becomes the jitter.
	Lot uint32
}

// RetryWait is the body of work_order.retry_wait.
type RetryWait struct {
	Attempt      workorder.AttemptID   `json:"attempt"`
	NotBefore    lifecycle.Observation `json:"not_before"`
	DelayMillis  int64                 `json:"delay_ms"`
	JitterMillis int64                 `json:"jitter_ms"`
}

// Begun is the reading from which the pause is measured: that of the failure.
func (w RetryWait) Begun() lifecycle.Observation {
	return lifecycle.Observation{Domain: w.NotBefore.Domain, UnixMilli: w.NotBefore.UnixMilli - w.DelayMillis}
}

// retry returns what the work order waits for after a failure, or nil if no attempt
// follows it: the failure is of no class that is retried, the attempts that the bundle
// allows are used up, or somebody asked for the work to stop.
func (d *decision) retry(f Failure, r Retry) *RetryWait {
	if !d.transient(f) || r.At == (lifecycle.Observation{}) || d.exhausted(f) {
		return nil
	}
	ordinal := d.state.Reserved.Ordinal
	delay := int64(retryBaseMillis)
	for i := int64(1); i < ordinal && delay < retryMaxMillis; i++ {
		delay = min(2*delay, retryMaxMillis)
	}
	// At most half as long again, so that many that failed together do not come back so.
	jitter := int64(r.Lot) % (delay/2 + 1)
	return &RetryWait{
		Attempt: d.state.Attempt, DelayMillis: delay + jitter, JitterMillis: jitter,
		NotBefore: lifecycle.Observation{Domain: r.At.Domain, UnixMilli: r.At.UnixMilli + delay + jitter},
	}
}

// transient reports whether a failure is of a class that is retried.
func (d *decision) transient(f Failure) bool {
	return d.state.CancelReason == "" && (f.Conclusion == workorder.Lost || f.Conclusion == workorder.Failed && f.Code.Transient())
}

// exhausted reports whether a failure would be retried, were it not that the bundle allows no more attempts.
func (d *decision) exhausted(f Failure) bool {
	return d.transient(f) && d.state.Reserved.Ordinal > d.state.Bundle.Bundle().Ceilings.Retries
}

// RetryReady ends the wait of a work order for its next attempt, by a clock whose newest
// reading is recorded and counts.
type RetryReady struct {
	Clock Clock
}

func (c RetryReady) decide(d *decision) error {
	if err := d.expiresBy(c.Clock); err != nil {
		return err
	}
	if d.state.Retry == nil || !c.Clock.Last.Reached(c.Clock.Due(*d.state.Retry)) {
		return wrongState(string(d.state.WorkOrder), "the work order does not wait for its next attempt, or not yet long enough")
	}
	g, err := report("ClockObservation", c.Clock.Last)
	if err != nil {
		return err
	}
	return d.of("work_order.retry_ready", c.Clock.Last, g)
}

// maxUnactivated bounds the attempts that are lost one after the other before anything of
// them began: whatever ends the supervisor each time would do so for ever.
const maxUnactivated = 10
