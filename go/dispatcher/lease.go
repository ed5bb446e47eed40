package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/supervisor"
	"github.com/writ-runtime/writ/go/workorder"
)

// Expire closes an attempt whose reservation ran out before it was activated, or whose lease
// ran out because whoever supervises it stopped renewing it: the fence is raised, what bears
// its name is ended, and it is closed as lost. over is false for one whose time has not come,
// or that somebody else closed first; it says what it waits for where the clock cannot be
// counted with, until a person has looked at it.
func (d *Dispatcher) Expire(ctx context.Context, id workorder.AttemptID, accepted ingress.Accepted) (closed Closed, over bool, err error) {
	defer d.Ledger.Alone(id)()
	ctx = context.WithoutCancel(ctx)
	s, err := d.Ledger.State(ctx, id)
	if err != nil {
		return Closed{}, false, err
	}
	t, ok := termOf(s)
	if !ok {
		return Closed{}, false, nil
	}
	now := d.Ledger.Now()
	clock, err := d.Ledger.Clock(ctx, now.Domain)
	if err != nil || !now.Reached(t.end(clock)) && !clock.WentBack(now, t.read(clock)) {
		return Closed{}, false, err
	}
	clock, err = d.observe(ctx, accepted, t.read(clock))
	switch {
	case err != nil:
		return Closed{}, false, err
	case !clock.Steady():
		return Closed{Attempt: id, State: s, Waits: blockedClock(clock)}, false, nil
	case !clock.Last.Reached(t.end(clock)):
		return Closed{}, false, nil
	}
	if !s.Leased() {
		opened, err := d.Ledger.Commit(ctx, ledger.Turn{
			Fence: s.Fence(), Commands: []kernel.Command{kernel.ExpireReservation{Clock: clock}}, Blobs: []journal.Blob{accepted.Blob},
			Actor: accepted.Receipt.Principal, Cause: accepted.Receipt.ID,
		})
		if lostRace(err) {
			return Closed{}, false, nil
		}
		return Closed{Attempt: id, State: opened.State}, err == nil, err
	}
	revoked := func() {
		if d.Revoked != nil {
			d.Revoked(id)
		}
	}
	closed, err = d.recover(ctx, s, accepted, revoked, kernel.ExpireLease{Clock: clock}, kernel.Fence{Why: supervisor.Silent, Code: reason.AttemptLeaseExpired})
	if lostRace(err) && closed.State.Generation == s.Generation {
		return Closed{}, false, nil
	}
	return closed, err == nil && closed.State.Generation != s.Generation, err
}

// Unactivated closes an attempt whose activation was refused, and returns why that was: as
// expired where its reservation is, else as abandoned. Nothing of it had begun.
func (d *Dispatcher) Unactivated(ctx context.Context, id workorder.AttemptID, accepted ingress.Accepted, why error) (kernel.State, error) {
	closed, over, err := d.Expire(ctx, id, accepted)
	if over || err != nil {
		return closed.State, errors.Join(why, err)
	}
	s, err := d.Ledger.State(ctx, id)
	if err != nil || s.Of(kernel.AttemptMachine).State != "reserved" {
		return s, errors.Join(why, err) // Somebody else closed it.
	}
	how := workorder.Failed
	if reason.Is(why, reason.BundleExpired) || lostRace(why) {
		// On a clock that cannot be counted with nothing expires, and a person may say something of
		// the order while an attempt is prepared. The order waits all the same.
		how = workorder.Lost
	}
	return s, errors.Join(why, admission.Abandon(ctx, d.Ledger, s, accepted, how, why))
}

// term is how long an attempt may stay where it is: until its reservation expires, or its lease
// ends.
type term struct {
	lease   kernel.Lease // zero for a reservation
	expires int64
}

// termOf returns the term of an attempt; false for one that has none.
func termOf(s kernel.State) (term, bool) {
	switch {
	case s.Of(kernel.AttemptMachine).State == "reserved":
		return term{expires: s.Reserved.ExpiresUnixMilli}, true
	case s.Leased():
		return term{lease: s.Lease}, true
	}
	return term{}, false
}

// end is the reading of a clock at which the term is over.
func (t term) end(c kernel.Clock) lifecycle.Observation {
	if t.lease == (kernel.Lease{}) {
		return lifecycle.Observation{Domain: c.Domain, UnixMilli: t.expires}
	}
	return c.Ends(t.lease)
}

// read is the reading that the term was measured from, zero if that is not recorded with it.
func (t term) read(c kernel.Clock) lifecycle.Observation { return c.Read(t.lease) }

// lostRace reports whether somebody else was first.
func lostRace(err error) bool {
	return reason.Is(err, reason.KernelStaleFence) || reason.Is(err, reason.KernelWrongState) || reason.Is(err, reason.JournalConflict)
}

func blockedClock(c kernel.Clock) string {
	return fmt.Sprintf("a person: the clock %s went back or jumped, and is blocked at event %d", c.Domain, c.At.Version)
}

// Bounds of how long nobody looks at an attempt that is carried out, and how long a supervisor
// is waited for whose attempt was closed.
const (
	lookOften  = time.Second
	lookSeldom = time.Minute
	patience   = 10 * time.Second
)

// Supervise has run carry an attempt out, and watches it meanwhile: once its time is over, by a
// clock that counts, it is closed, whatever holds run up. Preconditions: whatever Revoked ends
// makes run come back.
func (d *Dispatcher) Supervise(ctx context.Context, id workorder.AttemptID, accepted ingress.Accepted, run func() (kernel.State, error)) (kernel.State, error) {
	type end struct {
		state kernel.State
		err   error
	}
	ended := make(chan end, 1)
	go func() {
		state, err := run()
		ended <- end{state, err}
	}()
	for {
		select {
		case e := <-ended:
			return e.state, e.err
		case <-d.after(d.left(ctx, id)):
		}
		closed, over, err := d.Expire(ctx, id, accepted)
		if err != nil || !over {
			continue // Whoever carries it out says what is wrong with the journal.
		}
		select {
		case e := <-ended:
			return e.state, e.err
		case <-d.after(patience):
			// It is stuck. What it holds permits nothing any more, and what bore the name is gone.
			return closed.State, nil
		}
	}
}

// left is how long an attempt need not be looked at.
func (d *Dispatcher) left(ctx context.Context, id workorder.AttemptID) time.Duration {
	s, err := d.Ledger.State(ctx, id)
	t, ok := termOf(s)
	if err != nil || !ok {
		return lookSeldom
	}
	now := d.Ledger.Now()
	clock, err := d.Ledger.Clock(ctx, now.Domain)
	if err != nil {
		return lookSeldom
	}
	left := time.Duration(t.end(clock).UnixMilli-now.UnixMilli) * time.Millisecond
	if length := time.Duration(t.lease.Millis()) * time.Millisecond; length > 0 {
		left = min(left, length) // A clock that goes back makes nothing longer.
	}
	return max(left, lookOften)
}

func (d *Dispatcher) after(wait time.Duration) <-chan time.Time {
	if d.After != nil {
		return d.After(wait)
	}
	return time.After(wait)
}
