package capability

// Effect says in which direction a rule spoke.
type Effect string

// The effects. A denial overrides every allowance of its layer.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
)

// AnyAction stands for all actions in a denial. It is no action and cannot be granted.
const AnyAction = "*"

// Reason is one rule that spoke, with the place where a policy author finds it.
type Reason struct {
	Effect Effect `json:"effect"`
	// Action is a registered action, or AnyAction in a denial of everything.
	Action      string `json:"action"`
	Resource    Scope  `json:"resource,omitzero"`
	Destination Scope  `json:"destination,omitzero"`
	// Rule is the stable id of the rule, LAYER.NAME.
	Rule string `json:"rule"`
	// File is the policy file, relative to the root of the policies, and Line counts from 1. Both are empty for a
	// rule that no policy file holds.
	File string `json:"file,omitempty"`
	Line int64  `json:"line,omitempty"`
	// Text says why, in one sentence for a person.
	Text string `json:"text"`
	// Remedy says what would be allowed instead, or who may.
	Remedy string `json:"remedy,omitempty"`
}

func (r Reason) meets(g Grant) bool {
	if r.Action != g.Action {
		return false
	}
	_, meets := Grant{Action: r.Action, Resource: r.Resource, Destination: r.Destination}.Intersect(
		Grant{Action: g.Action, Resource: g.Resource, Destination: g.Destination})
	return meets
}
