package ingress

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Desk takes commands and submissions: it records each delivery before it reads it, decides on it, and
// applies it in one transaction with what it leads to.
type Desk struct {
	Gate    Gate
	Ledger  *ledger.Ledger
	Journal journal.Reader
	// Running hands a request over to the supervisor of an attempt that is under way in
	// this process. It returns false if there is none, and else once the supervisor has
	// recorded the commands, or could not.
	Running func(ctx context.Context, attempt workorder.AttemptID, commands []kernel.Command, blobs []journal.Blob) (bool, error)

	mu sync.Mutex
	// hearing are the deliveries that are being heard; a channel is closed when its is over.
	hearing map[string]chan struct{}
}

// Answer is what a delivery came to.
type Answer struct {
	Delivery string `json:"delivery"`
	// State is applied, rejected, conflict or quarantined.
	State lifecycle.State `json:"state"`
	// Replayed says that it had been decided before.
	Replayed bool   `json:"replayed"`
	Verb     string `json:"verb,omitempty"`
	// Became names the event that an applied command became.
	Became *kernel.CommandOutcome `json:"became"`
	// Failure says why a command was not applied.
	Failure *kernel.Failure `json:"failure"`
}

// Refusal is why the command was not applied, nil for one that was.
func (a Answer) Refusal() error {
	if a.Failure == nil {
		return nil
	}
	return reason.New(a.Failure.Code, a.Failure.Detail, a.Delivery, a.Failure.Remedy)
}

// Handle takes one delivery from a principal that the channel has authenticated. Exact
// redelivery answers what the first one came to. The error says that the delivery could
// not be recorded, or may not be.
func (k *Desk) Handle(ctx context.Context, principal string, d Delivery) (Answer, error) {
	c, over, err := k.receive(ctx, principal, d)
	if err != nil {
		return Answer{}, err
	}
	defer over()
	if c.answer.Failure != nil || c.answer.Replayed {
		return c.answer, nil
	}
	return c.decide(context.WithoutCancel(ctx))
}

// Wake takes one wake, and records that it came; the tick that follows carries it out, and
// Resume then says so. Whoever sends it again before that causes no more than that tick.
func (k *Desk) Wake(ctx context.Context, principal string, d Delivery) (Answer, error) {
	c, over, err := k.receive(ctx, principal, d)
	if err != nil {
		return Answer{}, err
	}
	defer over()
	c.answer.Verb = Wake
	return c.answer, nil
}

// receive makes a delivery durable before anything of it is read, and quarantines one whose
// bytes have changed. The answer is that of one that was decided before.
func (k *Desk) receive(ctx context.Context, principal string, d Delivery) (c *hearing, over func(), err error) {
	accepted, err := k.Gate.Accept(principal, d)
	if err != nil {
		return nil, nil, err
	}
	if len(d.Content) > MaxContent {
		return nil, nil, reason.New(reason.IngressTooLarge, fmt.Sprintf("a command has at most %d bytes, this one has %d", MaxContent, len(d.Content)), d.ID, "say it in fewer")
	}
	if over, err = k.hear(ctx, d.ID); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			over()
		}
	}()
	ctx = context.WithoutCancel(ctx)
	c = &hearing{desk: k, accepted: accepted, content: d.Content}
	if err := c.load(ctx); err != nil {
		return nil, nil, err
	}
	if c.at.Version == 0 {
		return c, over, c.receive(ctx)
	}
	if c.receipt != accepted.Digest {
		c.answer, err = c.quarantine(ctx)
		return c, over, err
	}
	c.answer.Replayed = c.at.State != "received" && c.at.State != "decided"
	return c, over, nil
}

// hear waits until nobody else hears a delivery of the id, and keeps others waiting until the
// returned function is called: what the first comes to is what a repeat is answered.
func (k *Desk) hear(ctx context.Context, id string) (over func(), err error) {
	for {
		k.mu.Lock()
		other, busy := k.hearing[id]
		if !busy {
			mine := make(chan struct{})
			if k.hearing == nil {
				k.hearing = map[string]chan struct{}{}
			}
			k.hearing[id] = mine
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.hearing, id)
				close(mine)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, reason.New(reason.IngressUnanswered, "the same delivery is being heard, and came to nothing yet", id, "send it again under the same id").Because(ctx.Err())
		}
	}
}

