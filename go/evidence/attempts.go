// Package evidence checks what a state folder says of its attempts, from the journal and
// the stored bytes alone.
package evidence

import (
	"context"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/workorder"
)

// Checked counts what was checked.
type Checked struct {
	Attempts int
	Receipts int
}

// Attempts replays attempts through the kernel, and checks that each receipt is one of what
// was recorded, and that every document and output that an attempt names by digest is
// there and is what it was. What cannot be replayed is damage, and told like the rest.
func Attempts(ctx context.Context, j journal.Reader, store *artifact.Store, k kernel.Kernel, ids []workorder.AttemptID, damaged func(journal.Damage)) Checked {
	var c Checked
	for _, id := range ids {
		c.Attempts++
		s, err := ledger.Load(ctx, j, k, id)
		if err != nil {
			damaged(journal.Damage{Where: string(id), What: err.Error()})
			continue
		}
		for _, o := range s.Operations() {
			if len(o.Record.Receipt) == 0 {
				continue
			}
			c.Receipts++
			if err := ledger.CheckReceipt(s, o); err != nil {
				damaged(journal.Damage{Where: string(o.Intent.Key), What: err.Error()})
			}
		}
		for name, d := range documents(s) {
			if !d.Valid() {
				continue
			}
			if _, err := store.Read(ctx, d, artifact.MaxDocument); err != nil {
				damaged(journal.Damage{Where: string(id), What: name + ": " + err.Error()})
			}
		}
		outputs(ctx, store, s, damaged)
	}
	return c
}

// documents are what an attempt names by digest, and is not understood without.
func documents(s kernel.State) map[string]canonical.Digest {
	fixed := s.Reserved.Digests
	named := map[string]canonical.Digest{
		"policy decision": s.Decision(), "ingress receipt": s.Evidence("IngressReceipt"),
		"role package": fixed.Role, "context package": fixed.Context, "prompt": fixed.Prompt, "requested actions": fixed.Grant,
	}
	if s.Bundle != nil {
		named["output schema"] = s.Bundle.Bundle().Outputs.Schema
	}
	return named
}

// outputs checks that every frozen output is still there.
func outputs(ctx context.Context, store *artifact.Store, s kernel.State, damaged func(journal.Damage)) {
	m, err := environment.ReadManifest(ctx, store, s)
	if err != nil {
		damaged(journal.Damage{Where: string(s.Attempt), What: err.Error()})
		return
	}
	for _, e := range m.Entries {
		if _, err := store.Read(ctx, e.Digest, e.Size); err != nil {
			damaged(journal.Damage{Where: string(s.Attempt) + " " + e.Path, What: err.Error()})
		}
	}
}
