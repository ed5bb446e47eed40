package capability

import "strings"

// Grant covers uses of one action: on Resource, towards Destination, within Limits.
type Grant struct {
	Action      string `json:"action"`
	Resource    Scope  `json:"resource"`
	Destination Scope  `json:"destination,omitzero"`
	Limits      Limits `json:"limits,omitzero"`
}

// Contains reports whether g covers every use that h covers.
func (g Grant) Contains(h Grant) bool { return g.coversScopes(h) && g.Limits.Contains(h.Limits) }

func (g Grant) coversScopes(h Grant) bool {
	if g.Action != h.Action || !g.Resource.Contains(h.Resource) {
		return false
	}
	if g.Destination.IsZero() && h.Destination.IsZero() {
		return true
	}
	return g.Destination.Contains(h.Destination)
}

// Intersect returns what g and h both cover; ok is false when that is nothing.
func (g Grant) Intersect(h Grant) (both Grant, ok bool) {
	if g.Action != h.Action {
		return Grant{}, false
	}
	both = Grant{Action: g.Action, Limits: g.Limits.Intersect(h.Limits)}
	if both.Resource, ok = g.Resource.Intersect(h.Resource); !ok {
		return Grant{}, false
	}
	// An absent destination is no wildcard: it meets only another absent one.
	if g.Destination.IsZero() && h.Destination.IsZero() {
		return both, true
	}
	if both.Destination, ok = g.Destination.Intersect(h.Destination); !ok {
		return Grant{}, false
	}
	return both, true
}

// String renders the grant for a person: "input.read on input:docs/**", "model.call on model:a/b to host:h:443".
func (g Grant) String() string {
	s := g.Action
	if g.Resource.Kind() != NoScope && !g.Resource.IsZero() {
		s += " on " + g.Resource.String()
	}
	if !g.Destination.IsZero() {
		s += " to " + g.Destination.String()
	}
	return s
}

func (g Grant) compare(h Grant) int {
	for _, c := range []int{
		strings.Compare(g.Action, h.Action),
		strings.Compare(g.Resource.text, h.Resource.text),
		strings.Compare(g.Destination.text, h.Destination.text),
		compareInt(g.Limits.Calls, h.Limits.Calls),
		compareInt(g.Limits.Bytes, h.Limits.Bytes),
	} {
		if c != 0 {
			return c
		}
	}
	return 0
}

func compareInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// parts splits lists of ports, so that two ways to list the same ports are the same grants.
func (g Grant) parts() []Grant {
	var out []Grant
	for _, resource := range g.Resource.parts() {
		destinations := []Scope{g.Destination}
		if !g.Destination.IsZero() {
			destinations = g.Destination.parts()
		}
		for _, destination := range destinations {
			out = append(out, Grant{Action: g.Action, Resource: resource, Destination: destination, Limits: g.Limits})
		}
	}
	return out
}
