package capability

// Action is one registered thing that work may ask to do. What a grant allows is an action; what the ledger
// records of carrying it out is an operation.
type Action struct {
	// Name is dotted lower-case words, for example "input.read".
	Name string `json:"action"`
	// Resource is the kind of scope that says on what.
	Resource ScopeKind `json:"resource"`
	// Destination is the kind of scope that says where to; NoScope for an action that leads nowhere else.
	Destination ScopeKind `json:"destination"`
	// MinimumMode is the lowest mode under which the action's effect is permitted at all.
	MinimumMode Mode `json:"minimum_mode"`
	// HumanOnly marks an action that no attempt is ever granted, in any mode.
	HumanOnly bool `json:"human_only"`
	// Summary is one sentence for a person.
	Summary string `json:"summary"`
}

// Effect is the ceiling that the action needs.
func (a Action) Effect() EffectCeiling { return a.MinimumMode.Ceiling() }
