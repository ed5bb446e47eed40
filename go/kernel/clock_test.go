package kernel_test

import (
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
)

// clock drives one clock through the kernel, and replays each event.
type clock struct {
	t      *testing.T
	kernel kernel.Kernel
	clock  kernel.Clock
}

func (c *clock) do(command kernel.Command) []lifecycle.Event {
	c.t.Helper()
	d, err := c.kernel.Decide(kernel.State{}, command)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range d.Events {
		if c.clock, err = c.kernel.ReduceClock(c.clock, e); err != nil {
			c.t.Fatal(err)
		}
	}
	return d.Events
}

func (c *clock) read(after time.Duration) []lifecycle.Event {
	c.t.Helper()
	return c.do(kernel.ObserveClock{Clock: c.clock, Now: lifecycle.Observation{Domain: "host", UnixMilli: fixture.Now + after.Milliseconds()}})
}

func (c *clock) want(state lifecycle.State, last time.Duration) {
	c.t.Helper()
	if c.clock.At.State != state || c.clock.Last.UnixMilli != fixture.Now+last.Milliseconds() || c.clock.Steady() != (state == "steady") {
		c.t.Errorf("the clock is %+v, want %s at %s", c.clock, state, last)
	}
}

func TestAClockThatGoesBackOrJumpsIsBlocked(t *testing.T) {
	for name, wrong := range map[string]time.Duration{"back": -3 * time.Second, "far back": -time.Hour * 24 * 365, "far ahead": time.Hour * 24 * 91} {
		t.Run(name, func(t *testing.T) {
			c := &clock{t: t, kernel: fixture.Kernel(t), clock: kernel.Clock{Domain: "host"}}
			c.read(0)
			c.want("steady", 0)
			c.read(time.Minute)
			c.want("steady", time.Minute)
			if e := c.read(time.Minute - time.Second); len(e) != 0 {
				t.Errorf("a clock that is kept right: %+v", e)
			}
			c.read(time.Minute + wrong)
			c.want("blocked", time.Minute)
			// Nothing but a person's word unblocks it, not even the right time.
			if e := c.read(2 * time.Minute); len(e) != 0 {
				t.Errorf("a blocked clock is read: %+v", e)
			}
			c.want("blocked", time.Minute)
			say := kernel.ReconcileClock{Clock: c.clock, Ingress: fixture.Digest("ingress"), ClockReconciliation: kernel.ClockReconciliation{
				From: lifecycle.Observation{Domain: "host", UnixMilli: fixture.Now + time.Hour.Milliseconds()}, ExpectedVersion: 2, Principal: "uid:1000", Reason: "set right",
			}}
			if _, err := c.kernel.Decide(kernel.State{}, say); !reason.Is(err, reason.IngressStale) {
				t.Errorf("an old decision: %v", err)
			}
			say.ExpectedVersion = c.clock.At.Version
			c.do(say)
			c.want("steady", time.Hour)
			say.Clock = c.clock
			if _, err := c.kernel.Decide(kernel.State{}, say); err == nil {
				t.Error("it was reconciled twice")
			}
			c.read(2 * time.Hour)
			c.want("steady", 2*time.Hour)
		})
	}
	c := &clock{t: t, kernel: fixture.Kernel(t), clock: kernel.Clock{Domain: "host"}}
	if _, err := c.kernel.Decide(kernel.State{}, kernel.ObserveClock{Clock: c.clock, Now: lifecycle.Observation{Domain: "other"}}); !reason.Is(err, reason.KernelWrongState) {
		t.Errorf("another clock's reading: %v", err)
	}
}

