package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/dispatcher"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

func (c *command) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Hold the state folder, take commands, and attempt what is submitted",
		Long: "Closes what an earlier start left open, then attempts work as it comes: after each submission and each wake, and when\n" +
			"a pause before a next attempt is over. It removes what was kept of workspaces once its time is over. It ends with\n" +
			"Ctrl-C, SIGTERM and SIGHUP, and when it can answer nobody any more: its socket is broken, nothing can be recorded, or\n" +
			"another process took the folder over. To stop it cancels no work: the attempt under way ends as lost, and the next\n" +
			"start makes another one, within the retries of its work order.",
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.serve(cmd.Context()) },
	}
}

func (c *command) serve(ctx context.Context) (err error) {
	outliveReaders()
	ctx, stop := host.Stopping(ctx)
	defer stop()
	h, err := c.openHost(ctx, "writ serve")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	// unsent says that something waits for its next try, which nobody may wake the host for.
	unsent := false
	sent := func(s dispatcher.Sent) {
		unsent = unsent || s.Waits != "" && s.Code.Transient()
		c.tellSent(s)
	}
	if err := c.reconcile(ctx, h, sent); err != nil {
		return err
	}
	door, err := h.OpenDoor(context.WithoutCancel(ctx), true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, door.Close()) }()
	c.note("serving %s", c.state)
	for {
		pause, err := c.serveTick(ctx, h, sent)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if unsent {
			pause = min(pause, resend)
		}
		expires, err := c.serveExpire(ctx, h)
		if err != nil {
			return err
		}
		pause = min(pause, expires)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case err := <-door.Failed():
			timer.Stop()
			return err
		case <-door.Woken():
		case <-timer.C:
		}
		timer.Stop()
		unsent = false
		if err := c.drain(ctx, h, sent); err != nil {
			return err
		}
	}
}

// drain sends what waits: what it waited for may have come.
func (c *command) drain(ctx context.Context, h *host.Host, sent func(dispatcher.Sent)) error {
	accepted, err := h.Accept(ingress.Tick, nil)
	if err != nil {
		return err
	}
	return h.Drain(ctx, accepted, host.Watch{Sent: sent})
}

// longest is how long a host sleeps that has nothing to wait for.
const longest = time.Hour

// resend is how long a host waits before it tries again what could not be sent, or not be begun.
const resend = time.Minute

// serveTick is one tick. It returns how long nothing will have to be attempted.
func (c *command) serveTick(ctx context.Context, h *host.Host, sent func(dispatcher.Sent)) (time.Duration, error) {
	accepted, err := h.Accept(ingress.Tick, nil)
	if err != nil {
		return 0, err
	}
	steps, err := h.Tick(ctx, accepted, host.Watch{Begin: c.tellBegun, Log: c.relay, Sent: sent})
	pause := longest
	for _, s := range steps {
		c.tellStep(s)
		at := s.Until
		if s.State.Retry != nil {
			at = s.State.Retry.NotBefore
		}
		if r, ok := reason.As(s.Err); ok && r.Code.Transient() {
			pause = min(pause, resend) // What it lacked may come back, and nobody says when.
		}
		if at.UnixMilli > 0 {
			pause = min(pause, until(at))
		}
	}
	return pause, err
}

// serveExpire removes what was kept and whose time is over. It returns how long nothing
// will have to be removed.
func (c *command) serveExpire(ctx context.Context, h *host.Host) (time.Duration, error) {
	accepted, err := h.Accept(ingress.Tick, nil)
	if err != nil {
		return 0, err
	}
	over, err := h.ExpireRetentions(ctx, accepted)
	pause := longest
	for _, e := range over {
		if e.Until.UnixMilli > 0 {
			pause = min(pause, until(e.Until))
		}
	}
	for _, e := range newExpired(over) {
		c.note("%s: %s", e.Attempt, e.line(style{}))
	}
	return pause, err
}

// until is how long it takes until the host's clock shows a reading.
func until(at lifecycle.Observation) time.Duration {
	return max(time.Until(time.UnixMilli(at.UnixMilli)), 0) + time.Millisecond
}

// tellStep says on standard error what a tick did.
func (c *command) tellStep(s dispatcher.Step) {
	switch r := s.State.Result; {
	case s.Err != nil:
		c.note("%s could not be attempted: %s", s.WorkOrder, plain(s.Err.Error()))
	case r != nil && r.Conclusion == workorder.Succeeded:
		c.note("%s succeeded", s.Attempt)
	case r != nil:
		c.note("%s ended %s: %s", s.Attempt, r.Conclusion, plain(r.Detail))
	}
}

// tellSent says on standard error what became of a proposal.
func (c *command) tellSent(s dispatcher.Sent) {
	c.note("%s: %s", s.Attempt, strings.Join(newProposal(s).lines(style{}), " "))
}

// note says something on standard error, unless a program reads.
func (c *command) note(format string, args ...any) {
	if !c.json {
		fmt.Fprintf(c.errs, "writ: "+format+"\n", args...)
	}
}
