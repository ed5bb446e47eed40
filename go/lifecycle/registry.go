package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// Cleanup is what the owner of a subject still owes once it is in a state.
type Cleanup string

// The registered obligations.
const (
	CleanupNone            Cleanup = "none"
	CleanupDestroyOrRetain Cleanup = "destroy_or_retain"
)

// Transition is one entry of a machine: every source state in From, on an event of
// Family that carries all Receipts, goes to To.
type Transition struct {
	From     []State  `json:"from"`
	Family   Family   `json:"family"`
	To       State    `json:"to"`
	Receipts []string `json:"receipts"`
	// EffectClass is the class of effect whose outcome the event may report: "none",
	// "any", or one of the operation.EffectClass values.
	EffectClass string  `json:"effect_class"`
	Terminal    bool    `json:"terminal"`
	Cleanup     Cleanup `json:"cleanup"`
	Projector   uint64  `json:"projector"`
	// Addition says why the entry exists although SPEC-014 does not list it.
	Addition string `json:"addition,omitempty"`
}

// Machine is one version of one machine, read from schemas/transitions.
type Machine struct {
	Kind    string `json:"kind"`
	Name    string `json:"machine"`
	Version uint64 `json:"version"`
	Summary string `json:"summary"`
	// Schemas holds every receipt and report that an entry demands.
	Schemas     []ReceiptSchema `json:"receipt_schemas"`
	Transitions []Transition    `json:"transitions"`

	digest canonical.Digest
	index  map[edge]*Transition
}

// ReceiptSchema says which schema a receipt or report has: a registered kind, or a
// definition within a schema file.
type ReceiptSchema struct {
	Name   string `json:"name"`
	Schema string `json:"schema"`
}

type edge struct {
	from   State
	family Family
}

// Digest is the digest of the machine's canonical JSON.
func (m *Machine) Digest() canonical.Digest { return m.digest }

// States returns every state that the machine can be in, sorted.
func (m *Machine) States() []State {
	var states []State
	for _, t := range m.Transitions {
		states = append(states, t.To)
	}
	slices.Sort(states)
	return slices.Compact(states)
}

// Terminal reports whether no entry but a late fact leaves state s.
func (m *Machine) Terminal(s State) bool {
	for _, t := range m.Transitions {
		if t.To == s {
			return t.Terminal
		}
	}
	return false
}

// ParseMachine reads one transitions file, and refuses one in which an edge stands
// twice, a state cannot be reached, a terminal state is left, or a name is foreign.
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
	m.index = make(map[edge]*Transition)
	reached := map[State]bool{"": true}
	terminal := map[State]bool{}
	for i := range m.Transitions {
		t := &m.Transitions[i]
		if !strings.HasPrefix(string(t.Family), m.Name+".") {
			return nil, fmt.Errorf("transition registry %s: family %q belongs to another machine", m.Name, t.Family)
		}
		if known, seen := terminal[t.To]; seen && known != t.Terminal {
			return nil, fmt.Errorf("transition registry %s: state %q is both terminal and not", m.Name, t.To)
		}
		for _, name := range t.Receipts {
			if !slices.ContainsFunc(m.Schemas, func(r ReceiptSchema) bool { return r.Name == name && r.Schema != "" }) {
				return nil, fmt.Errorf("transition registry %s: %q demands a %s, which has no schema", m.Name, t.Family, name)
			}
		}
		terminal[t.To] = t.Terminal
		reached[t.To] = true
		for _, from := range t.From {
			e := edge{from, t.Family}
			if m.index[e] != nil {
				return nil, fmt.Errorf("transition registry %s: %q leaves %q twice", m.Name, t.Family, from)
			}
			m.index[e] = t
		}
	}
	for e, t := range m.index {
		if !reached[e.from] {
			return nil, fmt.Errorf("transition registry %s: nothing reaches state %q", m.Name, e.from)
		}
		if terminal[e.from] && t.To != e.from {
			return nil, fmt.Errorf("transition registry %s: %q reopens the terminal state %q", m.Name, t.Family, e.from)
		}
	}
	return m, nil
}

// Registry holds every version of every machine. It is immutable.
type Registry struct {
	machines map[string]map[uint64]*Machine
	latest   map[string]*Machine
	digest   canonical.Digest
}

// NewRegistry reads the given transitions files. Two files for the same machine and
// version are refused.
func NewRegistry(files ...[]byte) (*Registry, error) {
	r := &Registry{machines: map[string]map[uint64]*Machine{}, latest: map[string]*Machine{}}
	var names []string
	for _, b := range files {
		m, err := ParseMachine(b)
		if err != nil {
			return nil, err
		}
		versions := r.machines[m.Name]
		if versions == nil {
			versions = map[uint64]*Machine{}
			r.machines[m.Name] = versions
		}
		if versions[m.Version] != nil {
			return nil, fmt.Errorf("transition registry: %s version %d stands twice", m.Name, m.Version)
		}
		versions[m.Version] = m
		if l := r.latest[m.Name]; l == nil || l.Version < m.Version {
			r.latest[m.Name] = m
		}
		names = append(names, fmt.Sprintf("%s.v%d %s", m.Name, m.Version, m.digest))
	}
	slices.Sort(names)
	r.digest = canonical.Sum([]byte(strings.Join(names, "\n")))
	return r, nil
}

// Digest covers every machine of the registry by its own digest.
func (r *Registry) Digest() canonical.Digest { return r.digest }

// Latest returns the version of a machine that new events are decided under, or nil.
func (r *Registry) Latest(machine string) *Machine { return r.latest[machine] }

// Machines returns the latest version of every machine, sorted by name.
func (r *Registry) Machines() []*Machine {
	var all []*Machine
	for _, m := range r.latest {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *Machine) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Apply returns the transition that e makes from state s, under the machine version
// that e names. It refuses, with a *reason.Refusal: an event of a machine or version
// that is not registered, an edge that the machine does not have, an event that
// lacks a receipt that the edge demands.
func (r *Registry) Apply(s State, e Event) (Transition, error) {
	name := e.Subject.Machine()
	m := r.machines[name][e.Machine]
	if m == nil {
		return Transition{}, reason.New(reason.KernelIllegalTransition,
			fmt.Sprintf("the transition registry has no machine %q of version %d", name, e.Machine), string(e.Subject),
			"open this state with the release that wrote it")
	}
	t := m.index[edge{s, e.Family}]
	if t == nil {
		return Transition{}, reason.New(reason.KernelIllegalTransition,
			fmt.Sprintf("%s cannot happen in state %q", e.Family, s), string(e.Subject),
			"see the registered transitions of "+name+" in schemas/transitions")
	}
	for _, name := range t.Receipts {
		if !slices.ContainsFunc(e.Guards, func(g Guard) bool { return g.Name == name && g.Digest.Valid() }) {
			return Transition{}, reason.New(reason.KernelMissingGuard,
				fmt.Sprintf("%s needs a %s and carries none", e.Family, name), string(e.Subject),
				"this is a fault of the caller: report it")
		}
	}
	return *t, nil
}
