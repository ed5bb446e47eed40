package journal

import "cmp"

// Order compares two recorded events by where they stand in the journal.
func Order(a, b Recorded) int {
	return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Ordinal, b.Ordinal))
}
