package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
)

// MachineKind is the kind of a transitions file.
const MachineKind = "writ.transitions.v1"

// ParseMachine reads one transitions file. It refuses one in which an entry leaves
// something out or names what is foreign, an edge stands twice, two entries say different
// things of one state, a state cannot be reached or is terminal in name only, or an
// effect class does not fit the receipts.
func ParseMachine(b []byte) (*Machine, error) {
	m := new(Machine)
	if err := canonical.Decode(b, m); err != nil {
		return nil, fmt.Errorf("transition registry: %w", err)
	}
	canon, err := canonical.Canonicalize(b)
	if err != nil {
		return nil, fmt.Errorf("transition registry: %w", err)
	}
	m.digest = canonical.Sum(canon)
	m.index, m.states = make(map[edge]*Transition), make(map[State]*Transition)
	if m.Kind != MachineKind || m.Name == "" || m.Version == 0 {
		return nil, fmt.Errorf("transition registry: %q version %d is no machine of the kind %s", m.Name, m.Version, MachineKind)
	}
	for i := range m.Transitions {
		if err := m.add(&m.Transitions[i]); err != nil {
			return nil, fmt.Errorf("transition registry %s: %w", m.Name, err)
		}
	}
	if err := m.closed(); err != nil {
		return nil, fmt.Errorf("transition registry %s: %w", m.Name, err)
	}
	return m, nil
}

// add checks one entry by itself and against those before it, and indexes it.
func (m *Machine) add(t *Transition) error {
	switch {
	case !strings.HasPrefix(string(t.Family), m.Name+"."):
		return fmt.Errorf("family %q belongs to another machine", t.Family)
	case len(t.From) == 0 || t.To == "" || t.Receipts == nil || t.Projector == 0:
		return fmt.Errorf("%q leaves out its source, target, receipts or projector", t.Family)
	case t.Cleanup != CleanupNone && t.Cleanup != CleanupDestroyOrRetain:
		return fmt.Errorf("%q leaves the unregistered obligation %q", t.Family, t.Cleanup)
	case !t.EffectClass.valid():
		return fmt.Errorf("%q permits the unregistered effect class %q", t.Family, t.EffectClass)
	}
	for i, name := range t.Receipts {
		if slices.Contains(t.Receipts[:i], name) {
			return fmt.Errorf("%q demands a %s twice", t.Family, name)
		}
		if !slices.ContainsFunc(m.Schemas, func(r ReceiptSchema) bool { return r.Name == name && r.Schema != "" }) {
			return fmt.Errorf("%q demands a %s, which has no schema", t.Family, name)
		}
	}
	if reports := slices.ContainsFunc(t.Receipts, ReportsOutcome); reports != (t.EffectClass != NoEffect) {
		return fmt.Errorf("%q permits the effect class %q, which does not fit its receipts %v", t.Family, t.EffectClass, t.Receipts)
	}
	if other := m.states[t.To]; other != nil && (other.Terminal != t.Terminal || other.Cleanup != t.Cleanup) {
		return fmt.Errorf("%q and %q say different things of state %q", other.Family, t.Family, t.To)
	}
	m.states[t.To] = t
	for _, from := range t.From {
		e := edge{from, t.Family}
		if m.index[e] != nil {
			return fmt.Errorf("%q leaves %q twice", t.Family, from)
		}
		m.index[e] = t
	}
	return nil
}

// closed checks the machine as a whole.
func (m *Machine) closed() error {
	left := map[State]bool{}
	for e, t := range m.index {
		switch {
		case e.from != "" && m.states[e.from] == nil:
			return fmt.Errorf("nothing reaches state %q", e.from)
		case m.Terminal(e.from) && t.To != e.from:
			return fmt.Errorf("%q reopens the terminal state %q", t.Family, e.from)
		case t.To != e.from:
			left[e.from] = true
		}
	}
	for s, t := range m.states {
		if !t.Terminal && !left[s] {
			return fmt.Errorf("nothing leaves state %q, which is not terminal", s)
		}
	}
	for _, r := range m.Schemas {
		if !slices.ContainsFunc(m.Transitions, func(t Transition) bool { return slices.Contains(t.Receipts, r.Name) }) {
			return fmt.Errorf("no entry demands a %s", r.Name)
		}
	}
	return nil
}

// ReportsOutcome reports whether a document of the name says what became of an operation:
// a receipt of one, or what asking about several came to.
func ReportsOutcome(name string) bool {
	switch name {
	case ReconciliationResult, EnvironmentReconciliation, OperationReceipt, RetentionReceipt:
		return true
	}
	return slices.ContainsFunc(operation.Kinds(), func(k operation.Kind) bool { return k.ReceiptName() == name })
}

// Documents that report outcomes and are no receipt of one kind of operation.
const (
	// ReconciliationResult is what asking about an execution came to,
	// EnvironmentReconciliation what asking about an environment did.
	ReconciliationResult      = "ReconciliationResult"
	EnvironmentReconciliation = "EnvironmentReconciliation"
	// OperationReceipt is the receipt of an operation of any kind.
	OperationReceipt = "OperationReceipt"
	// RetentionReceipt is the receipt of a removal under a policy that keeps.
	RetentionReceipt = "RetentionReceipt"
)
