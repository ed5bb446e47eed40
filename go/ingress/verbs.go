package ingress

import (
	"context"
	"fmt"
	"strconv"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// apply carries a command out, in one transaction with its outcome.
func (c *hearing) apply(ctx context.Context, in Intent, first []kernel.Command) error {
	switch in.Verb {
	case Status, Wake:
		// Nothing else changes by it; whoever asked the desk does the rest.
		return c.alone(ctx, append(first, kernel.Apply{Delivery: c.delivery(), Became: lifecycle.Of(kernel.CommandMachine, c.accepted.Receipt.ID)})...)
	case CancelWork:
		return c.cancel(ctx, in, first)
	case ResolveAmbiguousEffect:
		return c.resolve(ctx, in, first)
	case ReconcileClock:
		return c.reconcileClock(ctx, in, first)
	case ResumeWork:
		return c.resume(ctx, in, first)
	case ModeRaise:
		return c.raiseMode(ctx, in, first)
	case Withdraw:
		return c.withdraw(ctx, in, first)
	case SettleBudget:
		return c.settleBudget(ctx, in, first)
	}
	return reason.New(reason.EnvironmentUnsupported, in.Verb+" is known and not supported by this release", "", "leave it out")
}

// expected returns the version that a command expects, and refuses it when the work order
// is at another.
func expected(in Intent, order kernel.State) (uint64, error) {
	version, err := number(in, "expected-version")
	if err != nil {
		return 0, err
	}
	if at := order.Of(kernel.WorkOrderMachine).Version; at != version {
		return 0, reason.New(reason.IngressStale, fmt.Sprintf("the work order is at event %d, and the command was decided at event %d", at, version),
			string(order.WorkOrder), "look again with `writ show "+string(order.WorkOrder)+"`, and decide on what is there now")
	}
	return version, nil
}

// number reads a flag that is a number, in its one spelling.
func number(in Intent, flag string) (uint64, error) {
	text := in.Flag(flag)
	n, err := strconv.ParseUint(text, 10, 53)
	if err != nil || strconv.FormatUint(n, 10) != text {
		return 0, malformed(fmt.Sprintf("--%s %.20q is no number", flag, text), "write it in decimal digits, as it is printed")
	}
	return n, nil
}

// cancel withdraws a work order that nothing has started, or asks for the cancellation of
// its attempt. That is a request: what comes of it is another event.
func (c *hearing) cancel(ctx context.Context, in Intent, first []kernel.Command) error {
	l := c.desk.Ledger
	order, err := l.Order(ctx, workorder.ID(in.Target))
	if err != nil {
		return err
	}
	if _, err := expected(in, order); err != nil {
		return err
	}
	requested := kernel.CancelRequested{Reason: in.Flag("reason")}
	subject := order.OrderSubject()
	var state kernel.State
	if order.Last != "" {
		if state, err = l.State(ctx, order.Last); err != nil {
			return err
		}
	}
	switch at := order.Of(kernel.WorkOrderMachine).State; {
	case state.Of(kernel.AttemptMachine).State == "reserved":
		commands := append(first, kernel.CancelOrder{CancelRequested: requested}, kernel.Apply{Delivery: c.delivery(), Became: subject})
		_, err = l.Commit(ctx, c.turn(state.Fence(), commands))
		return err
	case at == "active":
		commands := append(first, kernel.RequestCancel{CancelRequested: requested}, kernel.Apply{Delivery: c.delivery(), Became: subject})
		t := c.turn(state.Fence(), commands)
		if running, err := c.desk.Running(ctx, order.Last, commands, t.Blobs); running || err != nil {
			return err
		}
		_, err = l.Commit(ctx, t)
		return err
	case l.Kernel().Transitions().Latest(kernel.WorkOrderMachine).Terminal(at):
		return reason.New(reason.KernelWrongState, "the work order is "+string(at)+": nothing is left to cancel", in.Target, "see it with `writ show`")
	}
	commands := append(first, kernel.CancelOrder{CancelRequested: requested}, kernel.Apply{Delivery: c.delivery(), Became: subject})
	_, err = l.CommitOrder(ctx, order, order.WorkOrder, c.turn(workorder.Fence{}, commands))
	return err
}

// attempt returns where an attempt and its work order stand. What the ledger remembers of a
// closed attempt may be older than its order, which moves without it.
func (c *hearing) attempt(ctx context.Context, id workorder.AttemptID) (kernel.State, error) {
	l := c.desk.Ledger
	s, err := l.State(ctx, id)
	if err != nil || !l.Kernel().Closed(s) {
		return s, err
	}
	l.Forget(id)
	return l.State(ctx, id)
}

// resolve records what a person found of an ambiguous effect.
func (c *hearing) resolve(ctx context.Context, in Intent, first []kernel.Command) error {
	l := c.desk.Ledger
	state, err := c.attempt(ctx, workorder.AttemptID(in.Target))
	if err != nil {
		return err
	}
	version, err := expected(in, state)
	if err != nil {
		return err
	}
	evidence := in.Flag("evidence")
	digest := canonical.Digest(evidence)
	var blobs []journal.Blob
	if !digest.Valid() {
		digest = canonical.Sum([]byte(evidence))
		blobs = append(blobs, journal.Blob{Digest: digest, MediaType: "text/plain", Bytes: []byte(evidence)})
	}
	switch in.Flag("disposition") {
	case kernel.ConfirmedAbsent, kernel.ConfirmedApplied, kernel.AbandonedUnknown:
	default:
		return malformed(fmt.Sprintf("%.40q is no disposition", in.Flag("disposition")),
			"write confirmed_absent, confirmed_applied or abandoned_unknown")
	}
	dispose := kernel.Dispose{Disposition: kernel.Disposition{
		Operation: operationKey(in), Disposition: in.Flag("disposition"), Evidence: digest, ExpectedVersion: version,
		Principal: c.accepted.Receipt.Principal, Reason: in.Flag("reason"),
	}}
	commands := append(first, dispose, kernel.Apply{Delivery: c.delivery(), Became: lifecycle.Of(kernel.AttemptMachine, in.Target)})
	_, err = l.Commit(ctx, c.turn(state.Fence(), commands, blobs...))
	return err
}

// resume lets a work order be attempted whose history may be incomplete.
func (c *hearing) resume(ctx context.Context, in Intent, first []kernel.Command) error {
	order, err := c.desk.Ledger.Order(ctx, workorder.ID(in.Target))
	if err != nil {
		return err
	}
	if _, err := expected(in, order); err != nil {
		return err
	}
	commands := append(first, kernel.Resume{Ingress: c.accepted.Digest, Resumed: kernel.Resumed{Principal: c.accepted.Receipt.Principal, Reason: in.Flag("reason")}},
		kernel.Apply{Delivery: c.delivery(), Became: order.OrderSubject()})
	_, err = c.desk.Ledger.CommitOrder(ctx, order, order.WorkOrder, c.turn(workorder.Fence{}, commands))
	return err
}

// raiseMode approves a work order for the mode that it asks for.
func (c *hearing) raiseMode(ctx context.Context, in Intent, first []kernel.Command) error {
	l := c.desk.Ledger
	order, err := l.Order(ctx, workorder.ID(in.Target))
	if err != nil {
		return err
	}
	version, err := expected(in, order)
	if err != nil {
		return err
	}
	mode := capability.Mode(in.Flag("to"))
	if !mode.Valid() {
		return malformed(fmt.Sprintf("%.40q is no mode", mode), "write shadow, proposal or production")
	}
	shown, err := c.attempt(ctx, workorder.AttemptID(in.Flag("evidence")))
	if err != nil {
		return err
	}
	evidence, err := kernel.EvidenceOf(shown)
	if err != nil {
		return err
	}
	commands := append(first, kernel.RaiseMode{Ingress: c.accepted.Digest, ModeRaised: kernel.ModeRaised{
		Mode: mode, Evidence: evidence, ExpectedVersion: version, Principal: c.accepted.Receipt.Principal, Reason: in.Flag("reason"),
	}}, kernel.Apply{Delivery: c.delivery(), Became: order.OrderSubject()})
	_, err = l.CommitOrder(ctx, order, order.WorkOrder, c.turn(workorder.Fence{}, commands))
	return err
}

// withdraw takes back an accepted proposal that was not sent yet.
func (c *hearing) withdraw(ctx context.Context, in Intent, first []kernel.Command) error {
	l := c.desk.Ledger
	state, err := c.attempt(ctx, workorder.AttemptID(in.Target))
	if err != nil {
		return err
	}
	if _, err := expected(in, state); err != nil {
		return err
	}
	commands := append(first, kernel.Withdraw{Purpose: in.Flag("purpose"), CancelRequested: kernel.CancelRequested{Reason: in.Flag("reason")}},
		kernel.Apply{Delivery: c.delivery(), Became: lifecycle.Of(kernel.OutboxMachine, in.Target+"/"+in.Flag("purpose"))})
	_, err = l.Commit(ctx, c.turn(state.Fence(), commands))
	return err
}

// reconcileClock has a person say from which reading on a clock counts again.
func (c *hearing) reconcileClock(ctx context.Context, in Intent, first []kernel.Command) error {
	clock, err := c.desk.Ledger.Clock(ctx, in.Target)
	if err != nil {
		return err
	}
	if clock.At.Version == 0 {
		return reason.New(reason.IDUnknown, "no clock of this name was ever read", in.Target, "this host's clock is called host")
	}
	from, err := number(in, "from")
	if err != nil {
		return err
	}
	version, err := number(in, "expected-version")
	if err != nil {
		return err
	}
	commands := append(first, kernel.ReconcileClock{Clock: clock, Ingress: c.accepted.Digest, ClockReconciliation: kernel.ClockReconciliation{
		From:            lifecycle.Observation{Domain: in.Target, UnixMilli: int64(from)},
		ExpectedVersion: version, Principal: c.accepted.Receipt.Principal, Reason: in.Flag("reason"),
	}}, kernel.Apply{Delivery: c.delivery(), Became: clock.Subject()})
	return c.desk.Ledger.CommitClock(ctx, clock, c.turn(workorder.Fence{}, commands))
}

func operationKey(in Intent) operation.Key { return operation.Key(in.Flag("operation-key")) }
