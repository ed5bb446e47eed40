package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// folder makes a complete folder appear under one name at a place, once. It is built under
// a name that begins with a dot, made durable, and renamed; the rename replaces nothing.
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

func (f folder) partial() string { return ".writ-" + f.name }

func (f folder) reachable() error {
	place, err := f.open()
	if err == nil {
		err = place.Close()
	}
	return err
}

func (f folder) perform(ctx context.Context) operation.Outcome {
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
		defer unlock(built)
	}
	if err != nil {
		err = refuse(err, "a folder cannot be made at a destination", f.name)
		if !reason.Is(err, reason.OutboxBusy) {
			_ = f.sweep(place, built) // what stays is swept by whoever comes next
		}
		return operation.Refused(operation.NotApplied, err)
	}
	return f.publish(ctx, place, built, c)
}

// publish renames what was built. From here on a failure leaves a doubt.
func (f folder) publish(ctx context.Context, place, built *os.File, c *content) operation.Outcome {
	var renamed bool
	err := f.hands.do("rename", func() error {
		err := unix.Renameat2(int(place.Fd()), f.partial(), int(place.Fd()), f.name, unix.RENAME_NOREPLACE)
		renamed = err == nil
		return err
	})
	switch {
	case errors.Is(err, fs.ErrExist):
		_ = f.sweep(place, built)
		return operation.Refused(operation.NotApplied, f.occupied())
	case err != nil && !renamed:
		_ = f.sweep(place, built)
		return operation.Refused(operation.NotApplied, refuse(err, "a finished folder cannot be given its name", f.name))
	case err != nil:
		return operation.Refused(operation.Unknown, refuse(err, "whether a finished folder keeps its name is not known", f.name))
	case !sameFile(place, f.name, built):
		return operation.Refused(operation.Unknown, f.occupied())
	}
	return f.durable(place, f.result(c.manifest, c.entries))
}

// durable answers that the folder is there, once that would survive a loss of power.
func (f folder) durable(place *os.File, result protocol.PublicationResult) operation.Outcome {
	if err := f.hands.do("sync", place.Sync); err != nil {
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

func (f folder) occupied() error {
	return reason.New(reason.OutboxOccupied, "something else stands under the name at the destination; it was left alone", f.name,
		"look at it, and move it away if it may go")
}

// resolve looks by name and digest. What was built and never renamed has no name to be
// found by, and is swept.
func (f folder) resolve(ctx context.Context) operation.Outcome {
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
		return operation.Refused(operation.NotApplied, f.occupied())
	}
	if err := f.sweep(place, nil); err != nil {
		return operation.Refused(operation.Unknown, refuse(err, "what is unfinished at a destination cannot be removed", f.name))
	}
	return operation.Refused(operation.NotApplied, reason.New(reason.OutboxAbsent, "nothing stands under the name at the destination", f.name, "it may be sent again"))
}

// look compares what stands under the name with what is to stand there, byte for byte.
func (f folder) look(ctx context.Context, place *os.File, c *content) (found, protocol.PublicationResult, error) {
	none := protocol.PublicationResult{}
	dir, err := openFolder(place, f.name)
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
	names, err := files(dir, len(m.Files)+1)
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
	file, err := openFile(dir, manifestName)
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
	file, err := openFile(dir, want.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, errIrregular):
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
	if _, err := io.Copy(hash, io.LimitReader(patient{ctx, file}, want.Size+1)); err != nil {
		return false, err
	}
	return hash.Digest() == want.Digest && hash.Size() == want.Size && (info.Mode().Perm()&0o100 != 0) == want.Executable, nil
}

// patient reads until its context ends.
type patient struct {
	ctx context.Context
	r   io.Reader
}

func (p patient) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}

// build makes the folder complete and durable under its partial name. The folder that
// comes back is locked for as long as it is open.
func (f folder) build(ctx context.Context, place *os.File, c *content) (*os.File, error) {
	dir, err := f.claim(place)
	if err != nil {
		return nil, err
	}
	for _, e := range c.entries {
		if err := f.write(ctx, dir, e); err != nil {
			return dir, err
		}
	}
	manifest := entry{File{Path: manifestName, Digest: canonical.Sum(c.manifest), Size: int64(len(c.manifest))},
		func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.manifest)), nil }}
	if err := f.write(ctx, dir, manifest); err != nil {
		return dir, err
	}
	if err := f.hands.do("chmod", func() error { return dir.Chmod(0o755) }); err != nil {
		return dir, err
	}
	return dir, f.syncFolders(dir, c.entries)
}

