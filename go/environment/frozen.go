package environment

import (
	"bytes"
	"context"
	"fmt"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
)

// ManifestMediaType is the media type under which a manifest is kept.
const ManifestMediaType = "application/vnd.writ.artifact-manifest+json"

// Frozen is what was frozen, with the manifest itself among its blobs. It is there
// for a refused freeze too: the manifest says what was refused, and why (F4).
type Frozen struct {
	Manifest protocol.ArtifactManifest
	Result   protocol.FreezeResult
	Blobs    []journal.Blob
}

// Describe adds the domain result of a freeze to what it froze, and keeps the manifest
// in the store, or among the blobs if it is small.
func Describe(ctx context.Context, f artifact.Frozen, store *artifact.Store) (Frozen, error) {
	raw, err := canonical.Marshal(f.Manifest)
	if err != nil {
		return Frozen{}, fmt.Errorf("artifact manifest: %w", err)
	}
	ref, blob, err := store.Put(ctx, bytes.NewReader(raw), int64(len(raw)), ManifestMediaType)
	if err != nil {
		return Frozen{}, err
	}
	frozen := Frozen{
		Manifest: f.Manifest,
		Result: protocol.FreezeResult{
			Manifest: ref.Digest, Files: int64(len(f.Manifest.Entries)), Bytes: f.Manifest.Bytes, Omitted: int64(len(f.Manifest.Omitted)),
		},
		Blobs: f.Blobs,
	}
	if blob != nil {
		frozen.Blobs = append(frozen.Blobs, *blob)
	}
	return frozen, nil
}

// ReadManifest reads the artifact manifest of an attempt from the store, empty where nothing was frozen.
func ReadManifest(ctx context.Context, store *artifact.Store, s kernel.State) (protocol.ArtifactManifest, error) {
	digest, err := ManifestDigest(s)
	if err != nil || digest == "" {
		return protocol.ArtifactManifest{}, err
	}
	raw, err := store.Read(ctx, digest, artifact.MaxDocument)
	if err != nil {
		return protocol.ArtifactManifest{}, fmt.Errorf("%s: %w", ManifestMediaType, err)
	}
	var m protocol.ArtifactManifest
	err = canonical.Decode(raw, &m)
	return m, err
}

// ManifestDigest is the digest of the manifest of what was frozen; empty where nothing was.
func ManifestDigest(s kernel.State) (canonical.Digest, error) {
	for _, o := range s.Operations() {
		if o.Intent.Kind != operation.Freeze || len(o.Record.Outcome.Result) == 0 {
			continue
		}
		var frozen protocol.FreezeResult
		if err := canonical.Decode(o.Record.Outcome.Result, &frozen); err != nil {
			return "", fmt.Errorf("result of %s: %w", o.Intent.Key, err)
		}
		return frozen.Manifest, nil
	}
	return "", nil
}
