package kernel

import (
	"fmt"

	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
)

// Kernel decides under one set of registries. It holds no state.
type Kernel struct {
	transitions *lifecycle.Registry
	classes     *operation.Classes
	facts       attestation.Table
}

// New returns a kernel under the given registries: of transitions, of effect classes
// and of the facts that an attestation must hold.
func New(transitions *lifecycle.Registry, classes *operation.Classes, facts attestation.Table) Kernel {
	return Kernel{transitions: transitions, classes: classes, facts: facts}
}

// Transitions is the registry that drives Reduce.
func (k Kernel) Transitions() *lifecycle.Registry { return k.transitions }

// Facts is the registry of what an attestation must hold.
func (k Kernel) Facts() attestation.Table { return k.facts }

// Classes is the effect-class registry.
func (k Kernel) Classes() *operation.Classes { return k.classes }

// Command is something to be decided. The set is closed: see the types of this
// package with a decide method.
type Command interface {
	decide(d *decision) error
}

// Decision is what one or more commands come to.
type Decision struct {
	// Events are to be appended together, in this order.
	Events []lifecycle.Event
	// State is the state after them.
	State State
	// Begun are the intents that these events make durable.
	Begun []operation.Intent
	// Replayed are the records of operations that were asked for again.
	Replayed []operation.Record
	// Rests are subjects that it moves nothing of and rests on: it counts only while each stands
	// at the given event.
	Rests []Rest
	// Moves are what it moves of an account, all of the same one. Where there are any, it is
	// complete only with the events that Moved adds.
	Moves []Move
}

// Rest is a subject, and how many events it had when something was decided by it.
type Rest struct {
	Subject lifecycle.Subject
	Version uint64
}

// Decide decides the commands in order, each on the state that the one before left.
// It returns events over several subjects, or a *reason.Refusal and nothing.
func (k Kernel) Decide(s State, commands ...Command) (Decision, error) {
	d := k.Draft(s)
	if err := d.Add(commands...); err != nil {
		return Decision{}, err
	}
	return d.Decision()
}

// decision collects the events of one Draft, and the state as they change it.
type decision struct {
	kernel   Kernel
	state    State
	events   []lifecycle.Event
	begun    []operation.Intent
	replayed []operation.Record
	rests    []Rest
	moves    []Move
}

// emit appends one event of a subject and reduces it at once, so that a decision can
// never leave the registry. A nil body is {}.
func (d *decision) emit(subject lifecycle.Subject, family lifecycle.Family, body any, guards ...lifecycle.Guard) error {
	raw := canonical.Raw("{}")
	if body != nil {
		b, err := canonical.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", family, subject, err)
		}
		raw = b
	}
	m := d.kernel.transitions.Latest(subject.Machine())
	if m == nil {
		return fmt.Errorf("no registered machine drives %s", subject)
	}
	e := lifecycle.Event{
		Subject: subject, Version: d.state.standings[subject].Version + 1, Family: family,
		Machine: m.Version, Guards: guards, Body: raw,
	}
	if err := d.kernel.reduce(&d.state, e, body); err != nil {
		return err
	}
	d.events = append(d.events, e)
	return nil
}

// of emits an event of the attempt's own subject of the family's machine.
func (d *decision) of(family lifecycle.Family, body any, guards ...lifecycle.Guard) error {
	machine, _ := family.Split()
	return d.emit(d.state.subject(machine), family, body, guards...)
}

// stand puts where a subject stands into the decision, unless an event of the same
// decision has moved it.
func (d *decision) stand(s lifecycle.Subject, at Standing) {
	if _, moved := d.state.standings[s]; !moved && at.Version > 0 {
		d.state.standings[s] = at
	}
}

// guard names a receipt or report by its digest.
func guard(name string, digest canonical.Digest) lifecycle.Guard {
	return lifecycle.Guard{Name: name, Digest: digest}
}

// known returns the guard of evidence that the attempt has already gathered. Where
// there is none the guard is invalid, and the registry refuses the event.
func (d *decision) known(name string) lifecycle.Guard { return guard(name, d.state.evidence[name]) }

// report makes the guard of a document that stands in the event's own body.
func report(name string, document any) (lifecycle.Guard, error) {
	digest, err := canonical.DigestOf(document)
	if err != nil {
		return lifecycle.Guard{}, fmt.Errorf("%s: %w", name, err)
	}
	return guard(name, digest), nil
}

// in reports whether a machine of the attempt is in one of the states.
func (d *decision) in(machine string, states ...lifecycle.State) bool {
	now := d.state.Of(machine).State
	for _, s := range states {
		if s == now {
			return true
		}
	}
	return false
}
