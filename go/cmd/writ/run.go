package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/dispatcher"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/go/workorder"
)

func (c *command) runCommand() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Carry out a work order and print an account of it",
		Long: "Submits the work order in FILE, has the policies decide, and carries out one attempt in a measured\n" +
			"environment. Ctrl-C asks for cancellation; a second one leaves at once, and the next start closes what is open.\n" +
			"Under the same --id it is carried out once: who repeats it is told what the first one was.",
		Args: exact("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), id, args[0]) },
	}
	cmd.Flags().StringVar(&id, "id", "", "the id of the delivery: dlv_ and a UUIDv7 (default: a new one)")
	return cmd
}

// run is the main job.
func (c *command) run(ctx context.Context, id, file string) (err error) {
	doc, origin, err := c.load(file)
	if err != nil {
		return err
	}
	id, err = c.deliveryID(id)
	if err != nil {
		return err
	}
	outliveReaders()
	h, err := c.openHost(ctx, "writ run "+file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if err := c.reconcile(ctx, h, c.tellSent); err != nil {
		return err
	}
	door, err := h.OpenDoor(context.WithoutCancel(ctx), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, door.Close()) }()
	run, err := h.Admit(ctx, ingress.Person(os.Getuid()), id, doc, origin)
	var denied *admission.DeniedError
	switch {
	case errors.As(err, &denied):
		return c.denied(denied)
	case err != nil:
		return err
	case run.Replayed:
		return c.ranBefore(doc, run.SubmitAnswer)
	}
	admitted, accepted := run.Admitted, run.Accepted
	sent := map[string]dispatcher.Sent{}
	watch := func(s dispatcher.Sent) { sent[s.Purpose] = s }
	state, err := c.carryOut(ctx, h, admitted, accepted, watch)
	for err == nil && state.Retry != nil && c.pause(ctx, state) {
		admitted, state, err = c.again(ctx, h, state.WorkOrder, accepted, watch)
	}
	if errors.As(err, &denied) {
		return c.denied(denied)
	}
	if err != nil {
		return err
	}
	return c.account(context.WithoutCancel(ctx), h, state, admitted, sent)
}

// pause waits until the next attempt may begin. It returns false when a person asked to
// stop first: the work order then waits for the next tick.
func (c *command) pause(ctx context.Context, s kernel.State) bool {
	c.tellRetry(s)
	timer := time.NewTimer(time.Duration(s.Retry.DelayMillis) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// outliveReaders keeps the process alive when whoever reads what it prints goes away, as
// in `writ run FILE | head`: the work goes on, and is recorded. Without it the runtime of
// the language ends a process that writes to a closed pipe.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// load reads a work order from where the person stands.
func (c *command) load(file string) (*schema.Document, string, error) {
	path := c.path(file)
	raw, err := admission.ReadFile(path, schema.MaxDocumentBytes)
	if err != nil {
		return nil, "", reason.New(reason.UsageInvalid, "the work order cannot be read", file, "check the path").Because(err)
	}
	registry, err := schema.Open()
	if err != nil {
		return nil, "", err
	}
	doc, err := registry.Load(file, raw, workorder.Kind)
	return doc, filepath.Dir(path), err
}

// reconcile closes what an earlier life left open, and says so.
func (c *command) reconcile(ctx context.Context, h *host.Host, sent func(dispatcher.Sent)) error {
	closed, err := h.Reconcile(context.WithoutCancel(ctx), host.Watch{Sent: sent})
	for _, one := range closed {
		c.tellClosed(one)
	}
	return err
}

// carryOut supervises the attempt, and shows its progress.
func (c *command) carryOut(ctx context.Context, h *host.Host, a *admission.Admitted, accepted ingress.Accepted, sent func(dispatcher.Sent)) (kernel.State, error) {
	p := c.progress()
	defer p.end()
	defer context.AfterFunc(ctx, p.cancelling)()
	return h.CarryOut(ctx, a, accepted, host.Watch{Step: p.step, Sent: sent, Log: c.relay})
}

// again makes the next attempt at a work order, and shows its progress.
func (c *command) again(ctx context.Context, h *host.Host, id workorder.ID, accepted ingress.Accepted, sent func(dispatcher.Sent)) (admitted *admission.Admitted, _ kernel.State, err error) {
	p := c.progress()
	defer p.end()
	defer context.AfterFunc(ctx, p.cancelling)()
	step, err := h.Attempt(ctx, id, accepted, host.Watch{
		Begin: func(a *admission.Admitted) { admitted = a; c.tellBegun(a) }, Step: p.step, Sent: sent, Log: c.relay,
	})
	return admitted, step.State, err
}

// relay shows a person what an adapter says while it works; it is no record.
func (c *command) relay(level, message string) {
	if !c.json && level != "debug" && level != "trace" {
		fmt.Fprintf(c.errs, "writ: adapter, %s: %s\n", plain(level), lines(message))
	}
}

// exitOf is the exit of an attempt that ended: each conclusion has its own (L4).
// An attempt without a result waits for a person: to finish cancelling, or to say what
// became of it.
func exitOf(s kernel.State) reason.Exit {
	r := s.Result
	if r == nil && s.CancelReason != "" {
		return reason.ExitCancellationRequested
	}
	if r == nil {
		return reason.ExitUnknown
	}
	return r.Conclusion.Exit()
}
