package kernel_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// lease is how long the fixed bundle's lease is.
const lease = time.Duration(fixture.Lease) * time.Millisecond

// fresh is a clock that nothing was read on yet.
func fresh() kernel.Clock { return kernel.Clock{Domain: fixture.At(0).Domain} }

// blocked is a clock that waits for a person.
func blocked() kernel.Clock {
	c := steady(fixture.At(0))
	c.At.State = "blocked"
	return c
}

// A lease begins with the activation, is moved by each heartbeat that comes before its end,
// and ends by a recorded reading of a clock that counts.
func TestALeaseIsRenewedUntilItIsOver(t *testing.T) {
	for name, test := range map[string]struct {
		command kernel.Command
		refused reason.Code // empty for a command that is taken
		until   time.Duration
	}{
		"renewed":                    {kernel.RenewLease{Clock: fresh(), Now: fixture.At(lease / 2)}, "", lease/2 + lease},
		"renewed at last":            {kernel.RenewLease{Clock: fresh(), Now: fixture.At(lease - time.Millisecond)}, "", 2*lease - time.Millisecond},
		"renewed too late":           {kernel.RenewLease{Clock: fresh(), Now: fixture.At(lease)}, reason.AttemptLeaseExpired, 0},
		"a clock kept right":         {kernel.RenewLease{Clock: steady(fixture.At(time.Second)), Now: fixture.At(0)}, "", lease},
		"a clock that went back":     {kernel.RenewLease{Clock: fresh(), Now: fixture.At(-3 * time.Second)}, reason.ClockBlocked, 0},
		"a clock that jumped":        {kernel.RenewLease{Clock: fresh(), Now: fixture.At(91 * 24 * time.Hour)}, reason.ClockBlocked, 0},
		"a blocked clock":            {kernel.RenewLease{Clock: blocked(), Now: fixture.At(time.Second)}, reason.ClockBlocked, 0},
		"another clock's reading":    {kernel.RenewLease{Clock: fresh(), Now: lifecycle.Observation{Domain: "other", UnixMilli: fixture.Now}}, reason.KernelWrongState, 0},
		"another clock":              {kernel.RenewLease{Clock: kernel.Clock{Domain: "other"}, Now: fixture.At(0)}, reason.KernelWrongState, 0},
		"over":                       {kernel.ExpireLease{Clock: steady(fixture.At(lease))}, "", lease},
		"not over":                   {kernel.ExpireLease{Clock: steady(fixture.At(lease - time.Millisecond))}, reason.KernelWrongState, 0},
		"over on a blocked clock":    {kernel.ExpireLease{Clock: blocked()}, reason.ClockBlocked, 0},
		"over on an unread clock":    {kernel.ExpireLease{Clock: fresh()}, reason.ClockBlocked, 0},
		"over on another clock":      {kernel.ExpireLease{Clock: steady(lifecycle.Observation{Domain: "other", UnixMilli: fixture.Now * 2})}, reason.KernelWrongState, 0},
		"an expiry of what is bound": {kernel.ExpireReservation{Clock: steady(fixture.At(time.Hour))}, reason.KernelWrongState, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for at, live := range map[lifecycle.State]func(*life){"leased": (*life).activate, "running": func(l *life) { l.do(l.applied(l.running()[0])) }} {
				l := newLife(t)
				live(l)
				if l.state.Lease.At != fixture.At(0) || l.state.Lease.Until != fixture.At(lease) {
					t.Fatalf("the lease is %+v", l.state.Lease)
				}
				if test.refused != "" {
					l.refused(test.refused, test.command)
					continue
				}
				l.do(test.command)
				if l.state.Lease.Until != fixture.At(test.until) {
					t.Errorf("it ends at %+v, want %+v", l.state.Lease.Until, fixture.At(test.until))
				}
				if _, renewed := test.command.(kernel.RenewLease); renewed {
					l.want(kernel.AttemptMachine, at)
				} else {
					l.want(kernel.AttemptMachine, "lease_expired")
				}
			}
		})
	}
}

