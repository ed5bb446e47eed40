package kernel

import (
	"fmt"
	"time"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// ClockMachine is the machine of clocks.
const ClockMachine = "clock"

// How far a clock may go and still count, in milliseconds. A small step back is what a
// clock does that is kept right; one far ahead would expire everything at once.
const (
	maxStepBack = int64(2 * time.Second / time.Millisecond)
	maxJump     = int64(90 * 24 * time.Hour / time.Millisecond)
	// stale is how long after its newest reading a clock is read again for what takes longer
	// than it may jump.
	stale = maxJump / 3
)

// Clock is one clock as it stands in the journal: what expires, expires by it.
type Clock struct {
	// Domain is its name. At is where it stands, Last the newest reading that counts.
	Domain string
	At     Standing
	Last   lifecycle.Observation
	// From is the reading from which on a person said that it counts, Disowned the newest of
	// those before that one of which is wrong; both are zero if nobody had to say so.
	From, Disowned lifecycle.Observation
	// Reconciled is the number of the event by which a person said so last, 0 for none.
	Reconciled uint64
}

// Due is the reading at which a pause is over. A pause that was measured from a reading that
// a person disowned since begins where the clock counts again.
func (c Clock) Due(w RetryWait) lifecycle.Observation { return c.due(w.Begun(), w.NotBefore) }

// KeptUntil is the reading at which the time of what is kept is over, as Due is that of a pause.
func (c Clock) KeptUntil(r protocol.Retention) lifecycle.Observation { return c.due(r.At, r.Until) }

// due leaves alone what the clock has come to again: it was measured after the person's word,
// or will be over later than it had to be, and never earlier than was promised.
func (c Clock) due(begun, at lifecycle.Observation) lifecycle.Observation {
	if c.disowns(begun) && c.Last.UnixMilli < begun.UnixMilli {
		return lifecycle.Observation{Domain: c.Domain, UnixMilli: c.From.UnixMilli + at.UnixMilli - begun.UnixMilli}
	}
	return at
}

// disowns reports whether a reading lies between what a person said the clock counts from and
// what it had read until then: it may be one of those of which one was wrong.
func (c Clock) disowns(at lifecycle.Observation) bool {
	return at.Domain == c.Domain && at.UnixMilli > c.From.UnixMilli && at.UnixMilli <= c.Disowned.UnixMilli
}

// WentBack reports whether a reading lies before what is known to have been read on the
// clock already: its own newest reading, or another that is recorded elsewhere.
func (c Clock) WentBack(now, seen lifecycle.Observation) bool {
	last := c.Last.UnixMilli
	if seen.Domain == c.Domain && !c.disowns(seen) {
		last = max(last, seen.UnixMilli)
	}
	return now.Domain == c.Domain && now.UnixMilli-last < -maxStepBack
}

// Stale reports whether so much time has gone by since the clock's newest reading that it is
// to be read again, so that waiting for long does not look like a jump.
func (c Clock) Stale(now lifecycle.Observation) bool {
	return c.At.Version > 0 && now.Domain == c.Domain && now.UnixMilli-c.Last.UnixMilli > stale
}

// Plausible reports whether a reading may be counted with, on a clock that is not blocked: it
// is neither before what was read already nor implausibly far ahead of it. seen is a reading
// that is recorded elsewhere.
func (c Clock) Plausible(now, seen lifecycle.Observation) bool {
	last, known := c.newest(seen)
	return c.At.State != "blocked" && !c.WentBack(now, seen) && (!known || now.UnixMilli-last.UnixMilli <= maxJump)
}

// newest is the newest reading that counts, its own or one that is recorded elsewhere; false
// for none.
func (c Clock) newest(seen lifecycle.Observation) (lifecycle.Observation, bool) {
	if seen.Domain == c.Domain && !c.disowns(seen) && (c.At.Version == 0 || seen.UnixMilli > c.Last.UnixMilli) {
		return seen, true
	}
	return c.Last, c.At.Version > 0
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
	case "clock.stepped_back", "clock.jumped":
		var b ClockBlock
		err = canonical.Decode(e.Body, &b)
		c.Disowned = lifecycle.Observation{Domain: c.Domain, UnixMilli: max(b.Now.UnixMilli, b.Last.UnixMilli)}
	case "clock.reconciled":
		var r ClockReconciliation
		err = canonical.Decode(e.Body, &r)
		c.Last, c.From, c.Reconciled = r.From, r.From, e.Version
	}
	return c, err
}

// ObserveClock records a reading, and whether it counts. A reading that says nothing new
// is not recorded.
type ObserveClock struct {
	Clock Clock
	Now   lifecycle.Observation
	// Seen is a reading of the clock that is recorded elsewhere, zero for none.
	Seen lifecycle.Observation
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
	last, known := c.Clock.newest(c.Seen)
	back := c.Clock.WentBack(c.Now, c.Seen)
	switch {
	case c.Clock.At.State == "blocked":
		return nil // It was recorded why, and a person looks at it.
	case back || known && c.Now.UnixMilli-last.UnixMilli > maxJump:
		if c.Clock.At.Version == 0 {
			seen, err := report("ClockObservation", last)
			if err != nil {
				return err
			}
			if err := d.emit(c.Clock.Subject(), "clock.observed", last, seen); err != nil {
				return err
			}
		}
		if back {
			return d.emit(c.Clock.Subject(), "clock.stepped_back", ClockBlock{c.Now, last, reason.ClockSteppedBack}, g)
		}
		return d.emit(c.Clock.Subject(), "clock.jumped", ClockBlock{c.Now, last, reason.ClockJumped}, g)
	case c.Clock.At.Version == 0:
		return d.emit(c.Clock.Subject(), "clock.observed", c.Now, g)
	case c.Now.UnixMilli <= c.Clock.Last.UnixMilli:
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
