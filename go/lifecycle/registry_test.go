package lifecycle_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/schemas"
)

// files are the shipped transitions files, by machine.
func files(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := fs.Glob(schemas.FS, "transitions/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		b, err := fs.ReadFile(schemas.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := lifecycle.ParseMachine(b)
		if err != nil {
			t.Fatal(err)
		}
		all[m.Name] = b
	}
	return all
}

func registry(t testing.TB) *lifecycle.Registry {
	t.Helper()
	var all [][]byte
	for _, b := range files(t) {
		all = append(all, b)
	}
	r, err := lifecycle.NewRegistry(all...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// event is one of the family that carries the receipts.
func event(m *lifecycle.Machine, family lifecycle.Family, receipts []string) lifecycle.Event {
	e := lifecycle.Event{Subject: lifecycle.Of(m.Name, "x"), Version: 1, Family: family, Machine: m.Version, Body: canonical.Raw("{}")}
	for _, name := range receipts {
		e.Guards = append(e.Guards, lifecycle.Guard{Name: name, Digest: canonical.Sum([]byte(name))})
	}
	return e
}

// all answers that every receipt that reports an outcome is that of an operation of this
// class; the empty class knows no operation at all.
type all operation.EffectClass

func (c all) Effect(_ lifecycle.Event, g lifecycle.Guard) (operation.EffectClass, bool) {
	if !lifecycle.ReportsOutcome(g.Name) {
		return "", true
	}
	return operation.EffectClass(c), c != ""
}

// classes are the effect classes, from the easiest ambiguity to the hardest.
func classes() []operation.EffectClass {
	return []operation.EffectClass{operation.ProviderIdempotent, operation.Reconcilable, operation.NonReconcilable}
}

// states are all that a subject of the machine can be in, with that before its first event.
func states(m *lifecycle.Machine) []lifecycle.State {
	return append([]lifecycle.State{""}, m.States()...)
}

// entry is the transition that the files register for an edge, or nil.
func entry(m *lifecycle.Machine, from lifecycle.State, family lifecycle.Family) *lifecycle.Transition {
	for i, tr := range m.Transitions {
		if tr.Family == family && slices.Contains(tr.From, from) {
			return &m.Transitions[i]
		}
	}
	return nil
}

// Every registered edge is taken with exactly its receipts, and every pair of state and
// family that is not registered is refused, whichever machine the family is of.
func TestEveryEdge(t *testing.T) {
	r := registry(t)
	families := map[lifecycle.Family]bool{}
	for _, m := range r.Machines() {
		for _, tr := range m.Transitions {
			families[tr.Family] = true
		}
	}
	for _, m := range r.Machines() {
		t.Run(m.Name, func(t *testing.T) {
			edges, refused := 0, 0
			for _, from := range states(m) {
				for family := range families {
					want := entry(m, from, family)
					if want == nil {
						refused++
						var receipts []string
						if i := slices.IndexFunc(m.Transitions, func(tr lifecycle.Transition) bool { return tr.Family == family }); i >= 0 {
							receipts = m.Transitions[i].Receipts
						}
						if got, err := r.Apply(from, event(m, family, receipts), nil); !reason.Is(err, reason.KernelIllegalTransition) {
							t.Errorf("%s from %q is not registered and leads to %q, %v", family, from, got.To, err)
						}
						continue
					}
					edges++
					got, err := r.Apply(from, event(m, family, want.Receipts), all(operation.ProviderIdempotent))
					if err != nil || got.To != want.To || got.Terminal != m.Terminal(want.To) || got.Cleanup != m.Obligation(want.To) {
						t.Errorf("%s from %q: %+v, %v", family, from, got, err)
					}
				}
			}
			if edges < len(m.Transitions) || refused == 0 {
				t.Errorf("only %d edges were taken and %d refused", edges, refused)
			}
		})
	}
}

// An event without one of its receipts, with a foreign one instead, with one more than
// its own, or with an invalid digest is refused.
func TestEveryGuard(t *testing.T) {
	r := registry(t)
	foreign := lifecycle.Guard{Name: "WeatherReport", Digest: canonical.Sum([]byte("foreign"))}
	for _, m := range r.Machines() {
		t.Run(m.Name, func(t *testing.T) {
			for _, tr := range m.Transitions {
				for _, from := range tr.From {
					refuse := func(code reason.Code, what string, change func([]lifecycle.Guard) []lifecycle.Guard) {
						t.Helper()
						e := event(m, tr.Family, tr.Receipts)
						e.Guards = change(e.Guards)
						if _, err := r.Apply(from, e, nil); !reason.Is(err, code) {
							t.Errorf("%s from %q with %s: %v, want %s", tr.Family, from, what, err, code)
						}
					}
					refuse(reason.KernelForeignGuard, "a foreign guard", func(gs []lifecycle.Guard) []lifecycle.Guard { return append(gs, foreign) })
					for i, name := range tr.Receipts {
						refuse(reason.KernelMissingGuard, "no "+name, func(gs []lifecycle.Guard) []lifecycle.Guard { return slices.Delete(gs, i, i+1) })
						refuse(reason.KernelMissingGuard, "another guard for its "+name, func(gs []lifecycle.Guard) []lifecycle.Guard { gs[i] = foreign; return gs })
						refuse(reason.KernelForeignGuard, "two of its "+name, func(gs []lifecycle.Guard) []lifecycle.Guard { return append(gs, gs[i]) })
						refuse(reason.KernelMissingGuard, "half a digest of its "+name, func(gs []lifecycle.Guard) []lifecycle.Guard {
							gs[i].Digest = gs[i].Digest[:40]
							return gs
						})
					}
				}
			}
		})
	}
}

// An event reports outcomes of the effect classes that its edge permits and of no harder
// one, and of no operation that nobody recorded.
func TestEveryEffectClass(t *testing.T) {
	r := registry(t)
	refused := 0
	for _, m := range r.Machines() {
		for _, tr := range m.Transitions {
			for _, from := range tr.From {
				e := event(m, tr.Family, tr.Receipts)
				if reports := slices.ContainsFunc(tr.Receipts, lifecycle.ReportsOutcome); reports == (tr.EffectClass == lifecycle.NoEffect) {
					t.Errorf("%s: the effect class %q does not fit %v", tr.Family, tr.EffectClass, tr.Receipts)
				}
				if tr.EffectClass == lifecycle.NoEffect {
					if _, err := r.Apply(from, e, all("")); err != nil {
						t.Errorf("%s reports no outcome and is refused for one: %v", tr.Family, err)
					}
					continue
				}
				if _, err := r.Apply(from, e, all("")); !reason.Is(err, reason.KernelForeignGuard) {
					t.Errorf("%s from %q on the receipt of no operation: %v", tr.Family, from, err)
				}
				permitted := slices.Index(classes(), operation.EffectClass(tr.EffectClass))
				for i, class := range classes() {
					_, err := r.Apply(from, e, all(class))
					if i <= permitted && err != nil || i > permitted && !reason.Is(err, reason.KernelEffectClass) {
						t.Errorf("%s from %q permits %s; of %s: %v", tr.Family, from, tr.EffectClass, class, err)
					}
					if i > permitted {
						refused++
					}
				}
			}
		}
	}
	if refused == 0 {
		t.Error("no edge refuses any class")
	}
}

// A state says of itself whether it is terminal and what is owed in it: all that lead
// there agree, only late facts leave a terminal state, and every other can be left.
func TestEveryState(t *testing.T) {
	for _, m := range registry(t).Machines() {
		t.Run(m.Name, func(t *testing.T) {
			if m.Terminal("") || m.Obligation("") != lifecycle.CleanupNone || m.Terminal("nowhere") || m.Obligation("nowhere") != lifecycle.CleanupNone {
				t.Error("what has no events is terminal, or owes something")
			}
			for _, s := range m.States() {
				left := false
				for _, tr := range m.Transitions {
					if tr.To == s && (tr.Terminal != m.Terminal(s) || tr.Cleanup != m.Obligation(s)) {
						t.Errorf("%s says terminal %v and %q of %q, the machine %v and %q", tr.Family, tr.Terminal, tr.Cleanup, s, m.Terminal(s), m.Obligation(s))
					}
					left = left || slices.Contains(tr.From, s) && tr.To != s
				}
				if left == m.Terminal(s) {
					t.Errorf("%q is terminal: %v, and is left: %v", s, m.Terminal(s), left)
				}
			}
		})
	}
}

// From the lease on an attempt and its execution owe the removal of their environment in
// every state, terminal ones included; the environment owes it until a receipt of its
// removal or retention, and nobody else owes anything (L5).
func TestCleanupObligation(t *testing.T) {
	r := registry(t)
	attempt := r.Latest("attempt")
	leased := map[lifecycle.State]bool{"leased": true}
	for range attempt.Transitions {
		for _, tr := range attempt.Transitions {
			if slices.ContainsFunc(tr.From, func(s lifecycle.State) bool { return leased[s] }) {
				leased[tr.To] = true
			}
		}
	}
	for _, m := range r.Machines() {
		for _, tr := range m.Transitions {
			want := lifecycle.CleanupNone
			switch {
			case m.Name == "execution", m.Name == "attempt" && leased[tr.To]:
				want = lifecycle.CleanupDestroyOrRetain
			case m.Name == "environment":
				if want = lifecycle.CleanupDestroyOrRetain; slices.Contains(tr.Receipts, "DestructionReceipt") || slices.Contains(tr.Receipts, "RetentionReceipt") {
					want = lifecycle.CleanupNone
				}
			}
			if got := m.Obligation(tr.To); got != want {
				t.Errorf("%s leads to %q with the obligation %q, want %q", tr.Family, tr.To, got, want)
			}
			if m.Name == "environment" && tr.Terminal != (want == lifecycle.CleanupNone) {
				t.Errorf("%s: an environment is at its end exactly when nothing is owed", tr.Family)
			}
		}
	}
}

func TestForeignMachineOrVersion(t *testing.T) {
	r := registry(t)
	e := event(r.Latest("environment"), "environment.attested", []string{"EnvironmentAttestation"})
	e.Machine = 2
	if _, err := r.Apply("provisioned", e, nil); !reason.Is(err, reason.KernelIllegalTransition) {
		t.Fatal(err)
	}
	e.Machine, e.Subject = 1, "weather/x"
	if _, err := r.Apply("provisioned", e, nil); !reason.Is(err, reason.KernelIllegalTransition) {
		t.Fatal(err)
	}
}

// A reader refuses what a newer projector than its own would be needed for.
func TestProjector(t *testing.T) {
	for _, m := range registry(t).Machines() {
		for _, tr := range m.Transitions {
			if err := tr.Projected(tr.Projector); err != nil {
				t.Errorf("%s: %v", tr.Family, err)
			}
			if err := tr.Projected(tr.Projector - 1); !reason.Is(err, reason.ProjectionNewerVersion) {
				t.Errorf("%s before its projector: %v", tr.Family, err)
			}
		}
	}
}

// A registry with any other byte of meaning has another digest: the one in a bundle pins
// every entry (L1).
func TestTheDigestPinsEveryEntry(t *testing.T) {
	whole, shipped := registry(t).Digest(), files(t)
	for changed := range shipped {
		var altered [][]byte
		for name, b := range shipped {
			if name == changed {
				b = bytes.Replace(b, []byte(`"projector": 1`), []byte(`"projector": 2`), 1)
			}
			altered = append(altered, b)
		}
		r, err := lifecycle.NewRegistry(altered...)
		if err != nil {
			t.Fatal(err)
		}
		if r.Digest() == whole {
			t.Errorf("a change in %s does not change the digest", changed)
		}
	}
}

// A second version of a machine does not change what the first one says.
func TestANewVersionLeavesTheOldOneAlone(t *testing.T) {
	for name, old := range files(t) {
		first, err := lifecycle.ParseMachine(old)
		if err != nil {
			t.Fatal(err)
		}
		// The second version demands one receipt more, wherever the first demands any.
		another := first.Schemas[0].Name
		newer := bytes.Replace(old, []byte(`"version": 1`), []byte(`"version": 2`), 1)
		for _, tr := range first.Transitions {
			if lifecycle.ReportsOutcome(another) || slices.Contains(tr.Receipts, another) || len(tr.Receipts) == 0 {
				continue
			}
			before := fmt.Sprintf(`"to": %q, "receipts": ["%s"]`, tr.To, strings.Join(tr.Receipts, `", "`))
			newer = bytes.ReplaceAll(newer, []byte(before), []byte(strings.TrimSuffix(before, "]")+`, "`+another+`"]`))
		}
		r, err := lifecycle.NewRegistry(old, newer)
		if err != nil {
			t.Fatal(err)
		}
		second := r.Latest(name)
		if second.Version != 2 || r.Machine(name, 1).Digest() != first.Digest() || r.Machine(name, 3) != nil {
			t.Fatalf("%s: new events are decided under version %d", name, second.Version)
		}
		stricter := 0
		for i, tr := range first.Transitions {
			for _, from := range tr.From {
				e := event(first, tr.Family, tr.Receipts)
				if got, err := r.Apply(from, e, nil); err != nil || got.To != tr.To {
					t.Errorf("%s from %q: an old event is replayed to %q, %v", tr.Family, from, got.To, err)
				}
				if e.Machine = 2; len(second.Transitions[i].Receipts) > len(tr.Receipts) {
					stricter++
					if _, err := r.Apply(from, e, nil); !reason.Is(err, reason.KernelMissingGuard) {
						t.Errorf("%s from %q: a new event is not held to the new version: %v", tr.Family, from, err)
					}
				}
			}
		}
		room := slices.ContainsFunc(first.Transitions, func(tr lifecycle.Transition) bool { return !slices.Contains(tr.Receipts, another) })
		if stricter == 0 && room && !lifecycle.ReportsOutcome(another) {
			t.Errorf("%s: the second version demands nothing more", name)
		}
	}
}

// The receipt of every kind of operation can make each transition that demands it, and a
// kernel is refused under classes with which it could not.
func TestEffectClassesFit(t *testing.T) {
	raw, err := schemas.FS.ReadFile("effect-classes.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	r := registry(t)
	classes := func(b []byte) *operation.Classes {
		t.Helper()
		c, err := operation.ParseClasses(b)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if err := r.Fits(classes(raw)); err != nil {
		t.Error(err)
	}
	harder := bytes.Replace(raw, []byte(`"operation": "start", "effect_class": "reconcilable"`), []byte(`"operation": "start", "effect_class": "non_reconcilable"`), 1)
	if err := r.Fits(classes(harder)); err == nil {
		t.Error("a start that nobody can ask about fits an edge that permits none")
	}
}