// An attempt whose lease is over is fenced: what its supervisor still has to say moves
// nothing, nothing more of it begins, and another attempt may follow.
func TestAnAttemptWhoseLeaseIsOverIsLost(t *testing.T) {
	l := newLife(t)
	in := l.running()
	late := l.applied(in[1])
	l.do(kernel.ExpireLease{Clock: steady(fixture.At(lease))}, kernel.Fence{Why: "it was silent", Code: reason.AttemptLeaseExpired})
	l.want(kernel.AttemptMachine, "reconciling")
	l.want(kernel.WorkOrderMachine, "reconciling")
	if f := l.state.Fence(); f.Generation != 2 || f.Phase != workorder.Closing {
		t.Errorf("the fence is %+v", f)
	}
	for _, c := range []kernel.Command{
		kernel.RenewLease{Clock: fresh(), Now: fixture.At(lease / 2)}, kernel.ExpireLease{Clock: steady(fixture.At(2 * lease))}, kernel.Accept{},
	} {
		l.refused(reason.KernelWrongState, c)
	}
	before := l.state.Of(kernel.ExecutionMachine)
	l.do(late)
	if l.state.Of(kernel.ExecutionMachine) != before {
		t.Error("a late answer moved the execution")
	}
	for _, open := range l.next().Resolve {
		l.do(l.settle(open, operation.NotApplied))
	}
	l.do(kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource, Gone: true}, Retry: kernel.Retry{At: fixture.At(lease)}})
	l.want(kernel.AttemptMachine, "retryable_failed")
	l.want(kernel.WorkOrderMachine, "retry_wait")
	if r := l.state.Result; r.Conclusion != workorder.Lost || r.Code != reason.AttemptLeaseExpired {
		t.Errorf("it came to %+v", r)
	}
}

// A reservation that ran out before it was activated ends by a clock that counts. Nothing had
// begun: the order waits as before, and its next attempt is one of its own.
func TestAReservationExpires(t *testing.T) {
	at := func(after time.Duration) kernel.ExpireReservation {
		return kernel.ExpireReservation{Clock: steady(fixture.At(after))}
	}
	l := newLife(t)
	bundle := l.reserve()
	l.refused(reason.KernelWrongState, at(time.Minute-time.Millisecond))
	l.refused(reason.ClockBlocked, kernel.ExpireReservation{Clock: blocked()})
	l.refused(reason.ClockBlocked, kernel.ExpireReservation{Clock: fresh()})
	l.refused(reason.KernelWrongState, kernel.ExpireLease{Clock: steady(fixture.At(time.Hour))})
	l.do(at(time.Minute))
	l.want(kernel.AttemptMachine, "expired_no_effect")
	l.want(kernel.ReservationMachine, "expired")
	l.want(kernel.WorkOrderMachine, "submitted")
	l.wantDone(workorder.Timeout)
	if l.state.Result.Code != reason.BundleExpired {
		t.Errorf("it came to %+v", l.state.Result)
	}
	l.refused(reason.KernelWrongState, kernel.Activate{Bundle: bundle, Now: fixture.At(0)})
	l.refused(reason.KernelWrongState, at(time.Hour))
	// Told apart from one that was abandoned, and followed by another like that.
	l.do(kernel.Activate{Bundle: l.again(), Now: fixture.At(0)})
	l.want(kernel.AttemptMachine, "leased")

	ends := newLife(t)
	ends.reserve()
	for range 9 {
		ends.do(at(time.Minute))
		ends.want(kernel.WorkOrderMachine, "submitted")
		ends.again()
	}
	ends.do(at(time.Minute))
	ends.want(kernel.WorkOrderMachine, "failed")
}

