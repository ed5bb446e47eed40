package kernel

import (
	"maps"

	"github.com/writ-runtime/writ/go/lifecycle"
)

// Draft is a decision in the making: who makes it sees where its commands lead before it adds
// more. Each is decided once, and a draft comes to what Decide of all its commands does.
type Draft struct {
	d *decision
	// refused is the first refusal: what the refused command had begun stands in d.
	refused error
}

// Draft begins a decision on a state, which it leaves alone.
func (k Kernel) Draft(s State) *Draft { return &Draft{d: &decision{kernel: k, state: s.clone()}} }

// Add decides the commands in order, each on the state that the one before left. The error is
// a *reason.Refusal, and then that of everything that is asked of the draft afterwards.
func (t *Draft) Add(commands ...Command) error {
	for _, c := range commands {
		if t.refused != nil {
			break
		}
		t.refused = c.decide(t.d)
	}
	return t.refused
}

// Next says what the attempt needs done after the commands so far.
func (t *Draft) Next() (Plan, error) {
	if t.refused != nil {
		return Plan{}, t.refused
	}
	return t.d.kernel.Next(t.d.state)
}

// State is the state after the commands so far. Preconditions: none was refused.
func (t *Draft) State() State { return t.d.state.clone() }

// Decision is what the commands come to. Nothing can be added afterwards.
func (t *Draft) Decision() (Decision, error) {
	d := t.d
	if t.refused == nil {
		t.refused = d.closeBudget()
	}
	if t.refused != nil {
		return Decision{}, t.refused
	}
	// Commands, clocks and accounts are in the journal. They are no part of where the attempt stands.
	maps.DeleteFunc(d.state.standings, func(s lifecycle.Subject, _ Standing) bool {
		return s.Machine() == CommandMachine || s.Machine() == ClockMachine || s.Machine() == AccountMachine
	})
	return Decision{Events: d.events, State: d.state, Begun: d.begun, Replayed: d.replayed, Rests: d.rests, Moves: d.moves}, nil
}
