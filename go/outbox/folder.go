package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/beneath"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// folder makes a complete folder appear under one name at a place, once.
type folder struct {
	hands hands
	// open opens the place.
	open func() (*os.File, error)
	name string
	// destination is how the proposal names the place.
	destination capability.Scope
	// content is what is to appear. Asking leaves out what only makes it: then content that
	// is not exact need not be complete.
	content func(ctx context.Context, asking bool) (*content, error)
}

// found is what stands under the name.
type found int

const (
	nothing found = iota
	ours          // complete, with every byte
	altered       // made for the proposal, and changed afterwards
	foreign       // anything else
)

func (f folder) whole() beneath.Whole {
	return beneath.Whole{Hands: f.hands.Hands, Name: f.name, Modes: beneath.Shared()}
}

func (f folder) reachable() error {
	place, err := f.open()
	if err == nil {
		err = place.Close()
	}
	return err
}

func (f folder) perform(ctx context.Context, m mark) operation.Outcome {
	place, err := f.open()
	if err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	defer place.Close()
	c, err := f.content(ctx, false)
	if err != nil {
		return operation.Refused(operation.NotApplied, refuse(err, "what is to be sent cannot be read", f.name))
	}
	switch what, result, err := f.look(ctx, place, c); {
	case err != nil:
		return operation.Refused(operation.NotApplied, refuse(err, "a destination cannot be read", f.name))
	case what == ours:
		return f.durable(place, result)
	case what != nothing:
		return operation.Refused(operation.NotApplied, f.occupied())
	}
	built, err := f.build(ctx, place, c)
	if built != nil {
		defer beneath.Unlock(built)
	}
	if err != nil {
		err = refuse(err, "a folder cannot be made at a destination", f.name)
		if !reason.Is(err, reason.OutboxBusy) {
			_ = f.whole().Sweep(place, built) // what stays is swept by whoever comes next
		}
		return operation.Refused(operation.NotApplied, err)
	}
	return f.publish(place, built, c, m)
}

// publish renames what was built. From here on a failure leaves a doubt.
func (f folder) publish(place, built *os.File, c *content, m mark) operation.Outcome {
	if known, err := m.spend(); err != nil {
		_ = f.whole().Sweep(place, built)
		return operation.Refused(known, err)
	}
	renamed, err := f.whole().Rename(place)
	switch {
	case errors.Is(err, fs.ErrExist):
		_ = f.whole().Sweep(place, built)
		return operation.Refused(operation.NotApplied, f.occupied())
	case err != nil && !renamed:
		_ = f.whole().Sweep(place, built)
		return operation.Refused(operation.NotApplied, refuse(err, "a finished folder cannot be given its name", f.name))
	case err != nil:
		return operation.Refused(operation.Unknown, refuse(err, "whether a finished folder keeps its name is not known", f.name))
	case !beneath.Same(place, f.name, built):
		return operation.Refused(operation.Unknown, f.occupied())
	}
	return f.durable(place, f.result(c.manifest, c.entries))
}

// durable answers that the folder is there, once that would survive a loss of power.
func (f folder) durable(place *os.File, result protocol.PublicationResult) operation.Outcome {
	if err := f.hands.Do("sync", place.Sync); err != nil {
		return operation.Refused(operation.Unknown, refuse(err, "a folder at a destination cannot be made durable", f.name))
	}
	return operation.Done(result)
}

func (f folder) result(manifest []byte, entries []entry) protocol.PublicationResult {
	r := protocol.PublicationResult{Destination: f.destination, Name: f.name, Content: canonical.Sum(manifest), Files: int64(len(entries))}
	for _, e := range entries {
		r.Bytes += e.Size
	}
	return r
}

func (f folder) busy() error {
	return reason.New(reason.OutboxBusy, "another process makes the same folder", f.name, "let it finish, and send it again")
}

func (f folder) occupied() error {
	return reason.New(reason.OutboxOccupied, "something else stands under the name at the destination; it was left alone", f.name,
		"look at it, and move it away if it may go")
}

