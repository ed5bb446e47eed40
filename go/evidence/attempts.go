// Package evidence checks what a state folder says of its attempts, from the journal and
// the stored bytes alone.
package evidence

import (
	"context"
	"maps"
	"slices"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Checked counts what was checked.
type Checked struct {
	Attempts int
	Receipts int
}

// Attempts replays attempts through the kernel, and checks what came of each as Attempt
// does.
func Attempts(ctx context.Context, j journal.Reader, store *artifact.Store, k kernel.Kernel, ids []workorder.AttemptID, damaged func(journal.Damage)) Checked {
	var c Checked
	for _, id := range ids {
		s, err := ledger.Load(ctx, j, k, id)
		if err != nil {
			c.Attempts++
			damaged(journal.Damage{Where: string(id), What: err.Error(), Tolerable: true})
			continue
		}
		c.Attempt(ctx, store, s, damaged)
	}
	return c
}

// All replays a whole journal, and checks what came of each attempt as Attempt does. The
// error means that it could not look.
func All(ctx context.Context, j journal.Reader, store *artifact.Store, k kernel.Kernel, damaged func(journal.Damage)) (Checked, error) {
	var c Checked
	_, err := Replay(ctx, j, k, 0, Watch{
		Attempt: func(s kernel.State, again bool) {
			if !again {
				c.Attempt(ctx, store, s, damaged)
				return
			}
			// It was counted; what happened to it since is looked at all the same.
			new(Checked).Attempt(ctx, store, s, damaged)
		},
		Refused: func(what string, err error) {
			damaged(journal.Damage{Where: what, What: err.Error(), Tolerable: true})
		},
	})
	if reason.Is(err, reason.JournalCorrupt) {
		// The journal's own verification names it; beyond it nothing can be replayed.
		damaged(journal.Damage{Where: "replay", What: err.Error()})
		return c, nil
	}
	return c, err
}

// Attempt checks that each receipt of an attempt is one of what was recorded, and that
// every document and output that it names by digest is there and is what it was.
func (c *Checked) Attempt(ctx context.Context, store *artifact.Store, s kernel.State, damaged func(journal.Damage)) {
	c.Attempts++
	for _, o := range s.Operations() {
		if len(o.Record.Receipt) == 0 {
			continue
		}
		c.Receipts++
		if err := ledger.CheckReceipt(s, o); err != nil {
			damaged(journal.Damage{Where: string(o.Intent.Key), What: err.Error(), Tolerable: true})
		}
	}
	named := documents(s)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if d := named[name]; d.Valid() {
			check(ctx, store, d, artifact.MaxDocument, string(s.Attempt), name+": ", damaged)
		}
	}
	outputs(ctx, store, s, damaged)
}

// check reads an artifact, and tells what is wrong with it.
func check(ctx context.Context, store *artifact.Store, d canonical.Digest, limit int64, where, what string, damaged func(journal.Damage)) {
	if _, err := store.Read(ctx, d, limit); err != nil {
		damaged(lost(err, d, where, what))
	}
}

// lost tells that an artifact is gone, or is other bytes, or cannot be looked at.
func lost(err error, d canonical.Digest, where, what string) journal.Damage {
	found := journal.Damage{Where: where, What: what + err.Error(), Tolerable: true}
	if reason.Is(err, reason.ArtifactMissing) || reason.Is(err, reason.ArtifactCorrupt) || reason.Is(err, reason.ArtifactTooLarge) {
		found.Artifact, found.Tolerable = d, false
	}
	return found
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
	for _, p := range s.Sendings() {
		named["proposal "+p.Purpose] = p.Content
	}
	return named
}

// outputs checks that every frozen output is still there.
func outputs(ctx context.Context, store *artifact.Store, s kernel.State, damaged func(journal.Damage)) {
	m, err := environment.ReadManifest(ctx, store, s)
	if err != nil {
		digest, _ := environment.ManifestDigest(s)
		damaged(lost(err, digest, string(s.Attempt), ""))
		return
	}
	for _, e := range m.Entries {
		check(ctx, store, e.Digest, e.Size, string(s.Attempt)+" "+e.Path, "", damaged)
	}
}
