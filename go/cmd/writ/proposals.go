package main

import (
	"cmp"
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/dispatcher"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// proposal is what is said of one effect that was to leave.
type proposal struct {
	Purpose     string           `json:"purpose"`
	Kind        operation.Kind   `json:"kind"`
	Destination capability.Scope `json:"destination"`
	State       lifecycle.State  `json:"state"`
	// Name is what stands at the destination, empty unless it does.
	Name string `json:"name,omitempty"`
	// Operation is the key of its newest sending, empty before the first.
	Operation operation.Key `json:"operation,omitempty"`
	// Waits says what it waits for, Why why it did not leave; Code is the reason of either.
	Waits string      `json:"waits,omitempty"`
	Why   string      `json:"why,omitempty"`
	Code  reason.Code `json:"code,omitempty"`
}

// sentProposal is a proposal with the attempt whose result it is of.
type sentProposal struct {
	Attempt workorder.AttemptID `json:"attempt"`
	proposal
}

// newProposals says where every proposal of an attempt stands, with what was found when
// they were sent.
func newProposals(s kernel.State, sent map[string]dispatcher.Sent) []proposal {
	all := []proposal{}
	for _, at := range s.Sendings() {
		one := dispatcher.Sent{Attempt: s.Attempt, Sending: at, Waits: sent[at.Purpose].Waits, Code: sent[at.Purpose].Code}
		if o, ok := s.Operation(at.Last); ok {
			one.Outcome = o.Record.Outcome
		}
		all = append(all, newProposal(one))
	}
	return all
}

func newProposal(s dispatcher.Sent) proposal {
	p := proposal{
		Purpose: s.Purpose, Kind: s.Kind, Destination: s.Destination, State: s.State, Operation: s.Last,
		Waits: s.Waits, Why: s.Why, Code: s.Code,
	}
	if p.Why == "" && s.Outcome.Knowledge != operation.Applied {
		p.Why = s.Outcome.Detail
	}
	if p.Code == "" && s.State != "sent" {
		p.Code = cmp.Or(s.Sending.Code, s.Outcome.Code)
	}
	var branch protocol.BranchResult
	var published protocol.PublicationResult
	switch {
	case s.State != "sent":
	case canonical.Decode(s.Outcome.Result, &branch) == nil:
		p.Name = branch.Branch
	case canonical.Decode(s.Outcome.Result, &published) == nil:
		p.Name = published.Name
	}
	return p
}

// lines says where a proposal stands.
func (p proposal) lines(s style) []string {
	where := p.Destination.String()
	if p.Kind == operation.ShadowPublish {
		where = "the shadow namespace"
	}
	state := s.bad(string(p.State))
	if p.State == "sent" {
		state = s.good(string(p.State))
	}
	lines := []string{joined(" ", fmt.Sprintf("%s: %s to %s,", p.Purpose, p.Kind, where), state, p.Name)}
	if p.Waits != "" {
		lines = append(lines, "waits for "+plain(p.Waits))
	} else if p.Why != "" && p.State != "sent" {
		lines = append(lines, plain(p.Why))
	}
	if p.Code != "" && p.State != "sent" {
		lines = append(lines, s.faint(string(p.Code)))
	}
	return lines
}

func proposalLines(all []proposal, s style) []string {
	var lines []string
	for _, p := range all {
		lines = append(lines, p.lines(s)...)
	}
	return lines
}

// unsent is the exit status of an attempt that succeeded and of which something that was to
// leave did not: work that was ordered and is not done is no success.
func unsent(all []proposal) error {
	for _, p := range all {
		switch p.State {
		case "sent", "withdrawn":
		case "unknown":
			return concluded{reason.ExitUnknown}
		case "denied":
			return concluded{reason.ExitDenied}
		default:
			return concluded{p.Code.Exit()}
		}
	}
	return nil
}
