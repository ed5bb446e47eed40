package artifact

import (
	"context"
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// Frozen is what was frozen of one workspace.
type Frozen struct {
	Manifest protocol.ArtifactManifest
	// Blobs are the small artifacts, each once. They are durable once the batch that
	// carries them is; the manifest must not be acknowledged before.
	Blobs []journal.Blob
}

// Freeze collects the declared outputs of a workspace in which nothing runs any more.
// attestation is the digest of what was attested of the workspace before.
//
// Everything declared is accepted, or nothing is. On a refusal the manifest has no
// entries, no blob comes back, and no file was published; it still names every path
// that was left out or refused, and why, for the receipt. The refusal is that of the
// first rejected path. Should the disk fail while files are being published, some may
// stay under their digests with nothing that names them.
//
// What was not declared is listed as omitted, whatever it is, and never read. Where a
// path is not even a name, or could be taken for a declared one, it is rejected.
//
// Reasons: freeze.bad_policy, freeze.bad_name, freeze.collision,
// freeze.unexpected_type, freeze.hardlink, freeze.too_many, freeze.too_large,
// freeze.missing, freeze.unstable, freeze.unreadable, and those of the store.
func Freeze(ctx context.Context, src Source, policy protocol.OutputPolicy, attestation canonical.Digest, store *Store) (Frozen, error) {
	none := Frozen{Manifest: protocol.ArtifactManifest{
		Kind: protocol.ArtifactManifestKind, Attestation: attestation, PathPolicy: policy.PathPolicyVersion,
		Entries: []protocol.ArtifactEntry{}, Omitted: []protocol.Exclusion{}, Rejected: []protocol.Exclusion{},
	}}
	if err := policy.Check(); err != nil {
		return none, err
	}
	s, err := list(ctx, src, policy)
	if err != nil {
		return none, err
	}
	s.judge()
	none.Manifest.Omitted = s.omitted
	if len(s.rejected) > 0 {
		none.Manifest.Rejected = s.rejected
		return none, first(s.rejected)
	}
	f := &freezer{store: store, src: src, policy: policy}
	defer f.discard()
	if err := f.readAll(ctx, s.accepted); err != nil {
		if f.rejected != nil {
			none.Manifest.Rejected = []protocol.Exclusion{*f.rejected}
		}
		return none, err
	}
	frozen := none
	if err := f.publishAll(ctx, &frozen); err != nil {
		return none, err
	}
	return frozen, nil
}

// first is the refusal that a person sees of all that was rejected.
func first(rejected []protocol.Exclusion) error {
	what := rejected[0].Detail
	if n := len(rejected) - 1; n > 0 {
		what += fmt.Sprintf(", and %d more", n)
	}
	return reason.New(rejected[0].Code, what, rejected[0].Path, remedy(rejected[0].Code))
}

func remedy(code reason.Code) string {
	switch code {
	case reason.FreezeMissing:
		return "have the tool write it, or declare it as not required"
	case reason.FreezeTooMany, reason.FreezeTooLarge:
		return "have the tool write less, or raise the bound in the work order"
	case reason.FreezeUnreadable:
		return "run again"
	}
	return "have the tool write plain files under the declared names"
}

// freezer reads what was accepted, and publishes it once all of it was read.
type freezer struct {
	store    *Store
	src      Source
	policy   protocol.OutputPolicy
	entries  []Entry
	staged   []*staged
	rejected *protocol.Exclusion
}

func (f *freezer) readAll(ctx context.Context, entries []Entry) error {
	for _, e := range entries {
		declared, _ := f.policy.Match(e.Path)
		st, err := f.readOne(ctx, e, declared.MediaType)
		if err != nil {
			return err
		}
		f.entries, f.staged = append(f.entries, e), append(f.staged, st)
	}
	return nil
}

// readOne reads one file: exactly the bytes that were listed, or it is refused. It
// asks for one byte more, to notice that there are more, and keeps none beyond.
func (f *freezer) readOne(ctx context.Context, e Entry, mediaType string) (*staged, error) {
	r, err := f.src.Open(ctx, e.Path)
	if err != nil {
		return nil, f.reject(ctx, e, reason.FreezeUnreadable, "the file cannot be opened", err)
	}
	st, err := f.store.stage(ctx, r, e.Size, mediaType)
	cerr := r.Close()
	switch {
	case reason.Is(err, reason.ArtifactTooLarge):
		return nil, f.reject(ctx, e, reason.FreezeUnstable, fmt.Sprintf("the file serves more than the %d bytes that it had", e.Size), err)
	case err != nil:
		if _, ours := reason.As(err); ours {
			return nil, err // the store refused, not the source
		}
		return nil, f.reject(ctx, e, reason.FreezeUnreadable, "the file cannot be read", err)
	case cerr != nil:
		st.discard()
		return nil, f.reject(ctx, e, reason.FreezeUnstable, "the file changed while it was read", cerr)
	case st.ref.Size != e.Size:
		size := st.ref.Size
		st.discard()
		return nil, f.reject(ctx, e, reason.FreezeUnstable, fmt.Sprintf("the file serves %d of the %d bytes that it had", size, e.Size), nil)
	}
	return st, nil
}

// reject records the path and returns its refusal. The end of a context is neither.
func (f *freezer) reject(ctx context.Context, e Entry, code reason.Code, detail string, cause error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.rejected = &protocol.Exclusion{Path: protocol.EscapePath(e.Path), Code: code, Detail: detail}
	return reason.New(code, detail, f.rejected.Path, remedy(code)).Because(cause)
}

func (f *freezer) publishAll(ctx context.Context, frozen *Frozen) error {
	m := &frozen.Manifest
	seen := map[canonical.Digest]bool{}
	for i, st := range f.staged {
		blob, err := st.publish(ctx)
		if err != nil {
			return fmt.Errorf("freeze %s: %w", protocol.EscapePath(f.entries[i].Path), err)
		}
		if blob != nil && !seen[blob.Digest] {
			seen[blob.Digest] = true
			frozen.Blobs = append(frozen.Blobs, *blob)
		}
		m.Bytes += st.ref.Size
		m.Entries = append(m.Entries, protocol.ArtifactEntry{
			Path: f.entries[i].Path, Type: string(File), Executable: f.entries[i].Executable,
			Size: st.ref.Size, Digest: st.ref.Digest, MediaType: st.ref.MediaType,
		})
	}
	return nil
}

func (f *freezer) discard() {
	for _, st := range f.staged {
		st.discard()
	}
}

// list takes the entries of a source, at most so many that a record of each is small.
func list(ctx context.Context, src Source, policy protocol.OutputPolicy) (*selection, error) {
	s := &selection{policy: policy, omitted: []protocol.Exclusion{}}
	for e, err := range src.Entries(ctx) {
		if cerr := ctx.Err(); cerr != nil {
			return nil, cerr
		}
		if err != nil {
			return nil, reason.New(reason.FreezeUnreadable, "the workspace cannot be listed", "", remedy(reason.FreezeUnreadable)).Because(err)
		}
		if len(s.listed) == maxListed {
			// Which entries came first is the source's choice, so none is named.
			return nil, reason.New(reason.FreezeTooMany, fmt.Sprintf("the workspace holds more than %d entries", maxListed), "",
				"have the tool write less")
		}
		s.listed = append(s.listed, e)
	}
	return s, ctx.Err()
}