// resolve looks by name and digest. What was built and never renamed has no name to be
// found by, and is swept.
func (f folder) resolve(ctx context.Context, m mark) operation.Outcome {
	place, err := f.open()
	if err != nil {
		return operation.Refused(operation.Unknown, err)
	}
	defer place.Close()
	c, err := f.content(ctx, true)
	if err != nil {
		return operation.Refused(operation.Unknown, refuse(err, "what was sent cannot be read any more", f.name))
	}
	switch what, result, err := f.look(ctx, place, c); {
	case err != nil:
		return operation.Refused(operation.Unknown, refuse(err, "a destination cannot be read", f.name))
	case what == ours:
		return f.durable(place, result)
	case what == altered:
		return operation.Refused(operation.Unknown, reason.New(reason.OutboxOccupied, "the folder was made, and is not any more what was made", f.name,
			"look at it, and say what you found with resolve-ambiguous-effect"))
	case what == foreign:
		return m.absent(f.name, f.occupied())
	}
	switch err := f.whole().Sweep(place, nil); {
	case errors.Is(err, beneath.ErrBusy):
		return operation.Refused(operation.Unknown, f.busy()) // whoever is at work on it may give it its name
	case err != nil:
		return operation.Refused(operation.Unknown, refuse(err, "what is unfinished at a destination cannot be removed", f.name))
	}
	return m.absent(f.name, reason.New(reason.OutboxAbsent, "nothing stands under the name at the destination", f.name, "it may be sent again"))
}

// look compares what stands under the name with what is to stand there, byte for byte.
func (f folder) look(ctx context.Context, place *os.File, c *content) (found, protocol.PublicationResult, error) {
	none := protocol.PublicationResult{}
	dir, err := beneath.Open(place, f.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nothing, none, nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return foreign, none, nil
	case err != nil:
		return nothing, none, err
	}
	defer dir.Close()
	manifest, m, err := publication(dir)
	if err != nil {
		return foreign, none, nil // what is not readable as ours is not ours
	}
	if m.Proposal != c.id { // which covers the effector
		return foreign, none, nil
	}
	if c.exact && !bytes.Equal(manifest, c.manifest) || !containsAll(m.Files, c) {
		return altered, none, nil
	}
	names, err := beneath.Files(dir, len(m.Files)+1)
	if err != nil || len(names) != len(m.Files)+1 {
		return altered, none, nil // so is what cannot be listed
	}
	entries := make([]entry, len(m.Files))
	for i, want := range m.Files {
		entries[i].File = want
		same, err := holds(ctx, dir, want)
		if err != nil {
			return nothing, none, err
		}
		if !same {
			return altered, none, nil
		}
	}
	return ours, f.result(manifest, entries), nil
}

// containsAll reports whether a manifest names all that is to be there, but for what
// another version of a program may have written otherwise.
func containsAll(have []File, c *content) bool {
	for _, e := range c.entries {
		if e.Path == changesName {
			if !slices.ContainsFunc(have, func(f File) bool { return f.Path == changesName }) {
				return false
			}
			continue
		}
		if !slices.Contains(have, e.File) {
			return false
		}
	}
	return len(have) == len(c.entries)
}

func publication(dir *os.File) ([]byte, Publication, error) {
	var m Publication
	file, err := beneath.OpenFile(dir, manifestName)
	if err != nil {
		return nil, m, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, artifact.MaxDocument))
	if err != nil {
		return nil, m, err
	}
	if err := canonical.Decode(b, &m); err != nil {
		return nil, m, err
	}
	if m.Kind != PublicationKind {
		return nil, m, errors.New("it is of another kind")
	}
	return b, m, nil
}

// holds reports whether dir holds a file as it is wanted.
func holds(ctx context.Context, dir *os.File, want File) (bool, error) {
	file, err := beneath.OpenFile(dir, want.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, beneath.ErrIrregular):
		return false, nil
	case err != nil:
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	hash := canonical.NewHasher()
	if _, err := io.Copy(hash, io.LimitReader(beneath.Patient{Ctx: ctx, R: file}, want.Size+1)); err != nil {
		return false, err
	}
	return hash.Digest() == want.Digest && hash.Size() == want.Size && (info.Mode().Perm()&0o100 != 0) == want.Executable, nil
}

// build makes the folder complete and durable under its partial name. The folder that
// comes back is locked for as long as it is open.
func (f folder) build(ctx context.Context, place *os.File, c *content) (*os.File, error) {
	dir, err := f.whole().Build(ctx, place, func(b *beneath.Building) error {
		for _, e := range c.entries {
			if err := f.write(ctx, b, e); err != nil {
				return err
			}
		}
		return f.write(ctx, b, entry{File{Path: manifestName, Digest: canonical.Sum(c.manifest), Size: int64(len(c.manifest))},
			func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.manifest)), nil }})
	})
	if errors.Is(err, beneath.ErrBusy) {
		err = f.busy()
	}
	return dir, err
}

// write copies one file into the folder, with exactly the bytes that the proposal names.
func (f folder) write(ctx context.Context, b *beneath.Building, e entry) error {
	in, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer in.Close()
	digest, size, err := b.Add(e.Path, e.Executable, e.Size, in)
	if err == nil && (digest != e.Digest || size != e.Size) {
		err = reason.New(reason.ArtifactCorrupt, fmt.Sprintf("%s has other bytes than the proposal names", e.Path), string(e.Digest), "run `writ verify` to see the extent")
	}
	return err
}