// Submit takes the submission of a work order. record is to record it in one turn that
// around makes of the command that submits it: with the delivery, so that neither is there
// without the other. Exact redelivery answers what the first one came to.
func (k *Desk) Submit(ctx context.Context, principal string, d Delivery, record func(Accepted, Around) error) (Answer, error) {
	accepted, err := k.Gate.Accept(principal, d)
	if err != nil {
		return Answer{}, err
	}
	over, err := k.hear(ctx, d.ID)
	if err != nil {
		return Answer{}, err
	}
	defer over()
	ctx = context.WithoutCancel(ctx)
	c := &hearing{desk: k, accepted: accepted, content: d.Content}
	if err := c.load(ctx); err != nil {
		return Answer{}, err
	}
	switch {
	case c.at.Version > 0 && c.receipt != accepted.Digest:
		return c.quarantine(ctx)
	case c.at.Version > 0:
		c.answer.Replayed = true
		return c.answer, nil
	}
	around := func(submit kernel.Submit) []kernel.Command {
		new := kernel.Delivery{ID: d.ID}
		return []kernel.Command{
			kernel.Receive{Delivery: new, Receipt: accepted.Digest},
			kernel.Authorize{Delivery: new, Authorization: kernel.Authorization{
				Verb: string(d.Verb), Target: string(submit.ID), Flags: []kernel.Flag{}, Principal: principal, Allowed: true,
			}},
			submit,
			kernel.Apply{Delivery: new, Became: lifecycle.Of(kernel.WorkOrderMachine, string(submit.ID))},
		}
	}
	if err := record(accepted, around); err != nil {
		return Answer{}, err
	}
	err = c.load(ctx)
	return c.answer, err
}

// Around is the turn that a submission is recorded in.
type Around func(submit kernel.Submit) []kernel.Command

