package kernel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// OutboxMachine is the machine of what leaves after a result was accepted.
const OutboxMachine = "outbox"

// OutboxActor is the third part of the key of every operation of the outbox.
const OutboxActor = "outbox"

// MaxSendings bounds how often one proposal is sent without a person having looked.
const MaxSendings = 16

// Proposed is the body of outbox.proposed: one effect that is to leave.
type Proposed struct {
	Attempt     workorder.AttemptID   `json:"attempt"`
	Kind        operation.Kind        `json:"kind"`
	Class       operation.EffectClass `json:"effect_class"`
	Destination capability.Scope      `json:"destination"`
	// Content is the digest of the proposal itself.
	Content canonical.Digest `json:"content"`
}

// Proposal is what Accept records of one proposal that the attempt bundle orders.
type Proposal struct {
	Purpose string
	Proposed
}

// Sending is where one proposal of an attempt stands.
type Sending struct {
	Proposal
	State lifecycle.State
	// Tries counts the operations that it was begun with, Last is the newest of them.
	Tries int
	Last  operation.Key
	// Code and Why say why it was denied or withdrawn; they are empty otherwise.
	Code reason.Code
	Why  string
}

// Begun is the body of outbox.sending: how the effect was begun.
type Begun struct {
	Operation operation.Key `json:"operation"`
	// Place is the digest of where on this machine the destination is.
	Place canonical.Digest `json:"place"`
}

// proposed is what a state knows of a proposal beside where it stands.
type proposed struct {
	Proposed
	// places are those that it was sent to, in order.
	places []canonical.Digest
	code   reason.Code
	why    string
}

// Sendings returns every proposal of the attempt, sorted by purpose.
func (s State) Sendings() []Sending {
	var all []Sending
	for subject, p := range s.proposed {
		at := Sending{Proposal: Proposal{purposeOf(subject), p.Proposed}, State: s.standings[subject].State, Code: p.code, Why: p.why}
		for try := 1; ; try++ {
			key, err := sendingKey(s, at.Proposal, try)
			if _, ok := s.operations[key]; err != nil || !ok {
				break
			}
			at.Tries, at.Last = try, key
		}
		all = append(all, at)
	}
	slices.SortFunc(all, func(a, b Sending) int { return strings.Compare(a.Purpose, b.Purpose) })
	return all
}

// sending returns one proposal of the attempt.
func (s State) sending(purpose string) (Sending, error) {
	for _, at := range s.Sendings() {
		if at.Purpose == purpose {
			return at, nil
		}
	}
	return Sending{}, reason.New(reason.IDUnknown, fmt.Sprintf("the attempt proposes nothing for %.63q", purpose), string(s.Attempt),
		"list what it proposes with `writ show "+string(s.Attempt)+"`")
}

// outboxSubject is the subject of one proposal of an attempt.
func outboxSubject(attempt workorder.AttemptID, purpose string) lifecycle.Subject {
	return lifecycle.Of(OutboxMachine, string(attempt)+"/"+purpose)
}

func purposeOf(subject lifecycle.Subject) string {
	_, purpose, _ := strings.Cut(subject.ID(), "/")
	return purpose
}

// tryPurpose is the purpose of the operation that sends a proposal for the try-th time.
func tryPurpose(purpose string, try int) string {
	if try == 1 {
		return purpose
	}
	return purpose + ":" + strconv.Itoa(try)
}

func sendingKey(s State, p Proposal, try int) (operation.Key, error) {
	return operation.NewKey(s.Bundle.Bundle().Operations.Namespace, string(s.Attempt), OutboxActor, p.Kind, tryPurpose(p.Purpose, try))
}

