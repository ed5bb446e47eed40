package capability

// EffectCeiling is how far the effects of an attempt may reach. How a lost answer of an effect is treated is
// something else: operation.EffectClass.
type EffectCeiling string

// The ceilings, each including the ones before it.
const (
	// NoEffects is the ceiling of what is not a mode.
	NoEffects EffectCeiling = "no_effects"
	// LocalResults: granted reads, receipts, and results that stay with the attempt.
	LocalResults EffectCeiling = "local_results"
	// IsolatedResults: the same computation as in production, with outputs in a namespace of their own.
	IsolatedResults EffectCeiling = "isolated_results"
	// Candidates: artifacts, branches, pull requests and review packets that somebody may accept.
	Candidates EffectCeiling = "candidates"
	// OperationalEffects: approved effects outside. A merge is never among them.
	OperationalEffects EffectCeiling = "operational_effects"
)

func (c EffectCeiling) rank() int {
	switch c {
	case LocalResults:
		return 1
	case IsolatedResults:
		return 2
	case Candidates:
		return 3
	case OperationalEffects:
		return 4
	}
	return 0
}

// Permits reports whether an effect that needs ceiling need stays below c.
func (c EffectCeiling) Permits(need EffectCeiling) bool {
	return need.rank() > 0 && c.rank() >= need.rank()
}

// Candidate reports whether what is made under c may be offered to somebody outside the attempt.
func (c EffectCeiling) Candidate() bool { return c.Permits(Candidates) }
