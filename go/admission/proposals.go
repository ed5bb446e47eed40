package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// resolveProposals fills in what is to leave once the result was accepted, and refuses what
// could never leave: before anything runs, not after.
func (a *Admission) resolveProposals(_ context.Context, o *order) error {
	mode, declared := capability.Mode(o.order.Mode), []string{}
	for _, p := range o.order.Outputs.Paths {
		declared = append(declared, p.Path)
	}
	for i, p := range o.order.Proposals {
		at := func(field string, err error) error { return o.at(fmt.Sprintf("/proposals/%d%s", i, field), err) }
		if mode == capability.Observe {
			return at("", reason.New(reason.OutboxNotAuthoritative, "in mode observe nothing leaves", "", "ask for mode shadow, to see what would leave, or for mode proposal"))
		}
		if slices.ContainsFunc(o.proposals, func(other workorder.Proposal) bool { return other.Purpose == p.Purpose }) {
			return at("/purpose", reason.New(reason.OutboxProposalInvalid, fmt.Sprintf("two proposals have the purpose %q", p.Purpose), "", "give each a purpose of its own"))
		}
		for j, f := range p.Files {
			if !slices.Contains(declared, f) {
				return at(fmt.Sprintf("/files/%d", j), reason.New(reason.OutboxProposalInvalid, fmt.Sprintf("%q is not among the declared outputs", f), "",
					"name it as outputs.paths does: "+strings.Join(declared, ", ")))
			}
		}
		if len(p.Files) == 0 {
			p.Files = declared
		}
		if p.Title == "" {
			p.Title = o.order.Title
		}
		if err := outbox.CheckOrdered(p); err != nil {
			return at("", err)
		}
		if mode == capability.Shadow {
			// The same order shows in mode shadow what would leave, and reaches nothing.
			p.Effector, p.Destination, p.Repository, p.Base = operation.ShadowPublish, string(capability.NoScope), "", ""
		} else if err := a.Outbox.Reaches(p); err != nil {
			if o.recorded != nil {
				return err // What this host has may come back; the order is as it was.
			}
			return at("/destination", err)
		}
		o.proposals = append(o.proposals, p)
	}
	slices.SortFunc(o.proposals, func(a, b workorder.Proposal) int { return strings.Compare(a.Purpose, b.Purpose) })
	return nil
}
