package kernel

import (
	"fmt"
	"slices"

	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Lease is how long whoever supervises an attempt has the right to go on with it. It stands in
// attempt.leased, and is the body of attempt.lease_renewed.
type Lease struct {
	// At is the reading at which it was given or renewed last, Until that at which it is over.
	At    lifecycle.Observation `json:"at"`
	Until lifecycle.Observation `json:"until"`
	// Clock is how many events the clock had then: a lease is older than what a person says of
	// the clock later, or it is not, whatever the clock read.
	Clock uint64 `json:"clock_version"`
}

// newLease is a lease of so many milliseconds from a reading of a clock of so many events.
func newLease(at lifecycle.Observation, clock uint64, millis int64) Lease {
	return Lease{At: at, Until: lifecycle.Observation{Domain: at.Domain, UnixMilli: at.UnixMilli + millis}, Clock: clock}
}

// Millis is how long the lease is.
func (l Lease) Millis() int64 { return l.Until.UnixMilli - l.At.UnixMilli }

// Fading reports whether half of the lease or more is over: it is renewed then, and not before.
func (l Lease) Fading(now lifecycle.Observation) bool {
	return now.Reached(lifecycle.Observation{Domain: l.At.Domain, UnixMilli: l.At.UnixMilli + l.Millis()/2})
}

// Ends is the reading at which a lease is over. One that was measured before a person set the
// clock right is measured anew from there: while a clock is blocked nobody can renew one.
func (c Clock) Ends(l Lease) lifecycle.Observation {
	if c.older(l) {
		return lifecycle.Observation{Domain: c.Domain, UnixMilli: c.From.UnixMilli + l.Millis()}
	}
	return l.Until
}

// Read is the reading that a lease was measured from, zero for one that a person disowned
// since.
func (c Clock) Read(l Lease) lifecycle.Observation {
	if c.older(l) {
		return lifecycle.Observation{}
	}
	return l.At
}

// older reports whether a lease is older than the newest word of a person on the clock.
func (c Clock) older(l Lease) bool { return l.At.Domain == c.Domain && l.Clock < c.Reconciled }

// Leased reports whether the attempt is under a lease.
func (s State) Leased() bool {
	switch s.Of(AttemptMachine).State {
	case "leased", "running":
		return true
	}
	return false
}

// RenewLease is the heartbeat of whoever supervises an attempt: it moves the end of the lease.
type RenewLease struct {
	// Clock is the clock that the lease is measured by, as it stands in the journal.
	Clock Clock
	Now   lifecycle.Observation
}

func (c RenewLease) decide(d *decision) error {
	l := d.state.Lease
	if !d.state.Leased() {
		return wrongState(string(d.state.Attempt), "the attempt is under no lease any more")
	}
	switch {
	case c.Now.Domain != l.At.Domain || c.Clock.Domain != l.At.Domain:
		return wrongState(string(d.state.Attempt), fmt.Sprintf("the lease is measured by the clock %q, and not by %q", l.At.Domain, c.Now.Domain))
	case !c.Clock.Plausible(c.Now, c.Clock.Read(l)):
		return clockBlocked(c.Clock)
	case c.Now.Reached(c.Clock.Ends(l)):
		return LeaseOver(d.state.Attempt)
	}
	next := newLease(c.Now, c.Clock.At.Version, l.Millis())
	g, err := report("ClockObservation", c.Now)
	if err != nil {
		return err
	}
	return d.of("attempt.lease_renewed", next, g)
}

// LeaseOver refuses whoever goes on with an attempt after its lease.
func LeaseOver(id workorder.AttemptID) *reason.Refusal {
	return reason.New(reason.AttemptLeaseExpired, "the lease of the attempt ran out before it was renewed", string(id),
		"nothing: the attempt is closed, and another one at the work order is safe")
}

// ExpireLease records that a lease ran out, by a clock whose newest reading is recorded and
// counts. What follows from that is the business of Fence.
type ExpireLease struct {
	Clock Clock
}

func (c ExpireLease) decide(d *decision) error {
	if !d.state.Leased() {
		return wrongState(string(d.state.Attempt), "the attempt is under no lease any more")
	}
	if err := d.expiresBy(c.Clock); err != nil {
		return err
	}
	if end := c.Clock.Ends(d.state.Lease); !c.Clock.Last.Reached(end) {
		return notYet(string(d.state.Attempt), "the lease", c.Clock, end)
	}
	g, err := report("ClockObservation", c.Clock.Last)
	if err != nil {
		return err
	}
	return d.of("attempt.lease_expired", c.Clock.Last, g)
}

// expiresBy has the decision rest on a clock as it stands, and refuses one that nothing expires by:
// whatever is said of the clock meanwhile comes first.
func (d *decision) expiresBy(c Clock) error {
	if !c.Steady() {
		return clockBlocked(c)
	}
	d.rests = append(d.rests, Rest{c.Subject(), c.At.Version})
	return nil
}

func clockBlocked(c Clock) error {
	return reason.New(reason.ClockBlocked, "nothing expires on a clock that went back or jumped", c.Domain,
		"look at the clock, and reconcile it: `writ command --help`")
}

func notYet(where, what string, c Clock, end lifecycle.Observation) error {
	return wrongState(where, fmt.Sprintf("%s ends when the clock %s reads %d; it reads %d", what, end.Domain, end.UnixMilli, c.Last.UnixMilli))
}

// At returns the commands as they are decided at a reading of a clock of so many events: none
// of them may count with an earlier one, however long ago it was made.
func At(now lifecycle.Observation, clock uint64, commands []Command) []Command {
	commands = slices.Clone(commands)
	for i, c := range commands {
		if a, ok := c.(Activate); ok {
			if a.Now.Domain != now.Domain || a.Now.UnixMilli < now.UnixMilli {
				a.Now = now
			}
			a.Clock = clock
			commands[i] = a
		}
	}
	return commands
}

// Timed reports whether it matters when the commands are decided.
func Timed(commands []Command) bool {
	return slices.ContainsFunc(commands, func(c Command) bool { _, ok := c.(Activate); return ok })
}