// What a person disowns of a clock measures no lease: one from before is measured from where
// the clock counts again, one from after as it stands.
func TestALeaseOnAClockThatWasWrong(t *testing.T) {
	const hour, never = time.Hour, -time.Hour
	for name, test := range map[string]struct {
		at, from          time.Duration
		clock, reconciled uint64
		ends, read        time.Duration
	}{
		"nobody had to say anything":                {at: hour, clock: 3, ends: hour + lease, read: hour},
		"given while the clock was ahead":           {at: 10 * hour, clock: 3, from: hour, reconciled: 4, ends: hour + lease, read: never},
		"given before the clock was blocked":        {at: 0, clock: 0, from: hour, reconciled: 4, ends: hour + lease, read: never},
		"given after, at what had been read before": {at: 10 * hour, clock: 4, from: hour, reconciled: 4, ends: 10*hour + lease, read: 10 * hour},
		"given after, a little before what counts":  {at: hour - time.Second, clock: 5, from: hour, reconciled: 4, ends: hour - time.Second + lease, read: hour - time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			c := steady(fixture.At(0))
			if c.Reconciled = test.reconciled; test.reconciled > 0 {
				c.From = fixture.At(test.from)
			}
			l := kernel.Lease{At: fixture.At(test.at), Until: fixture.At(test.at + lease), Clock: test.clock}
			if got := c.Ends(l); got != fixture.At(test.ends) {
				t.Errorf("the lease ends at %+v, want %+v", got, fixture.At(test.ends))
			}
			read := lifecycle.Observation{}
			if test.read != never {
				read = fixture.At(test.read)
			}
			if got := c.Read(l); got != read {
				t.Errorf("it was measured from %+v, want %+v", got, read)
			}
		})
	}
	c := steady(fixture.At(0))
	c.From, c.Reconciled = fixture.At(hour), 4
	other := kernel.Lease{At: lifecycle.Observation{Domain: "other", UnixMilli: 1}, Until: lifecycle.Observation{Domain: "other", UnixMilli: 2}}
	if c.Ends(other) != other.Until || c.Read(other) != other.At {
		t.Errorf("another clock's lease ends at %+v", c.Ends(other))
	}
}

// Whatever a clock does: a lease ends once, by a reading that is not before its end, on a
// clock that counts; it is renewed only before that; and what a person says of the clock makes
// no lease shorter than it is long.
func TestNoLeaseEndsBeforeItsTime(t *testing.T) {
	ended, renewed, refused := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		l := newLife(t)
		l.activate()
		c := &clock{t: t, kernel: l.kernel, clock: fresh()}
		now := time.Duration(0)
		// begun is the reading that the lease is measured from, as a person would say.
		begun := fixture.At(0).UnixMilli
		for range 30 {
			now += rapid.SampledFrom([]time.Duration{0, time.Second, lease / 3, lease, -time.Second, -time.Minute, 100 * 24 * time.Hour}).Draw(rt, "by")
			over := fixture.At(now).UnixMilli-begun >= fixture.Lease
			switch rapid.SampledFrom([]string{"observe", "renew", "expire", "reconcile"}).Draw(rt, "what") {
			case "observe":
				c.do(kernel.ObserveClock{Clock: c.clock, Now: fixture.At(now), Seen: c.clock.Read(l.state.Lease)})
			case "renew":
				if l.try(kernel.RenewLease{Clock: c.clock, Now: fixture.At(now)}) != nil {
					refused++
					continue
				}
				renewed++
				if over || c.clock.At.State == "blocked" {
					rt.Fatalf("a lease from %d on was renewed at %d on %+v", begun, fixture.At(now).UnixMilli, c.clock)
				}
				begun = fixture.At(now).UnixMilli
				c.do(kernel.ObserveClock{Clock: c.clock, Now: fixture.At(now), Seen: c.clock.Read(l.state.Lease)})
			case "expire":
				due := c.clock.Steady() && c.clock.Last.UnixMilli-begun >= fixture.Lease
				if err := l.try(kernel.ExpireLease{Clock: c.clock}); (err == nil) != due {
					rt.Fatalf("a lease from %d on at %+v: %v", begun, c.clock, err)
				}
				if due {
					ended++
					return
				}
			case "reconcile":
				if c.clock.At.State != "blocked" {
					continue
				}
				c.do(kernel.ReconcileClock{Clock: c.clock, Ingress: fixture.Digest("ingress"), ClockReconciliation: kernel.ClockReconciliation{
					From: fixture.At(now), ExpectedVersion: c.clock.At.Version, Principal: "uid:1000", Reason: "set right",
				}})
				begun = fixture.At(now).UnixMilli
			}
		}
	})
	if ended == 0 || renewed == 0 || refused == 0 {
		t.Errorf("%d leases ended, %d were renewed, %d renewals were refused", ended, renewed, refused)
	}
}
