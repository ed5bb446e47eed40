package kernel

import (
	"fmt"

	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// projector is the version of the transitions whose meaning State holds.
const projector = 1

// effects finds the operations whose outcomes an event reports among those of a state.
type effects struct{ *State }

// Effect returns the class of the operation that the guard is the receipt of. What asking
// about an environment or an execution came to stands for all its operations that are
// without an answer, and so for the hardest of them.
func (s effects) Effect(e lifecycle.Event, g lifecycle.Guard) (operation.EffectClass, bool) {
	switch g.Name {
	case lifecycle.EnvironmentReconciliation:
		return s.hardestOpen(operation.Kind.OfEnvironment), true
	case lifecycle.ReconciliationResult:
		return s.hardestOpen(func(k operation.Kind) bool { return !k.OfEnvironment() && !k.OfOutbox() }), true
	}
	if isOperation(e.Subject) {
		o, ok := s.operations[operation.Key(e.Subject.ID())]
		return o.Intent.Class, ok
	}
	for _, o := range s.operations {
		if o.receipt == g.Digest {
			return o.Intent.Class, g.Name == lifecycle.OperationReceipt || g.Name == protocol.ReceiptName(o.Intent.Kind, o.Record.Outcome)
		}
	}
	return "", !lifecycle.ReportsOutcome(g.Name)
}

// hardestOpen returns the hardest class of the operations without a known outcome whose
// kind is asked for, empty if there are none.
func (s *State) hardestOpen(asked func(operation.Kind) bool) operation.EffectClass {
	var hardest operation.EffectClass
	for _, o := range s.operations {
		if !o.Settled() && asked(o.Intent.Kind) && !lifecycle.Permitted(hardest).Covers(o.Intent.Class) {
			hardest = o.Intent.Class
		}
	}
	return hardest
}

// ambiguous reports whether an effect of the attempt is without a known outcome and of a
// class that nobody can ask about: whatever else is found, that stays unknown (O6).
func (s *State) ambiguous() bool {
	return s.hardestOpen(func(k operation.Kind) bool { return !k.OfOutbox() }) == operation.NonReconcilable
}

// owes reports whether something of a closed attempt must still be destroyed or kept: the
// attempt or its execution owes that by its state, and the environment has not settled
// it. An environment that nobody asked for has nothing to settle.
func (k Kernel) owes(s State) bool {
	owed := k.obligation(AttemptMachine, s) != lifecycle.CleanupNone || k.obligation(ExecutionMachine, s) != lifecycle.CleanupNone
	return owed && k.obligation(EnvironmentMachine, s) != lifecycle.CleanupNone
}

// unburdened refuses an event by which an attempt or its execution would owe nothing while
// its environment still stands (L5).
func (k Kernel) unburdened(s *State, e lifecycle.Event, t lifecycle.Transition) error {
	machine := e.Subject.Machine()
	if t.Cleanup != lifecycle.CleanupNone || machine != AttemptMachine && machine != ExecutionMachine ||
		k.obligation(EnvironmentMachine, *s) == lifecycle.CleanupNone {
		return nil
	}
	return reason.New(reason.KernelUnmetObligation,
		fmt.Sprintf("%s would owe nothing any more while its environment is %s", machine, s.Of(EnvironmentMachine).State), string(e.Subject),
		"destroy or keep the environment first")
}

// obligation is what a machine of the attempt owes where it stands.
func (k Kernel) obligation(machine string, s State) lifecycle.Cleanup {
	at := s.Of(machine)
	m := k.transitions.Machine(machine, at.Machine)
	if m == nil {
		return lifecycle.CleanupNone
	}
	return m.Obligation(at.State)
}
