// Package kernel decides. It is pure: the journal is its only memory, and time
// enters as recorded observations. Decide turns a command into events or a refusal,
// Reduce turns an event into state, Next says what an attempt needs done.
package kernel

import (
	"maps"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
)

// The machines that the kernel drives.
const (
	WorkOrderMachine   = "work_order"
	ReservationMachine = "reservation"
	AttemptMachine     = "attempt"
	ExecutionMachine   = "execution"
	EnvironmentMachine = "environment"
	OperationMachine   = "operation"
)

// Standing is where one subject stands: its state, and the number of its events.
type Standing struct {
	State   lifecycle.State
	Version uint64
	// Machine is the version of the machine that the newest event was decided under: it
	// says what the state means.
	Machine uint64
}

// State is everything that the journal says about one attempt and its work order.
// It is a value: Decide and Reduce return a new one and leave theirs alone.
type State struct {
	WorkOrder   workorder.ID
	Attempt     workorder.AttemptID
	Reservation workorder.ReservationID

	standings map[lifecycle.Subject]Standing
	// evidence holds the digest of the newest receipt or report of each name.
	evidence   map[string]canonical.Digest
	operations map[operation.Key]Operation
	// proposed are the effects that are to leave, nil for most attempts.
	proposed map[lifecycle.Subject]proposed

	Order    Submitted
	Reserved workorder.Reservation
	// Attempts counts the attempts that were reserved for the work order so far, this one
	// included.
	Attempts int64
	// Last is the newest attempt that was reserved for the work order.
	Last workorder.AttemptID
	// Retry says what the work order waits for before its next attempt; nil when it does
	// not wait for one.
	Retry *RetryWait
	// Budget is what became of the budget that was reserved; nil where nothing is counted.
	Budget *Budget
	// Bundle is nil until the attempt is activated.
	Bundle *attemptbundle.Compiled
	// Lease is the newest lease of the attempt; zero before it is activated.
	Lease Lease
	// Generation is the fence's generation, 0 before the reservation.
	Generation uint64
	// FencedBy is why the fence was raised last, empty before.
	FencedBy string
	// Resource is the name that the environment's processes and folders bear.
	Resource string
	// CancelReason is set once a cancellation was requested.
	CancelReason string
	// Result is nil until the attempt came to something.
	Result *workorder.Result
	// Raised is how a person approved the work order for its mode, nil if nobody did.
	Raised *ModeRaised
	// Doubted says that the environment ended unknown: something of it may have been alive.
	Doubted bool
	// Retained is what is kept of the environment, nil where nothing ever was.
	Retained *Retained
	// Dispositions are those that people made of the attempt's ambiguities, in their order.
	Dispositions []Disposition
	// Failure is the first failure, loss or doubt that was recorded, nil if there is none.
	Failure *Failure
	// Blocked says why the work order waits; empty when it does not.
	Blocked string
	// Checkpoint is the newest validated checkpoint of the work order, whichever attempt made
	// it; nil before one was.
	Checkpoint *Checkpoint
}

// Operation is one operation of the attempt.
type Operation struct {
	Intent operation.Intent
	State  lifecycle.State
	// Record is complete once the operation is settled.
	Record operation.Record
	// ElapsedMicros is how long the effect took.
	ElapsedMicros int64
	// Judged says that the reducer has judged the checkpoint that the operation came to.
	Judged bool
	// Late counts answers that came after it was settled, and further answers of unknown.
	Late int

	// receipt is the digest of the record's receipt.
	receipt canonical.Digest
}

// Settled reports whether the operation's outcome is known.
func (o Operation) Settled() bool { return o.State == "applied" || o.State == "not_applied" }

// Of returns where the attempt's subject of a machine stands.
func (s State) Of(machine string) Standing { return s.standings[s.subject(machine)] }

// Standing returns where any subject of the state stands.
func (s State) Standing(subject lifecycle.Subject) Standing { return s.standings[subject] }

