package capability_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
)

func TestModesAreALattice(t *testing.T) {
	mode := rapid.SampledFrom(append(capability.Modes(), "", "root"))
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := mode.Draw(t, "a"), mode.Draw(t, "b"), mode.Draw(t, "c")
		if a.Valid() && b.Valid() && (a.Meet(b) != b.Meet(a) || a.Join(b) != b.Join(a)) {
			t.Fatal("not commutative")
		}
		if a.Meet(b).Meet(c) != a.Meet(b.Meet(c)) && a.Valid() && b.Valid() && c.Valid() {
			t.Fatal("not associative")
		}
		if a.Valid() && b.Valid() && (a.Meet(a.Join(b)) != a || a.Join(a.Meet(b)) != a) {
			t.Fatal("not absorbing")
		}
		if !a.Valid() && (a.Meet(b).Valid() || a.AtLeast(b) || b.AtLeast(a) || a.Ceiling() != capability.NoEffects) {
			t.Fatalf("%q counts as a mode", a)
		}
		if a.Valid() && b.Valid() && a.AtLeast(b) != a.Ceiling().Permits(b.Ceiling()) {
			t.Fatal("ceilings and modes are ordered differently")
		}
	})
}

func TestModesInOrder(t *testing.T) {
	modes := capability.Modes()
	for i, m := range modes {
		for j, n := range modes {
			if m.AtLeast(n) != (i >= j) {
				t.Errorf("%s at least %s", m, n)
			}
		}
		if m.Ceiling().Candidate() != (i >= 2) {
			t.Errorf("%s: candidates", m)
		}
		if got, err := capability.ParseMode(string(m)); err != nil || got != m {
			t.Errorf("%s: %v", m, err)
		}
	}
	for _, text := range []string{"", "Observe", "observe ", "merge"} {
		if _, err := capability.ParseMode(text); !reason.Is(err, reason.CapabilityUnknownMode) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if capability.NoEffects.Permits(capability.NoEffects) || capability.OperationalEffects.Permits("odd") {
		t.Error("what is no ceiling is permitted")
	}
}
