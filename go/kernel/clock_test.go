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
