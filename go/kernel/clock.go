package kernel

import (
	"fmt"
	"time"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
)

// ClockMachine is the machine of clocks.
const ClockMachine = "clock"

// How far a clock may go and still count, in milliseconds. A small step back is what a
// clock does that is kept right; one far ahead would expire everything at once.
const (
	maxStepBack = int64(2 * time.Second / time.Millisecond)
	maxJump     = int64(90 * 24 * time.Hour / time.Millisecond)
)

// Clock is one clock as it stands in the journal: what expires, expires by it.
type Clock struct {
	// Domain is its name. At is where it stands, Last the newest reading that counts.
	Domain string
	At     Standing
	Last   lifecycle.Observation
}

// Steady reports whether the clock's newest reading may be counted with.
func (c Clock) Steady() bool { return c.At.State == "steady" }

// Subject is the subject of the clock.
func (c Clock) Subject() lifecycle.Subject { return lifecycle.Of(ClockMachine, c.Domain) }

// ReduceClock applies one recorded event of a clock.
func (k Kernel) ReduceClock(c Clock, e lifecycle.Event) (Clock, error) {
	t, err := k.transitions.Apply(c.At.State, e, nil)
	if err != nil {
		return Clock{}, err
	}
	c.At = Standing{State: t.To, Version: e.Version, Machine: e.Machine}
	switch e.Family {
	case "clock.observed", "clock.advanced":
		err = canonical.Decode(e.Body, &c.Last)
	case "clock.reconciled":
		var r ClockReconciliation
		err = canonical.Decode(e.Body, &r)
		c.Last = r.From
	}
	return c, err
}

// ObserveClock records a reading, and whether it counts. A reading that says nothing new
// is not recorded.
type ObserveClock struct {
	Clock Clock
	Now   lifecycle.Observation
}

// ClockBlock is the body of clock.stepped_back and clock.jumped.
type ClockBlock struct {
	Now  lifecycle.Observation `json:"now"`
	Last lifecycle.Observation `json:"last"`
	Code reason.Code           `json:"code"`
}

func (c ObserveClock) decide(d *decision) error {
	if c.Now.Domain != c.Clock.Domain {
		return wrongState(c.Clock.Domain, fmt.Sprintf("the reading is of another clock, %q", c.Now.Domain))
	}
	d.stand(c.Clock.Subject(), c.Clock.At)
	g, err := report("ClockObservation", c.Now)
	if err != nil {
		return err
	}
	gone := c.Now.UnixMilli - c.Clock.Last.UnixMilli
	switch {
	case c.Clock.At.Version == 0:
		return d.emit(c.Clock.Subject(), "clock.observed", c.Now, g)
	case c.Clock.At.State == "blocked":
		return nil // It was recorded why, and a person looks at it.
	case gone < -maxStepBack:
		return d.emit(c.Clock.Subject(), "clock.stepped_back", ClockBlock{c.Now, c.Clock.Last, reason.ClockSteppedBack}, g)
	case gone > maxJump:
		return d.emit(c.Clock.Subject(), "clock.jumped", ClockBlock{c.Now, c.Clock.Last, reason.ClockJumped}, g)
	case gone <= 0:
		return nil
	}
	return d.emit(c.Clock.Subject(), "clock.advanced", c.Now, g)
}

// ReconcileClock has an authenticated person say from which reading on a blocked clock
// counts again.
type ReconcileClock struct {
	Clock Clock
	ClockReconciliation
	// Ingress is the digest of the ingress receipt of the command.
	Ingress canonical.Digest
}

// ClockReconciliation is the body of clock.reconciled.
type ClockReconciliation struct {
	From            lifecycle.Observation `json:"from"`
	ExpectedVersion uint64                `json:"expected_version"`
	Principal       string                `json:"principal"`
	Reason          string                `json:"reason"`
}

func (c ReconcileClock) decide(d *decision) error {
	if c.Clock.At.State != "blocked" {
		return wrongState(c.Clock.Domain, "the clock is not blocked")
	}
	if c.ExpectedVersion != c.Clock.At.Version {
		return reason.New(reason.IngressStale,
			fmt.Sprintf("the clock is at event %d, and the command was decided at event %d", c.Clock.At.Version, c.ExpectedVersion),
			c.Clock.Domain, "look again with `writ status`, and decide on what is there now")
	}
	g, err := report("ClockReconciliation", c.ClockReconciliation)
	if err != nil {
		return err
	}
	d.stand(c.Clock.Subject(), c.Clock.At)
	return d.emit(c.Clock.Subject(), "clock.reconciled", c.ClockReconciliation, g, guard("IngressReceipt", c.Ingress))
}
