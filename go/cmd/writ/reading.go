package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/schemas"
)

// maxDocument bounds a document that is read back from the store, in bytes.
const maxDocument = 16 << 20

// reading is a state folder that is only read; a writer may be at work in it.
type reading struct {
	journal   *sqlite.Store
	artifacts *artifact.Store
	kernel    kernel.Kernel
}

func (c *command) openReading(ctx context.Context) (*reading, error) {
	k, err := kernel.Open(schemas.FS)
	if err != nil {
		return nil, err
	}
	j, err := sqlite.Open(ctx, c.state, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	a, err := artifact.Open(c.state, j, artifact.Options{})
	if err != nil {
		return nil, err
	}
	return &reading{journal: j, artifacts: a, kernel: k}, nil
}

// Close closes the journal.
func (r *reading) Close() error { return r.journal.Close() }

// index builds the index of the whole journal.
func (r *reading) index(ctx context.Context) (*projection.Index, error) {
	return projection.Build(ctx, r.journal, r.kernel.Transitions())
}

// attempt finds the attempt that an id, or the beginning of one, names: of the attempt
// itself or of its work order.
func (r *reading) attempt(ctx context.Context, id string) (kernel.State, projection.Attempt, error) {
	index, err := r.index(ctx)
	if err != nil {
		return kernel.State{}, projection.Attempt{}, err
	}
	one, found := index.Find(id)
	switch {
	case id == "" || len(found) == 0:
		remedy := "list what there is with `writ status`"
		if len(index.Attempts) == 0 {
			remedy = "nothing has run here yet: start with `writ run FILE`"
		}
		return kernel.State{}, projection.Attempt{}, reason.New(reason.IDUnknown, fmt.Sprintf("nothing here has an id that begins with %q", id), "", remedy)
	case one == nil:
		var names []string
		for i, a := range found {
			if i == 5 {
				names = append(names, "…")
				break
			}
			names = append(names, string(a.ID))
		}
		return kernel.State{}, projection.Attempt{}, reason.New(reason.IDAmbiguous, fmt.Sprintf("%d attempts have an id that begins with %q", len(found), id),
			strings.Join(names, ", "), "type more of it")
	}
	s, err := ledger.Load(ctx, r.journal, r.kernel, one.ID)
	return s, *one, err
}

// decision reads the policy decision of an attempt; ok is false where none was made.
func (r *reading) decision(ctx context.Context, s kernel.State) (record policy.Record, ok bool, err error) {
	digest := s.Evidence("PolicyDecision")
	if !digest.Valid() {
		return policy.Record{}, false, nil
	}
	raw, err := r.artifacts.Read(ctx, digest, maxDocument)
	if err != nil {
		return policy.Record{}, false, err
	}
	record, err = policy.ParseRecord(raw)
	return record, err == nil, err
}

// manifestOf reads the artifact manifest of an attempt, empty where nothing was frozen.
func manifestOf(ctx context.Context, store *artifact.Store, s kernel.State) (protocol.ArtifactManifest, error) {
	for _, o := range s.Operations() {
		if o.Intent.Kind != operation.Freeze || len(o.Record.Outcome.Result) == 0 {
			continue
		}
		var frozen protocol.FreezeResult
		if err := canonical.Decode(o.Record.Outcome.Result, &frozen); err != nil {
			return protocol.ArtifactManifest{}, fmt.Errorf("result of %s: %w", o.Intent.Key, err)
		}
		raw, err := store.Read(ctx, frozen.Manifest, maxDocument)
		if err != nil {
			return protocol.ArtifactManifest{}, fmt.Errorf("%s: %w", environment.ManifestMediaType, err)
		}
		var m protocol.ArtifactManifest
		err = canonical.Decode(raw, &m)
		return m, err
	}
	return protocol.ArtifactManifest{}, nil
}
