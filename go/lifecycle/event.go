// Package lifecycle holds the transition registry and the machines that it drives
// (SPEC-014): what may happen to a subject, from which state, on whose receipt. It
// is pure data and lookup; nothing here decides or stores.
package lifecycle

import (
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
)

// Subject names one stream of events, as MACHINE/ID: "environment/att_0193…".
type Subject string

// Of makes the subject of the given machine and id.
func Of(machine, id string) Subject { return Subject(machine + "/" + id) }

// Machine returns the name of the machine that the subject's events drive.
func (s Subject) Machine() string {
	m, _, _ := strings.Cut(string(s), "/")
	return m
}

// ID returns what follows the machine's name: an id, or the key of an operation.
func (s Subject) ID() string {
	_, id, _ := strings.Cut(string(s), "/")
	return id
}

// Family is the kind of an event, MACHINE.WHAT: "environment.provisioned".
type Family string

// State is the name of a machine's state; the empty state is that of a subject
// without events.
type State string

// Guard binds a receipt or report, by the name that SPEC-014 gives it, to an event.
type Guard struct {
	Name   string           `json:"name"`
	Digest canonical.Digest `json:"digest"`
}

// Event is one fact about one subject. It carries no time and no actor: those
// belong to the batch that recorded it.
type Event struct {
	Subject Subject `json:"subject"`
	// Version counts the subject's events from 1, without gaps.
	Version uint64 `json:"version"`
	Family  Family `json:"family"`
	// Machine is the version of the transition registry entry in force when the
	// event was decided; replay uses that one for ever (L3).
	Machine uint64  `json:"machine_version"`
	Guards  []Guard `json:"guards,omitempty"`
	// Body is the family's own content in canonical JSON, at least {}.
	Body canonical.Raw `json:"body"`
}

// Split returns the machine of the family, and what happened to it.
func (f Family) Split() (machine, what string) {
	machine, what, _ = strings.Cut(string(f), ".")
	return machine, what
}
