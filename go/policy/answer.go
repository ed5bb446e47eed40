package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
)

// decision is what the rule "decision" of a layer must be.
type decision struct {
	Allow *[]entry `json:"allow"`
	Deny  *[]entry `json:"deny"`
}

// entry is one thing that a layer allows or denies. In a denial an absent resource or destination is every one of
// its kind, and the action may be "*"; in an allowance nothing stands for more than it says. Limits on how often
// something may be done are no field of it: nothing counts uses yet, so a layer that names them fails.
type entry struct {
	Action      string `json:"action"`
	Resource    string `json:"resource"`
	Destination string `json:"destination"`
	Rule        string `json:"rule"`
	Reason      string `json:"reason"`
	Remedy      string `json:"remedy"`
}

// read decodes the JSON of a decision strictly. Anything unexpected fails the whole layer: half an answer could
// lack the denial that mattered.
func (l *layer) read(b []byte, requests []capability.Request, registry *capability.Registry) capability.Answer {
	malformed := func(format string, args ...any) capability.Answer {
		return capability.Failure(l.name, reason.PolicyMalformedAnswer, fmt.Sprintf(format, args...), "")
	}
	var d decision
	if err := canonical.Decode(b, &d); err != nil {
		return malformed("its decision is not {allow, deny}: %v", err)
	}
	if d.Allow == nil || d.Deny == nil {
		return malformed("its decision lacks allow or deny")
	}
	answer := capability.Answer{Layer: l.name, Status: capability.OK}
	var allowed, denied []capability.Grant
	for _, e := range *d.Allow {
		g, err := registry.ParseGrant(e.Action, e.Resource, e.Destination)
		if err != nil {
			return malformed("it allows %q on %q: %v", e.Action, e.Resource, err)
		}
		if err := registry.Check(g); err != nil {
			return malformed("it allows %q on %q: %v", e.Action, e.Resource, err)
		}
		r, ok := l.reasonOf(e, capability.Allow, g)
		if !ok {
			return malformed("it allows %q by a rule %q that its policy does not hold", e.Action, e.Rule)
		}
		allowed = append(allowed, g)
		if concerns(r, requests) {
			answer.Reasons = append(answer.Reasons, r)
		}
	}
	everything := false
	for _, e := range *d.Deny {
		g, err := denial(e, registry)
		if err != nil {
			return malformed("it denies %q on %q: %v", e.Action, e.Resource, err)
		}
		r, ok := l.reasonOf(e, capability.Deny, g)
		if !ok {
			return malformed("it denies %q by a rule %q that its policy does not hold", e.Action, e.Rule)
		}
		everything = everything || e.Action == capability.AnyAction
		denied = append(denied, g)
		answer.Reasons = append(answer.Reasons, r)
	}
	if !everything {
		answer.Allowed = capability.NewSet(allowed...).Without(denied)
	}
	sortReasons(answer.Reasons)
	return answer
}

// denial widens what a denial leaves out to everything of the kind.
func denial(e entry, registry *capability.Registry) (capability.Grant, error) {
	if e.Action == capability.AnyAction {
		if e.Resource != "" || e.Destination != "" {
			return capability.Grant{}, fmt.Errorf("a denial of everything has no scopes")
		}
		return capability.Grant{Action: e.Action}, nil
	}
	action, _ := registry.Action(e.Action)
	return registry.ParseGrant(e.Action, orEverything(e.Resource, action.Resource), orEverything(e.Destination, action.Destination))
}

func orEverything(scope string, kind capability.ScopeKind) string {
	if scope != "" || kind == "" || kind == capability.NoScope {
		return scope
	}
	return string(kind) + ":**"
}

func (l *layer) reasonOf(e entry, effect capability.Effect, g capability.Grant) (capability.Reason, bool) {
	rule, ok := l.rule(e.Rule)
	if !ok {
		return capability.Reason{}, false
	}
	return capability.Reason{Effect: effect, Action: e.Action, Resource: g.Resource, Destination: g.Destination,
		Rule: e.Rule, File: rule.File, Line: rule.Line, Text: e.Reason, Remedy: e.Remedy}, true
}

// concerns keeps the record to what was asked: a ceiling may list far more.
func concerns(r capability.Reason, requests []capability.Request) bool {
	return slices.ContainsFunc(requests, func(q capability.Request) bool {
		_, meets := q.Intersect(capability.Grant{Action: r.Action, Resource: r.Resource, Destination: r.Destination})
		return meets
	})
}

// sortReasons orders them by all they hold, since sets of Rego come in no order that evaluators share.
func sortReasons(reasons []capability.Reason) {
	slices.SortFunc(reasons, func(a, b capability.Reason) int {
		for _, c := range []int{
			strings.Compare(a.File, b.File),
			int(a.Line - b.Line),
			strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.Action, b.Action),
			strings.Compare(a.Resource.String(), b.Resource.String()),
			strings.Compare(a.Destination.String(), b.Destination.String()),
			strings.Compare(string(a.Effect), string(b.Effect)),
			strings.Compare(a.Text, b.Text),
			strings.Compare(a.Remedy, b.Remedy),
		} {
			if c != 0 {
				return c
			}
		}
		return 0
	})
}