// A pause that was measured on a clock that was wrong neither passes unnoticed nor lasts until
// that time: what the failure was read at is a reading too, a clock before it is blocked,
// and once a person has set it right the pause begins there.
func TestAPauseOnAClockThatWasWrong(t *testing.T) {
	at := func(after time.Duration) lifecycle.Observation {
		return lifecycle.Observation{Domain: "host", UnixMilli: fixture.Now + after.Milliseconds()}
	}
	const ahead, delay = 50 * 365 * 24 * time.Hour, 1500 * time.Millisecond
	wait := kernel.RetryWait{DelayMillis: delay.Milliseconds(), NotBefore: at(ahead + delay)}
	for name, known := range map[string]bool{"a clock that was read": true, "one that never was": false} {
		t.Run(name, func(t *testing.T) {
			c := &clock{t: t, kernel: fixture.Kernel(t), clock: kernel.Clock{Domain: "host"}}
			if known {
				c.read(0)
			}
			now := at(time.Minute)
			if !c.clock.WentBack(now, wait.Begun()) || c.clock.WentBack(at(ahead+time.Second), wait.Begun()) || c.clock.WentBack(at(ahead-time.Second), wait.Begun()) {
				t.Error("a clock is before the failure, or is not")
			}
			c.do(kernel.ObserveClock{Clock: c.clock, Now: now, Seen: wait.Begun()})
			if c.clock.Steady() {
				t.Fatalf("%+v counts", c.clock)
			}
			c.do(kernel.ReconcileClock{Clock: c.clock, ClockReconciliation: kernel.ClockReconciliation{
				From: now, ExpectedVersion: c.clock.At.Version, Principal: "uid:1000", Reason: "it was ahead",
			}, Ingress: fixture.Digest("ingress")})
			if due := c.clock.Due(wait); due != at(time.Minute+delay) {
				t.Errorf("the pause is over at %+v", due)
			}
			// The reading that was disowned blocks the clock no more.
			c.do(kernel.ObserveClock{Clock: c.clock, Now: at(2 * time.Minute), Seen: wait.Begun()})
			c.want("steady", 2*time.Minute)
			if later := (kernel.RetryWait{DelayMillis: 1000, NotBefore: lifecycle.Observation{Domain: "other", UnixMilli: 1}}); c.clock.Due(later) != later.NotBefore {
				t.Error("another clock's pause is moved")
			}
			if known && !c.clock.WentBack(at(time.Minute), lifecycle.Observation{}) {
				t.Error("its own readings do not count")
			}
		})
	}
}

// The first reading of a clock is held against what is recorded elsewhere of it, as a later one
// is against those before: one far ahead of a lease would end it.
func TestAClockIsHeldAgainstWhatIsRecordedElsewhere(t *testing.T) {
	at := func(after time.Duration) lifecycle.Observation {
		return lifecycle.Observation{Domain: "host", UnixMilli: fixture.Now + after.Milliseconds()}
	}
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		known, now time.Duration // known is the last reading of the clock itself, 0 for none
		state      lifecycle.State
	}{
		"soon":                            {0, day, "steady"},
		"far ahead":                       {0, 91 * day, "blocked"},
		"back":                            {0, -day, "blocked"},
		"far ahead of itself, not of it":  {-80 * day, 20 * day, "steady"},
		"far ahead of both":               {-80 * day, 91 * day, "blocked"},
		"back from it, ahead of its last": {-80 * day, -day, "blocked"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &clock{t: t, kernel: fixture.Kernel(t), clock: kernel.Clock{Domain: "host"}}
			if test.known != 0 {
				c.read(test.known)
			}
			if plausible := c.clock.Plausible(at(test.now), at(0)); plausible != (test.state == "steady") {
				t.Errorf("plausible: %v", plausible)
			}
			c.do(kernel.ObserveClock{Clock: c.clock, Now: at(test.now), Seen: at(0)})
			if c.clock.At.State != test.state {
				t.Errorf("the clock is %+v", c.clock)
			}
			if test.state == "blocked" && c.clock.Disowned.UnixMilli < fixture.Now {
				t.Errorf("what is recorded elsewhere is not disowned: %+v", c.clock)
			}
		})
	}
}
