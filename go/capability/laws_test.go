package capability_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/capability"
)

// The generators draw from few names, so that scopes meet, nest and miss each other often.

func scopes(kind capability.ScopeKind) *rapid.Generator[capability.Scope] {
	return rapid.Custom(func(t *rapid.T) capability.Scope {
		var text string
		switch kind {
		case capability.HostScope:
			text = rapid.SampledFrom([]string{"**", "a.example", "b.example"}).Draw(t, "host") + ":" +
				rapid.SampledFrom([]string{"**", "80", "443", "80,443", "22,443"}).Draw(t, "ports")
		case capability.ToolScope:
			text = rapid.SampledFrom([]string{"**", "a", "b"}).Draw(t, "tool")
		case capability.NoScope:
			s, _ := capability.ParseScope("none")
			return s
		default:
			text = rapid.SampledFrom([]string{"**", "a", "a/**", "a/b", "a/b/**", "a/b/c", "a/c", "b", "b/**", "ab/**"}).Draw(t, "path")
		}
		s, err := capability.ParseScope(string(kind) + ":" + text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func grants() *rapid.Generator[capability.Grant] {
	limit := rapid.SampledFrom([]int64{0, 0, 1, 2, 5})
	return rapid.Custom(func(t *rapid.T) capability.Grant {
		g := capability.Grant{Limits: capability.Limits{Calls: limit.Draw(t, "calls"), Bytes: limit.Draw(t, "bytes")}}
		switch rapid.IntRange(0, 3).Draw(t, "action") {
		case 0:
			g.Action, g.Resource = "input.read", scopes(capability.InputScope).Draw(t, "resource")
		case 1:
			g.Action, g.Resource = "network.connect", scopes(capability.HostScope).Draw(t, "resource")
		case 2:
			g.Action, g.Resource = "model.call", scopes(capability.ModelScope).Draw(t, "resource")
			g.Destination = scopes(capability.HostScope).Draw(t, "destination")
		case 3:
			g.Action, g.Resource = "tool.run", scopes(capability.ToolScope).Draw(t, "resource")
		}
		return g
	})
}

func sets() *rapid.Generator[capability.Set] {
	return rapid.Custom(func(t *rapid.T) capability.Set {
		return capability.NewSet(rapid.SliceOfN(grants(), 0, 5).Draw(t, "grants")...)
	})
}

func same(t *rapid.T, law string, a, b capability.Set) {
	if len(a) == 0 && len(b) == 0 {
		return
	}
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("%s: %v is not %v", law, a, b)
	}
}

func TestIntersectionLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := sets().Draw(t, "a"), sets().Draw(t, "b"), sets().Draw(t, "c")
		same(t, "commutative", a.Intersect(b), b.Intersect(a))
		same(t, "associative", a.Intersect(b).Intersect(c), a.Intersect(b.Intersect(c)))
		same(t, "idempotent", a.Intersect(a), a)
		same(t, "empty absorbs", a.Intersect(nil), nil)
		same(t, "distributive", a.Intersect(b.Union(c)), a.Intersect(b).Union(a.Intersect(c)))
		if !a.Contains(a.Intersect(b)) {
			t.Fatalf("%v ∩ %v widens", a, b)
		}
		if wider := a.Union(c); !wider.Intersect(b).Contains(a.Intersect(b)) {
			t.Fatalf("not monotone: %v ∪ %v", a, c)
		}
		same(t, "a layer only narrows", a.Intersect(b).Intersect(c), a.Intersect(b).Intersect(c).Intersect(b))
	})
}

func TestNormalFormDoesNotDependOnOrderOrRepetition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(grants(), 0, 6).Draw(t, "grants")
		shuffled := rapid.Permutation(append(append([]capability.Grant{}, list...), list...)).Draw(t, "shuffled")
		same(t, "normal form", capability.NewSet(list...), capability.NewSet(shuffled...))
		same(t, "stable", capability.NewSet(list...), capability.NewSet(capability.NewSet(list...)...))
	})
}

// TestIntersectionIsPointwise holds sets against what they mean: single uses, one host and port, one path.
func TestIntersectionIsPointwise(t *testing.T) {
	point := rapid.Custom(func(t *rapid.T) capability.Grant {
		parse := func(text string) capability.Scope {
			s, err := capability.ParseScope(text)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		number := rapid.Int64Range(1, 6)
		g := capability.Grant{Limits: capability.Limits{Calls: number.Draw(t, "nth"), Bytes: number.Draw(t, "bytes")}}
		host := rapid.SampledFrom([]string{"host:a.example:80", "host:a.example:443", "host:b.example:22", "host:c.example:443"})
		path := rapid.SampledFrom([]string{"a", "a/b", "a/b/c", "a/b/c/d", "a/c", "b", "b/x", "ab/x", "z"}).Draw(t, "path")
		switch rapid.IntRange(0, 3).Draw(t, "action") {
		case 0:
			g.Action, g.Resource = "input.read", parse("input:"+path)
		case 1:
			g.Action, g.Resource = "network.connect", parse(host.Draw(t, "host"))
		case 2:
			g.Action, g.Resource, g.Destination = "model.call", parse("model:"+path), parse(host.Draw(t, "host"))
		case 3:
			g.Action, g.Resource = "tool.run", parse("tool:"+rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tool"))
		}
		return g
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, p := sets().Draw(t, "a"), sets().Draw(t, "b"), point.Draw(t, "p")
		if got, want := a.Intersect(b).Covers(p), a.Covers(p) && b.Covers(p); got != want {
			t.Fatalf("%v ∩ %v covers %v: %v, want %v", a, b, p, got, want)
		}
		if got, want := a.Union(b).Covers(p), a.Covers(p) || b.Covers(p); got != want {
			t.Fatalf("%v ∪ %v covers %v: %v, want %v", a, b, p, got, want)
		}
		if a.Without(b).Covers(p) && (b.Covers(p) || !a.Covers(p)) {
			t.Fatalf("%v without %v covers %v", a, b, p)
		}
	})
}

func TestListsOfPortsAreWhatTheyList(t *testing.T) {
	connect := func(scope string) capability.Grant {
		s, err := capability.ParseScope(scope)
		if err != nil {
			t.Fatal(err)
		}
		return capability.Grant{Action: "network.connect", Resource: s}
	}
	listed := capability.NewSet(connect("host:a.example:80,443"))
	apart := capability.NewSet(connect("host:a.example:443"), connect("host:a.example:80"))
	if !reflect.DeepEqual(listed, apart) {
		t.Errorf("%v is not %v", listed, apart)
	}
	if !apart.Covers(connect("host:a.example:80,443")) || apart.Covers(connect("host:a.example:22,80")) {
		t.Errorf("%v covers other ports than 80 and 443", apart)
	}
}

func TestWithoutLeavesNothingInCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, d := sets().Draw(t, "a"), sets().Draw(t, "d")
		rest := a.Without(d)
		same(t, "nothing in common", rest.Intersect(d), nil)
		if !a.Contains(rest) {
			t.Fatalf("%v without %v is %v", a, d, rest)
		}
		same(t, "nothing denied, nothing lost", a.Without(nil), a)
	})
}

func TestLimitsAreNotMultipliedBySplitting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sets().Draw(t, "a"), sets().Draw(t, "b")
		for _, g := range a.Intersect(b) {
			if !a.Covers(g) || !b.Covers(g) {
				t.Fatalf("%v of %v ∩ %v is not in both", g, a, b)
			}
		}
	})
}