// claim makes the partial folder and locks it. One that an earlier life left is emptied;
// one that somebody holds is refused with outbox.busy.
func (f folder) claim(place *os.File) (*os.File, error) {
	busy := reason.New(reason.OutboxBusy, "another process makes the same folder", f.name, "let it finish, and send it again")
	err := f.hands.do("mkdir", func() error { return unix.Mkdirat(int(place.Fd()), f.partial(), 0o700) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := openFolder(place, f.partial())
	if err != nil {
		return nil, err
	}
	if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || !sameFile(place, f.partial(), dir) {
		unlock(dir)
		return nil, busy
	}
	again, err := openFolder(dir, ".")
	if err != nil {
		return dir, err
	}
	names, err := again.Readdirnames(-1)
	for _, n := range names {
		err = errors.Join(err, f.hands.remove(dir, n))
	}
	return dir, errors.Join(err, again.Close())
}

// sweep removes a partial folder that nobody holds but the caller: held is that folder, or
// nil.
func (f folder) sweep(place, held *os.File) error {
	if held != nil {
		if !sameFile(place, f.partial(), held) {
			return nil
		}
		return f.hands.remove(place, f.partial())
	}
	dir, err := openFolder(place, f.partial())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil // not made here
	case err != nil:
		return err
	}
	defer unlock(dir)
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil // somebody is at work on it, and sweeps it
	}
	return f.hands.remove(place, f.partial())
}

// write copies one file into the folder, checked and durable, with the folders it lies in.
func (f folder) write(ctx context.Context, dir *os.File, e entry) error {
	way, name := []*os.File{dir}, e.Path
	if i := strings.LastIndexByte(e.Path, '/'); i >= 0 {
		made, err := f.hands.folders(dir, e.Path[:i])
		defer closeAll(made)
		if err != nil {
			return err
		}
		way, name = append(way, made...), e.Path[i+1:]
	}
	var out *os.File
	err := f.hands.do("create", func() (err error) {
		out, err = createFile(way[len(way)-1], name)
		return err
	})
	if out != nil {
		defer out.Close()
	}
	if err != nil {
		return err
	}
	return f.fill(ctx, out, e)
}

// syncFolders opens every folder to readers and makes the names in it durable, the innermost
// first.
func (f folder) syncFolders(dir *os.File, entries []entry) error {
	inner := map[string]bool{}
	for _, e := range entries {
		for i := strings.LastIndexByte(e.Path, '/'); i > 0; i = strings.LastIndexByte(e.Path[:i], '/') {
			inner[e.Path[:i]] = true
		}
	}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(inner))) {
		at, err := openFolder(dir, name)
		if err != nil {
			return err
		}
		err = f.hands.do("chmod", func() error { return at.Chmod(0o755) })
		if err == nil {
			err = f.hands.do("sync", at.Sync)
		}
		if err = errors.Join(err, at.Close()); err != nil {
			return err
		}
	}
	return f.hands.do("sync", dir.Sync)
}

func (f folder) fill(ctx context.Context, out *os.File, e entry) error {
	in, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer in.Close()
	hash := canonical.NewHasher()
	err = f.hands.do("write", func() error {
		_, err := io.Copy(io.MultiWriter(hash, out), io.LimitReader(patient{ctx, in}, e.Size+1))
		return err
	})
	if err != nil {
		return err
	}
	if hash.Digest() != e.Digest || hash.Size() != e.Size {
		return reason.New(reason.ArtifactCorrupt, fmt.Sprintf("%s has other bytes than the proposal names", e.Path), string(e.Digest), "run `writ verify` to see the extent")
	}
	mode := fs.FileMode(0o644)
	if e.Executable {
		mode = 0o755
	}
	if err := f.hands.do("chmod", func() error { return out.Chmod(mode) }); err != nil {
		return err
	}
	return f.hands.do("sync", out.Sync)
}