// SendingIntent is the operation by which a proposal of the attempt is sent for the try-th
// time, counted from 1. Its collision digest covers the proposal, the bundle, and where on
// this machine the destination is, of which place is the digest.
func SendingIntent(s State, p Proposal, try int, place canonical.Digest) (operation.Intent, error) {
	if try < 1 {
		return operation.Intent{}, reason.New(reason.InternalBug, "sending is counted from 1", p.Purpose, "this is a fault of the caller: report it")
	}
	r, err := sendingRequest(s, p, try, place)
	if err != nil {
		return operation.Intent{}, err
	}
	return r.Intent(s.Bundle.Bundle().Operations.Namespace, "", p.Class, s.Resource)
}

func sendingRequest(s State, p Proposal, try int, place canonical.Digest) (protocol.Request, error) {
	return protocol.NewRequest(p.Kind, s.Bundle.Digest(), s.Attempt, OutboxActor, tryPurpose(p.Purpose, try),
		protocol.SendingParameters{Proposal: p.Content, Place: place})
}

// sent returns the request that a sending was recorded for.
func (s State) sent(in operation.Intent) (protocol.Request, error) {
	purpose, number, _ := strings.Cut(in.Key.Purpose(), ":")
	at, err := s.sending(purpose)
	if err != nil {
		return protocol.Request{}, err
	}
	try, places := 1, s.proposed[outboxSubject(s.Attempt, purpose)].places
	if number != "" {
		try, err = strconv.Atoi(number)
	}
	if err != nil || try < 1 || try > len(places) {
		return protocol.Request{}, reason.New(reason.IDUnknown, "the proposal was not sent so often", string(in.Key), "list what was sent with `writ show`")
	}
	return sendingRequest(s, at.Proposal, try, places[try-1])
}

// unsent reports whether a proposal has not come to an end.
func (k Kernel) unsent(s State) bool {
	for subject := range s.proposed {
		at := s.standings[subject]
		if m := k.transitions.Machine(OutboxMachine, at.Machine); m == nil || !m.Terminal(at.State) {
			return true
		}
	}
	return false
}

// propose records what is to leave, with the reduction that accepted the result: exactly
// what the attempt bundle orders, so that nothing of it can be lost and nothing added.
func (d *decision) propose(proposals []Proposal) error {
	ordered := d.state.Bundle.Bundle().Proposals
	if len(proposals) != len(ordered) {
		return wrongState(string(d.state.Attempt), fmt.Sprintf("the attempt bundle orders %d proposals, and the result comes with %d", len(ordered), len(proposals)))
	}
	for i, p := range proposals {
		o := ordered[i]
		if p.Purpose != o.Purpose || p.Kind != o.Effector || p.Destination.String() != o.Destination || p.Attempt != d.state.Attempt ||
			p.Class != d.kernel.classes.Of(p.Kind) || !p.Content.Valid() {
			return reason.New(reason.CapabilityNotGranted, fmt.Sprintf("the attempt bundle does not order the proposal %q as it stands", p.Purpose),
				string(d.state.Attempt), "name what is to leave in the work order; nothing can add to it")
		}
		if shadow := d.state.namespace() == shadowNamespace; shadow != (p.Kind == operation.ShadowPublish) || d.state.namespace() == observeNamespace {
			return reason.New(reason.OutboxNotAuthoritative, fmt.Sprintf("a result in the namespace %s reaches no %s", d.state.namespace(), p.Kind),
				string(d.state.Attempt), "nothing of it leaves")
		}
		g, err := report("EffectProposal", p.Proposed)
		if err != nil {
			return err
		}
		if err := d.emit(outboxSubject(d.state.Attempt, p.Purpose), "outbox.proposed", p.Proposed, g, d.known("ReductionReceipt")); err != nil {
			return err
		}
	}
	return nil
}

// Send asks for one sending of a proposal. What is durable afterwards is its intent, alone
// in its turn: it leaves what the fence contains.
type Send struct {
	Purpose string
	// Place is the digest of where on this machine the destination is.
	Place canonical.Digest
}

