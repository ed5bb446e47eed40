package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/dispatcher"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

func (c *command) tickCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tick",
		Short: "Close what an earlier start left open, and attempt the work that waits",
		Long: "Attempts every work order that may be attempted now, one after the other, and says what each of the others\n" +
			"waits for. It removes what was kept of workspaces and whose time is over. Where nothing is to be done, nothing is\n" +
			"recorded. How an attempt ended is in `writ status`; the exit status says whether the tick itself could be carried out.\n" +
			"Ctrl-C and SIGTERM cancel no work: the attempt under way ends as lost, and the next tick makes another one.",
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.tick(cmd.Context(), "") },
	}
}

// ticked is what `writ tick` prints.
type ticked struct {
	Tick  string     `json:"tick"`
	Steps []tickStep `json:"steps"`
	// Sent is what became of the proposals of accepted results.
	Sent []sentProposal `json:"sent"`
	// Expired is what was kept of environments and whose time is over.
	Expired []expired `json:"expired"`
}

type tickStep struct {
	WorkOrder  workorder.ID          `json:"work_order"`
	Attempt    workorder.AttemptID   `json:"attempt,omitempty"`
	Conclusion workorder.Conclusion  `json:"conclusion,omitempty"`
	Waits      string                `json:"waits,omitempty"`
	Until      lifecycle.Observation `json:"until"`
	Code       reason.Code           `json:"code,omitempty"`
	Refused    string                `json:"refused,omitempty"`
}

// tick carries out one tick, for the delivery of a wake if there was one.
func (c *command) tick(ctx context.Context, wake string) (err error) {
	outliveReaders()
	ctx, stop := host.Stopping(ctx)
	defer stop()
	h, err := c.openHost(ctx, "writ tick")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if wake != "" {
		answer, err := h.Wake(ctx, ingress.Person(os.Getuid()), ingress.Delivery{ID: wake, Channel: ingress.LocalChannel, Verb: ingress.Command, Content: []byte(wakeText)})
		if err != nil {
			return err
		}
		if err := c.refused(answer); err != nil {
			return err
		}
		if answer.Replayed {
			return c.woken(answer)
		}
	}
	sent := []sentProposal{}
	keep := func(s dispatcher.Sent) { sent = append(sent, sentProposal{s.Attempt, newProposal(s)}) }
	if err := c.reconcile(ctx, h, keep); err != nil {
		return err
	}
	accepted, err := h.Accept(ingress.Tick, []byte(wake))
	if err != nil {
		return err
	}
	out := ticked{Tick: accepted.Receipt.ID, Steps: []tickStep{}}
	for again := true; again && err == nil; {
		var steps []dispatcher.Step
		steps, again, err = c.openTick(ctx, h, accepted, host.Watch{Begin: c.tellBegun, Log: c.relay, Sent: keep})
		for _, s := range steps {
			out.Steps = append(out.Steps, newTickStep(s))
		}
	}
	out.Sent, out.Expired = sent, []expired{}
	if err == nil {
		var over []dispatcher.Expired
		over, err = h.ExpireRetentions(ctx, accepted)
		out.Expired = newExpired(over)
	}
	return errors.Join(err, c.print(out, func(w io.Writer) { out.write(w, c.style()) }))
}

// openTick is one tick with the door open. It returns true when somebody came in who was
// told that a tick follows.
func (c *command) openTick(ctx context.Context, h *host.Host, accepted ingress.Accepted, w host.Watch) (steps []dispatcher.Step, again bool, err error) {
	door, err := h.OpenDoor(context.WithoutCancel(ctx), true)
	if err != nil {
		return nil, false, err
	}
	steps, err = h.Tick(ctx, accepted, w)
	err = errors.Join(err, door.Close())
	select {
	case <-door.Woken():
		again = ctx.Err() == nil
	default:
	}
	return steps, again, err
}

func newTickStep(s dispatcher.Step) tickStep {
	t := tickStep{WorkOrder: s.WorkOrder, Attempt: s.Attempt, Waits: s.Waits, Until: s.Until}
	if r := s.State.Result; r != nil {
		t.Conclusion, t.Code = r.Conclusion, r.Code
	}
	if s.State.Retry != nil {
		t.Waits, t.Until = "its next attempt, after a pause", s.State.Retry.NotBefore
	}
	if s.Err != nil {
		t.Refused = s.Err.Error()
		if r, ok := reason.As(s.Err); ok {
			t.Code, t.Refused = r.Code, r.What
		}
	}
	return t
}

func (t ticked) write(w io.Writer, s style) {
	if len(t.Steps)+len(t.Sent)+len(t.Expired) == 0 {
		fmt.Fprintln(w, "Nothing waits.")
		return
	}
	var rows [][]string
	for _, step := range t.Steps {
		what := s.faint("waits for " + plain(step.Waits))
		switch {
		case step.Refused != "":
			what = s.bad("refused") + "  " + plain(step.Refused) + " " + s.faint("["+string(step.Code)+"]")
		case step.Conclusion == workorder.Succeeded:
			what = s.good(string(step.Conclusion))
		case step.Conclusion != "":
			what = s.bad(string(step.Conclusion))
			if step.Waits != "" {
				what += s.faint(", waits for " + step.Waits)
			}
		}
		name := string(step.Attempt)
		if name == "" {
			name = string(step.WorkOrder)
		}
		rows = append(rows, []string{name, what})
	}
	for _, sent := range t.Sent {
		rows = append(rows, []string{string(sent.Attempt), strings.Join(sent.lines(s), " ")})
	}
	for _, e := range t.Expired {
		rows = append(rows, []string{string(e.Attempt), e.line(s)})
	}
	for _, line := range columns(rows) {
		fmt.Fprintln(w, line)
	}
}

// tellBegun says on standard error that an attempt begins.
func (c *command) tellBegun(a *admission.Admitted) {
	if !c.json {
		fmt.Fprintf(c.errs, "writ: attempt %d at %s: %s\n", a.State.Reserved.Ordinal, a.State.WorkOrder, a.State.Attempt)
	}
}

// tellRetry says on standard error that another attempt follows.
func (c *command) tellRetry(s kernel.State) {
	if !c.json {
		fmt.Fprintf(c.errs, "writ: %s ended %s: %s; the next attempt begins in %s\n",
			s.Attempt, s.Result.Conclusion, plain(s.Result.Detail), duration(s.Retry.DelayMillis*1000))
	}
}
