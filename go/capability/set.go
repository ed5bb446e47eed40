package capability

import "slices"

// Set is a set of grants; it covers what any of them covers. The nil Set covers nothing. NewSet and all operations
// return the normal form: sorted, lists of ports split, and no grant that another one contains.
type Set []Grant

// NewSet returns the normal form of the grants. A grant without an action or resource covers nothing and is left out.
func NewSet(grants ...Grant) Set {
	var all []Grant
	for _, g := range grants {
		if g.Action != "" && !g.Resource.IsZero() {
			all = append(all, g.parts()...)
		}
	}
	slices.SortFunc(all, Grant.compare)
	all = slices.Compact(all)
	var set Set
	for i, g := range all {
		contained := slices.ContainsFunc(all[:i], func(o Grant) bool { return o.Contains(g) }) ||
			slices.ContainsFunc(all[i+1:], func(o Grant) bool { return o.Contains(g) })
		if !contained {
			set = append(set, g)
		}
	}
	return set
}

// Union returns what s or t covers.
func (s Set) Union(t Set) Set { return NewSet(slices.Concat(s, t)...) }

// Intersect returns what s and t both cover.
func (s Set) Intersect(t Set) Set {
	var both []Grant
	for _, g := range s {
		for _, h := range t {
			if i, ok := g.Intersect(h); ok {
				both = append(both, i)
			}
		}
	}
	return NewSet(both...)
}

// Covers reports whether one grant of s for each port of g covers all of g. It never says yes wrongly; it says no
// for a grant that only several grants together would cover.
func (s Set) Covers(g Grant) bool { return s.coversWith(g, Grant.Contains) }

// Contains reports whether s covers every grant of t.
func (s Set) Contains(t Set) bool {
	return !slices.ContainsFunc(t, func(g Grant) bool { return !s.Covers(g) })
}

// satisfies reports whether s gives what a request names: its scopes whole, and its limits where it names some.
func (s Set) satisfies(request Grant) bool {
	return s.coversWith(request, func(g, part Grant) bool {
		return g.coversScopes(part) && g.Limits.satisfies(part.Limits)
	})
}

func (s Set) coversWith(g Grant, covers func(outer, inner Grant) bool) bool {
	if g.Action == "" || g.Resource.IsZero() {
		return false
	}
	for _, part := range g.parts() {
		if !slices.ContainsFunc(s, func(outer Grant) bool { return covers(outer, part) }) {
			return false
		}
	}
	return true
}

// Without returns the grants of s that have nothing in common with t. A grant of which t denies a part goes whole:
// the rest of a tree has no scope of its own, and giving less is always safe.
func (s Set) Without(t Set) Set {
	var rest []Grant
	for _, g := range NewSet(s...) {
		overlaps := slices.ContainsFunc(t, func(d Grant) bool {
			_, meets := g.Intersect(d)
			return meets
		})
		if !overlaps {
			rest = append(rest, g)
		}
	}
	return NewSet(rest...)
}

// Filter returns the grants of s that keep reports true for.
func (s Set) Filter(keep func(Grant) bool) Set {
	var kept []Grant
	for _, g := range s {
		if keep(g) {
			kept = append(kept, g)
		}
	}
	return NewSet(kept...)
}
