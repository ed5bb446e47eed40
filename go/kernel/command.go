package kernel

import (
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
)

// CommandMachine is the machine of commands that come through ingress.
const CommandMachine = "command"

// Delivery is a command as it stands in the journal: its delivery's id and, where it has
// events already, how far it has come. A later event of it expects exactly that.
type Delivery struct {
	ID string
	At Standing
}

// subject is the subject of the command, with its standing put into the decision.
func (c Delivery) subject(d *decision) lifecycle.Subject {
	s := lifecycle.Of(CommandMachine, c.ID)
	d.stand(s, c.At)
	return s
}

// Receive records that a delivery came in, before anything of it is read.
type Receive struct {
	Delivery
	// Receipt is the digest of its ingress receipt.
	Receipt canonical.Digest
}

func (c Receive) decide(d *decision) error {
	return d.emit(c.subject(d), "command.received", nil, guard("IngressReceipt", c.Receipt))
}

// Authorize records what a delivery asks for, and whether its sender may have it.
type Authorize struct {
	Delivery
	Authorization
}

// Authorization is the body of command.decided.
type Authorization struct {
	Verb   string `json:"verb"`
	Target string `json:"target"`
	// Flags stand in the order of the grammar.
	Flags []Flag `json:"flags"`
	// Principal is who the channel knows the sender to be.
	Principal string      `json:"principal"`
	Allowed   bool        `json:"allowed"`
	Code      reason.Code `json:"code,omitempty"`
}

// Flag is one flag of a command.
type Flag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (c Authorize) decide(d *decision) error {
	g, err := report("AuthorizationDecision", c.Authorization)
	if err != nil {
		return err
	}
	return d.emit(c.subject(d), "command.decided", c.Authorization, g)
}

// Apply closes a command with the event that it became: the newest one of the subject, in
// the same decision. The subject of the command itself stands for one that changes nothing
// else.
type Apply struct {
	Delivery
	Became lifecycle.Subject
}

// CommandOutcome is the body of command.applied.
type CommandOutcome struct {
	Subject lifecycle.Subject `json:"subject"`
	Version uint64            `json:"version"`
}

func (c Apply) decide(d *decision) error {
	subject := c.subject(d)
	o := CommandOutcome{Subject: c.Became, Version: d.state.standings[c.Became].Version}
	g, err := report("CommandOutcome", o)
	if err != nil {
		return err
	}
	return d.emit(subject, "command.applied", o, g)
}

// Reject closes a command that is not carried out.
type Reject struct {
	Delivery
	// As is command.malformed, command.rejected or command.conflict.
	As lifecycle.Family
	Failure
}

func (c Reject) decide(d *decision) error {
	g, err := report("FailureReport", c.Failure)
	if err != nil {
		return err
	}
	return d.emit(c.subject(d), c.As, c.Failure, g)
}

// Quarantine records that other bytes came under the id of a delivery. What was not
// applied yet never will be; what was, stays a fact.
type Quarantine struct {
	Delivery
	First, Other canonical.Digest
}

// Quarantined is the body of command.quarantined and command.disputed.
type Quarantined struct {
	Delivery string           `json:"delivery"`
	First    canonical.Digest `json:"first"`
	Other    canonical.Digest `json:"other"`
}

func (c Quarantine) decide(d *decision) error {
	q := Quarantined{Delivery: c.ID, First: c.First, Other: c.Other}
	g, err := report("QuarantineReport", q)
	if err != nil {
		return err
	}
	family := lifecycle.Family("command.disputed")
	if c.At.State == "received" || c.At.State == "decided" {
		family = "command.quarantined"
	}
	return d.emit(c.subject(d), family, q, g)
}
