package broker

import "maps"

// Terms are how long and how often the local broker lets a grant be used.
type Terms struct {
	// LifeMillis is the longest life of a token, in milliseconds.
	LifeMillis int64
	// Uses is the greatest use count by action. An action that is absent gets one use.
	Uses map[string]int64
}

// LocalTerms are those of the local deployment: an hour; one use, but for the actions that every step repeats.
func LocalTerms() Terms {
	const many = 1_000_000
	return Terms{LifeMillis: 3_600_000, Uses: map[string]int64{
		"input.read": many, "output.write": many, "artifact.write": many, "process.spawn": 256, "model.call": 1000, "checkpoint.propose": many,
	}}
}

func (t Terms) uses(action string) int64 { return max(1, t.Uses[action]) }

func (t Terms) clone() Terms {
	t.Uses = maps.Clone(t.Uses)
	return t
}