func (c Send) decide(d *decision) error {
	at, err := d.state.sending(c.Purpose)
	if err != nil {
		return err
	}
	if at.State != "proposed" {
		return wrongState(string(d.state.Attempt), fmt.Sprintf("the proposal %s is %s, and cannot be sent", at.Purpose, at.State))
	}
	if len(d.begun) > 0 {
		return notAlone(d.state.Attempt)
	}
	in, err := SendingIntent(d.state, at.Proposal, at.Tries+1, c.Place)
	if err != nil {
		return err
	}
	g, err := report("OperationIntent", in)
	if err != nil {
		return err
	}
	if err := d.emit(operationSubject(in.Key), "operation.intended", in, g); err != nil {
		return err
	}
	d.begun = append(d.begun, in)
	return d.emit(outboxSubject(d.state.Attempt, at.Purpose), "outbox.sending", Begun{in.Key, c.Place}, g)
}

func notAlone(attempt workorder.AttemptID) error {
	return wrongState(string(attempt), "what leaves begins in a turn of its own")
}

// left makes the transition of a proposal that an answer about its sending stands for.
func (d *decision) left(in operation.Intent, c Settle) error {
	purpose, _, _ := strings.Cut(in.Key.Purpose(), ":")
	at, err := d.state.sending(purpose)
	if err != nil {
		return err
	}
	var family lifecycle.Family
	switch knowledge := c.Outcome.Knowledge; {
	case at.State == "sending" && knowledge == operation.Applied:
		family = "outbox.sent"
	case at.State == "sending" && knowledge == operation.Unknown:
		family = "outbox.unknown"
	case at.State == "sending" && c.Outcome.Code.Transient():
		family = "outbox.deferred"
	case at.State == "sending":
		family = "outbox.refused"
	case at.State == "unknown" && knowledge == operation.Applied:
		family = "outbox.resolved_sent"
	case at.State == "unknown" && knowledge == operation.NotApplied:
		family = "outbox.resolved_absent"
	default:
		return nil
	}
	return d.emit(outboxSubject(d.state.Attempt, purpose), family, nil, guard("OperationReceipt", canonical.Sum(c.Receipt)))
}

// DenySending records that policy does not allow a proposal any more: a grant of yesterday
// is none of today's (C7).
type DenySending struct {
	Purpose string
	// Blocked names the decision of today and its reason.
	Blocked
}

func (c DenySending) decide(d *decision) error {
	at, err := d.state.sending(c.Purpose)
	if err != nil {
		return err
	}
	return d.emit(outboxSubject(d.state.Attempt, at.Purpose), "outbox.denied", c.Blocked, guard("PolicyDecision", c.Decision))
}

// Withdraw records that a person withdrew a proposal that was not sent yet.
type Withdraw struct {
	Purpose string
	CancelRequested
}

func (c Withdraw) decide(d *decision) error {
	at, err := d.state.sending(c.Purpose)
	if err != nil {
		return err
	}
	if at.State != "proposed" {
		return wrongState(string(d.state.Attempt), fmt.Sprintf("the proposal %s is %s, and cannot be withdrawn", at.Purpose, at.State))
	}
	g, err := report("CancellationRequest", c.CancelRequested)
	if err != nil {
		return err
	}
	return d.emit(outboxSubject(d.state.Attempt, at.Purpose), "outbox.withdrawn", c.CancelRequested, g)
}

// disposeSending settles a sending of which nobody could find out whether it took place.
// The attempt and its work order came to their result long before.
func (d *decision) disposeSending(o Operation, c Disposition, g lifecycle.Guard) error {
	purpose, _, _ := strings.Cut(o.Intent.Key.Purpose(), ":")
	at, err := d.state.sending(purpose)
	if err != nil {
		return err
	}
	if at.State != "unknown" || at.Last != o.Intent.Key {
		return wrongState(string(o.Intent.Key), "the sending does not wait for a person's disposition: its proposal is "+string(at.State))
	}
	if err := d.emit(operationSubject(o.Intent.Key), lifecycle.Family("operation."+c.Disposition), c, g); err != nil {
		return err
	}
	return d.emit(outboxSubject(d.state.Attempt, purpose), lifecycle.Family("outbox."+c.Disposition), c, g)
}
