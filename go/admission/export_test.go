package admission

import "github.com/writ-runtime/writ/go/policy"

// Undecided is undecided, for tests.
func Undecided(r policy.Record) error { return undecided(r) }