// Resume decides on what was received and not decided, as if it came again: whatever it
// expects is checked now. Wakes are left alone unless a tick has carried them out.
func (k *Desk) Resume(ctx context.Context, deliveries []string, ticked bool) ([]Answer, error) {
	var answers []Answer
	for _, id := range deliveries {
		d, principal, err := k.received(ctx, id)
		if err != nil {
			return answers, fmt.Errorf("resume %s: %w", id, err)
		}
		if in, err := Parse(string(d.Content)); err == nil && (in.Verb == Wake) != ticked {
			continue
		}
		answer, err := k.Handle(ctx, principal, d)
		var doubt *ledger.InDoubtError
		if _, refused := reason.As(err); err != nil && (!refused || errors.As(err, &doubt) || reason.Is(err, reason.JournalHalted)) {
			return answers, fmt.Errorf("resume %s: %w", id, err)
		}
		if err != nil {
			continue // One that may not be heard any more, as of another owner, keeps nobody else.
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// received reads a delivery back from what was recorded of it.
func (k *Desk) received(ctx context.Context, id string) (Delivery, string, error) {
	events, err := k.Journal.Events(ctx, lifecycle.Of(kernel.CommandMachine, id))
	if err != nil {
		return Delivery{}, "", err
	}
	if len(events) == 0 || len(events[0].Guards) != 1 {
		return Delivery{}, "", reason.New(reason.IDUnknown, "no delivery has this id", id, "run `writ verify`: an index names it")
	}
	raw, err := k.Journal.Blob(ctx, events[0].Guards[0].Digest)
	if err != nil {
		return Delivery{}, "", err
	}
	var r Receipt
	if err := canonical.Decode(raw, &r); err != nil {
		return Delivery{}, "", err
	}
	content, err := k.Journal.Blob(ctx, r.Content)
	return Delivery{ID: r.ID, Channel: r.Channel, Verb: r.Verb, Content: content}, r.Principal, err
}

// hearing is one delivery that is being heard.
type hearing struct {
	desk     *Desk
	accepted Accepted
	content  []byte

	at      kernel.Standing
	receipt canonical.Digest
	answer  Answer
}

// load finds how far the delivery has come.
func (c *hearing) load(ctx context.Context) error {
	c.at, c.answer = kernel.Standing{}, Answer{Delivery: c.accepted.Receipt.ID}
	events, err := c.desk.Journal.Events(ctx, lifecycle.Of(kernel.CommandMachine, c.accepted.Receipt.ID))
	if err != nil {
		return err
	}
	for _, e := range events {
		t, err := c.desk.Ledger.Kernel().Transitions().Apply(c.at.State, e.Event, nil)
		if err != nil {
			return err
		}
		c.at = kernel.Standing{State: t.To, Version: e.Version, Machine: e.Machine}
		switch e.Family {
		case "command.received":
			c.receipt = e.Guards[0].Digest
		case "command.decided":
			var a kernel.Authorization
			if err := canonical.Decode(e.Body, &a); err != nil {
				return err
			}
			c.answer.Verb = a.Verb
		case "command.applied":
			c.answer.Became = new(kernel.CommandOutcome)
			if err := canonical.Decode(e.Body, c.answer.Became); err != nil {
				return err
			}
		case "command.malformed", "command.rejected", "command.conflict":
			c.answer.Failure = new(kernel.Failure)
			if err := canonical.Decode(e.Body, c.answer.Failure); err != nil {
				return err
			}
		case "command.quarantined":
			c.answer.Failure = quarantined()
		}
	}
	c.answer.State = c.at.State
	return nil
}

func (c *hearing) delivery() kernel.Delivery {
	return kernel.Delivery{ID: c.accepted.Receipt.ID, At: c.at}
}

// receive makes the delivery durable, with its exact bytes.
func (c *hearing) receive(ctx context.Context) error {
	if err := c.alone(ctx, kernel.Receive{Delivery: c.delivery(), Receipt: c.accepted.Digest}); err != nil {
		return err
	}
	return c.load(ctx)
}

// alone commits commands on the delivery and nothing else.
func (c *hearing) alone(ctx context.Context, commands ...kernel.Command) error {
	_, err := c.desk.Ledger.CommitDelivery(ctx, c.delivery(), c.turn(workorder.Fence{}, commands))
	return err
}

func (c *hearing) turn(f workorder.Fence, commands []kernel.Command, blobs ...journal.Blob) ledger.Turn {
	blobs = append(blobs, c.accepted.Blob, journal.Blob{Digest: canonical.Sum(c.content), MediaType: "text/plain", Bytes: c.content})
	return ledger.Turn{Fence: f, Commands: commands, Blobs: blobs, Actor: c.accepted.Receipt.Principal, Cause: c.accepted.Receipt.ID}
}

// quarantine records other bytes under the same id.
func (c *hearing) quarantine(ctx context.Context) (Answer, error) {
	if c.at.State != "quarantined" {
		q := kernel.Quarantine{Delivery: c.delivery(), First: c.receipt, Other: c.accepted.Digest}
		if err := c.alone(ctx, q); err != nil {
			return Answer{}, err
		}
	}
	return Answer{Delivery: c.accepted.Receipt.ID, State: "quarantined", Failure: quarantined()}, nil
}

func quarantined() *kernel.Failure {
	return &kernel.Failure{
		Conclusion: workorder.Failed, Code: reason.IngressConflict, Detail: "other bytes, or another sender, came under the id of this delivery",
		Remedy: "send each command under an id of its own",
	}
}

// decide reads the delivery, decides on it, and applies it.
func (c *hearing) decide(ctx context.Context) (Answer, error) {
	in, err := Parse(string(c.content))
	if err != nil {
		return c.reject(ctx, "command.malformed", err)
	}
	c.answer.Verb = in.Verb
	decided := kernel.Authorize{Delivery: c.delivery(), Authorization: kernel.Authorization{
		Verb: in.Verb, Target: in.Target, Flags: in.Flags, Principal: c.accepted.Receipt.Principal, Allowed: true,
	}}
	var first []kernel.Command
	if c.at.State == "received" {
		first = append(first, decided)
	}
	err = c.apply(ctx, in, first)
	refusal, ok := reason.As(err)
	var doubt *ledger.InDoubtError
	switch {
	case err == nil:
		if err := c.load(ctx); err != nil {
			return Answer{}, err
		}
		return c.answer, nil
	case errors.As(err, &doubt) || !ok || reason.Is(err, reason.JournalHalted):
		return Answer{}, err
	case refusal.Code == reason.IngressStale || refusal.Code == reason.JournalConflict || refusal.Code == reason.KernelStaleFence:
		return c.reject(ctx, "command.conflict", err, first...)
	}
	return c.reject(ctx, "command.rejected", err, first...)
}

func (c *hearing) reject(ctx context.Context, as lifecycle.Family, why error, first ...kernel.Command) (Answer, error) {
	refusal, ok := reason.As(why)
	if !ok {
		return Answer{}, why
	}
	f := kernel.Failure{Conclusion: workorder.Failed, Code: refusal.Code, Detail: refusal.What, Remedy: refusal.Remedy}
	if err := c.alone(ctx, append(first, kernel.Reject{Delivery: c.delivery(), As: as, Failure: f})...); err != nil {
		return Answer{}, err
	}
	err := c.load(ctx)
	return c.answer, err
}

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