// Events counts the events of every subject of the state.
func (s State) Events() uint64 {
	var n uint64
	for _, at := range s.standings {
		n += at.Version
	}
	return n
}

// Subjects returns every subject of the state that has events, sorted.
func (s State) Subjects() []lifecycle.Subject { return slices.Sorted(maps.Keys(s.standings)) }

// Evidence returns the digest of the newest receipt or report of the given name.
func (s State) Evidence(name string) canonical.Digest { return s.evidence[name] }

// Decision is the digest of the policy decision on the attempt; empty before one was made.
func (s State) Decision() canonical.Digest {
	if s.Bundle != nil {
		return s.Bundle.Bundle().Policy.Decision
	}
	return s.evidence["PolicyDecision"]
}

// Operation returns the operation of a key, and whether it was ever intended.
func (s State) Operation(key operation.Key) (Operation, bool) {
	o, ok := s.operations[key]
	return o, ok
}

// Operations returns every operation, in the order of their keys.
func (s State) Operations() []Operation {
	keys := slices.Sorted(maps.Keys(s.operations))
	all := make([]Operation, 0, len(keys))
	for _, k := range keys {
		all = append(all, s.operations[k])
	}
	return all
}

// Open returns the intents without a known outcome, in the order of their keys.
func (s State) Open() []operation.Intent {
	var open []operation.Intent
	for _, o := range s.Operations() {
		if !o.Settled() {
			open = append(open, o.Intent)
		}
	}
	return open
}

// Fence returns the fence under which the attempt may be acted for now. Its phase
// follows from the attempt's state, so that no flag can disagree with it.
func (s State) Fence() workorder.Fence {
	phase := workorder.Closing
	switch s.Of(AttemptMachine).State {
	case "reserved", "leased", "running":
		phase = workorder.Live
	}
	return workorder.Fence{Attempt: s.Attempt, Generation: s.Generation, Phase: phase}
}

// OrderSubject is the subject of the attempt's work order.
func (s State) OrderSubject() lifecycle.Subject { return s.subject(WorkOrderMachine) }

// subject returns the attempt's own subject of a machine.
func (s State) subject(machine string) lifecycle.Subject {
	switch machine {
	case WorkOrderMachine:
		return lifecycle.Of(machine, string(s.WorkOrder))
	case ReservationMachine, BudgetMachine:
		return lifecycle.Of(machine, string(s.Reservation))
	}
	return lifecycle.Of(machine, string(s.Attempt))
}

// Clone returns a state that Advance changes without touching s.
func (s State) Clone() State { return s.clone() }

// clone returns a state whose maps can be written without touching s.
func (s State) clone() State {
	s.standings = maps.Clone(s.standings)
	s.evidence = maps.Clone(s.evidence)
	s.operations = maps.Clone(s.operations)
	s.proposed = maps.Clone(s.proposed)
	s.Dispositions = slices.Clip(s.Dispositions)
	if s.standings == nil {
		s.standings = map[lifecycle.Subject]Standing{}
		s.evidence = map[string]canonical.Digest{}
		s.operations = map[operation.Key]Operation{}
	}
	return s
}

// Submitted is the body of work_order.submitted.
type Submitted struct {
	// Order is the document as it was submitted, in canonical JSON.
	Order  canonical.Raw    `json:"order"`
	Digest canonical.Digest `json:"digest"`
	// Origin is the absolute folder that input sources are relative to. It is
	// private to this state folder and never part of a bundle.
	Origin string                 `json:"origin"`
	Inputs protocol.InputManifest `json:"inputs"`
	// Schema is the output schema's bytes, empty if the order names none.
	Schema canonical.Digest `json:"schema,omitempty"`
}

// isOperation reports whether the subject is an operation's.
func isOperation(s lifecycle.Subject) bool { return strings.HasPrefix(string(s), OperationMachine+"/") }
