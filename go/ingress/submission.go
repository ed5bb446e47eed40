package ingress

import (
	"context"

	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
)

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
