package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// Cleanup is what the owner of a subject still owes once it is in a state.
type Cleanup string

// The registered obligations.
const (
	CleanupNone            Cleanup = "none"
	CleanupDestroyOrRetain Cleanup = "destroy_or_retain"
)

// Permitted is the greatest effect class whose outcome an event may rest on: one of the
// operation.EffectClass values, or NoEffect.
type Permitted string

// NoEffect is what an entry permits whose events report no operation's outcome.
const NoEffect Permitted = "none"

// Covers reports whether an effect of the class is permitted: whatever may settle a harder
// ambiguity may settle an easier one.
func (p Permitted) Covers(class operation.EffectClass) bool {
	return hardness(class) > 0 && hardness(class) <= hardness(operation.EffectClass(p))
}

func (p Permitted) valid() bool { return p == NoEffect || operation.EffectClass(p).Valid() }

// Transition is one entry of a machine: every source state in From, on an event of
// Family that carries exactly the Receipts, goes to To.
type Transition struct {
	From     []State  `json:"from"`
	Family   Family   `json:"family"`
	To       State    `json:"to"`
	Receipts []string `json:"receipts"`
	// EffectClass is NoEffect exactly where no receipt reports an outcome.
	EffectClass Permitted `json:"effect_class"`
	Terminal    bool      `json:"terminal"`
	// Cleanup is what is owed in To, for every entry that leads there the same.
	Cleanup Cleanup `json:"cleanup"`
	// Projector is the version of the projections that know what the event means.
	Projector uint64 `json:"projector"`
	// Addition says why the entry exists although SPEC-014 does not list it.
	Addition string `json:"addition,omitempty"`
}

// Projected refuses an event whose projector is newer than the version that a reader
// knows: what it does not understand it must not leave out.
func (t Transition) Projected(known uint64) error {
	if t.Projector <= known {
		return nil
	}
	return reason.New(reason.ProjectionNewerVersion,
		fmt.Sprintf("%s needs version %d of the projection, this release has version %d", t.Family, t.Projector, known), string(t.Family),
		"read the state folder with the release that wrote it")
}

// hardness orders the effect classes by how hard a lost answer is to settle.
func hardness(c operation.EffectClass) int {
	switch c {
	case operation.ProviderIdempotent:
		return 1
	case operation.Reconcilable:
		return 2
	case operation.NonReconcilable:
		return 3
	}
	return 0
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
	// states holds an entry that leads to each state: what it says of the state, all do.
	states map[State]*Transition
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
func (m *Machine) States() []State { return slices.Sorted(maps.Keys(m.states)) }

// Terminal reports whether no entry but a late fact leaves state s.
func (m *Machine) Terminal(s State) bool {
	t := m.states[s]
	return t != nil && t.Terminal
}

// Obligation is what the owner of a subject in state s still owes. A subject without
// events owes nothing.
func (m *Machine) Obligation(s State) Cleanup {
	if t := m.states[s]; t != nil {
		return t.Cleanup
	}
	return CleanupNone
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
	if err := r.continuous(); err != nil {
		return nil, err
	}
	slices.Sort(names)
	r.digest = canonical.Sum([]byte(strings.Join(names, "\n")))
	return r, nil
}

// continuous refuses a newer version of a machine that has no place for a subject which
// an older one leaves in the middle.
func (r *Registry) continuous() error {
	for name, versions := range r.machines {
		for _, old := range versions {
			for _, s := range old.States() {
				if newest := r.latest[name]; !old.Terminal(s) && newest.states[s] == nil {
					return fmt.Errorf("transition registry: %s version %d has no state %q, in which version %d leaves subjects", name, newest.Version, s, old.Version)
				}
			}
		}
	}
	return nil
}

// Fits refuses a registry of effect classes under which the receipt of an operation could
// not make a transition that demands it: its outcome would be a fact that is refused.
func (r *Registry) Fits(classes *operation.Classes) error {
	for _, m := range r.Machines() {
		for _, t := range m.Transitions {
			for _, kind := range operation.Kinds() {
				if class := classes.Of(kind); slices.Contains(t.Receipts, kind.ReceiptName()) && !t.EffectClass.Covers(class) {
					return fmt.Errorf("transition registry %s: %q permits %s effects at most, and %s is %s", m.Name, t.Family, t.EffectClass, kind, class)
				}
			}
		}
	}
	return nil
}

// Digest covers every machine of the registry by its own digest.
func (r *Registry) Digest() canonical.Digest { return r.digest }

// Latest returns the version of a machine that new events are decided under, or nil.
func (r *Registry) Latest(machine string) *Machine { return r.latest[machine] }

// Machine returns one version of a machine, or nil.
func (r *Registry) Machine(name string, version uint64) *Machine { return r.machines[name][version] }

// Machines returns the latest version of every machine, sorted by name.
func (r *Registry) Machines() []*Machine {
	var all []*Machine
	for _, m := range r.latest {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *Machine) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Effects finds the operations whose outcomes events report.
type Effects interface {
	// Effect returns the greatest class of the operations whose outcome the guard of the
	// event reports: empty if it reports that of none, and false if it should be an
	// operation's receipt and no such operation is recorded.
	Effect(e Event, g Guard) (operation.EffectClass, bool)
}

// Apply returns the transition that e makes from state s, under the machine version
// that e names. It refuses, with a *reason.Refusal: an event of a machine or version
// that is not registered, an edge that the machine does not have, an event that lacks a
// receipt that the edge demands or carries another, an outcome of an effect class that
// the edge does not permit. A reader of what was decided before, which knows no
// operations, passes nil for effects and leaves the last of these to the kernel.
func (r *Registry) Apply(s State, e Event, effects Effects) (Transition, error) {
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
	if err := t.guarded(e); err != nil {
		return Transition{}, err
	}
	if t.EffectClass != NoEffect && effects != nil {
		if err := t.permit(e, effects); err != nil {
			return Transition{}, err
		}
	}
	return *t, nil
}

// guarded holds the guards of e against the receipts that t demands: each once, and no
// other.
func (t *Transition) guarded(e Event) error {
	for _, name := range t.Receipts {
		if !slices.ContainsFunc(e.Guards, func(g Guard) bool { return g.Name == name && g.Digest.Valid() }) {
			return reason.New(reason.KernelMissingGuard,
				fmt.Sprintf("%s needs a %s and carries none", e.Family, name), string(e.Subject),
				"this is a fault of the caller: report it")
		}
	}
	if len(e.Guards) != len(t.Receipts) {
		return reason.New(reason.KernelForeignGuard,
			fmt.Sprintf("%s rests on %v and carries %d guards", e.Family, t.Receipts, len(e.Guards)), string(e.Subject),
			"this is a fault of the caller: report it")
	}
	return nil
}

// permit holds the outcomes that e reports against the effect class of t.
func (t *Transition) permit(e Event, effects Effects) error {
	for _, g := range e.Guards {
		class, known := effects.Effect(e, g)
		switch {
		case !known:
			return reason.New(reason.KernelForeignGuard,
				fmt.Sprintf("%s rests on a %s that no recorded operation has", e.Family, g.Name), string(e.Subject),
				"this is a fault of the caller: report it")
		case class != "" && !t.EffectClass.Covers(class):
			return reason.New(reason.KernelEffectClass,
				fmt.Sprintf("%s may rest on the outcome of a %s effect at most, and this one is %s", e.Family, t.EffectClass, class), string(e.Subject),
				"an ambiguity that nobody can ask about waits for a person's disposition")
		}
	}
	return nil
}
