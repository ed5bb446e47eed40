package admission

import (
	"context"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/policy"
)

// Undecided is undecided, for tests.
func Undecided(r policy.Record) error { return undecided(r) }

// Facts returns what is known of a recorded order whose tool and adapter are pinned as given.
func (a *Admission) Facts(tool, adapter canonical.Digest, known *kernel.State) (deployment string, _ policy.Facts, _ error) {
	o := &order{tool: pin.Entry{Digest: tool}, adapter: pin.Entry{Digest: adapter}, known: known}
	err := a.resolveFacts(context.Background(), o)
	return o.deployment, o.facts, err
}
