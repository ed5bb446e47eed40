package ingress

import (
	"context"
	"errors"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

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
