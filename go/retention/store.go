// Package retention keeps what an environment held when it ended, in a folder of its own
// below the state folder. No reducer, index or effector reads there: what is kept is for a
// person to look at, until its time is over.
//
// A folder appears under the environment's name complete and durable, or not at all, and
// goes the same way; so a later life finds by name whether a keeping took place.
package retention

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/beneath"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// Folder is the folder of what is kept, in a state folder.
const Folder = "retained"

// Store keeps, finds and removes what is kept in one state folder. It is safe for
// concurrent use; the same name is kept by one caller at a time.
type Store struct {
	state string
	now   func() lifecycle.Observation
	hands beneath.Hands
}

// Open returns the store of a state folder, which exists. now reads the host's clock.
func Open(state string, now func() lifecycle.Observation) *Store {
	return &Store{state: state, now: now}
}

// Where is the folder in which a resource's files stand while they are kept.
func Where(state, resource string) string { return filepath.Join(state, Folder, resource) }

// DoubtError says that it is not known whether the folder would survive a loss of power.
type DoubtError struct{ Err error }

// Error says so.
func (e *DoubtError) Error() string { return "whether it is kept is not known: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *DoubtError) Unwrap() error { return e.Err }

// Keep copies a workspace in which nothing runs any more. When it returns without an error,
// all of it is durable. Nothing that the source says of itself is relied on: neither how
// much there is, nor that a file has the size it was listed with. What was kept under the
// name before is left as it is, and returned.
//
// It fails with retention.nothing_left for a workspace without a file, and with
// retention.too_much, retention.unreadable, retention.full, retention.io and
// retention.occupied; then nothing stands under the name that was not there before. A
// *DoubtError is the exception.
func (s *Store) Keep(ctx context.Context, o Order, src artifact.Source) (protocol.Retention, error) {
	dir, err := s.open(true)
	if err != nil {
		return protocol.Retention{}, err
	}
	defer dir.Close()
	if r, found, err := s.look(ctx, dir, o.Resource); err != nil || found {
		return r, err
	}
	m, err := listed(ctx, o, src)
	if err != nil {
		return protocol.Retention{}, err
	}
	m.At = s.now()
	m.Until = o.Policy.Until(m.At)
	whole := s.whole(o.Resource)
	var raw []byte
	built, err := whole.Build(ctx, dir, func(b *beneath.Building) (err error) {
		raw, err = fill(ctx, b, &m, src)
		return err
	})
	if built != nil {
		defer beneath.Unlock(built)
	}
	if err != nil {
		if !errors.Is(err, beneath.ErrBusy) {
			_ = whole.Sweep(dir, built) // what stays is swept by whoever comes next
		}
		return protocol.Retention{}, refuse(err, "a workspace cannot be kept", o.Resource)
	}
	renamed, err := whole.Rename(dir)
	switch {
	case err != nil && !renamed:
		_ = whole.Sweep(dir, built)
		if errors.Is(err, fs.ErrExist) {
			return protocol.Retention{}, occupied(o.Resource)
		}
		return protocol.Retention{}, refuse(err, "what was kept cannot be given its name", o.Resource)
	case err == nil:
		err = s.hands.Do("sync", dir.Sync)
	}
	if err != nil {
		return protocol.Retention{}, &DoubtError{refuse(err, "a folder cannot be made durable", o.Resource)}
	}
	return m.result(raw), nil
}

// Find looks by name for what is kept. What was left unfinished under the name is swept.
// found is false where nothing stands under it; what stands there and is not what was kept
// is refused with retention.occupied.
func (s *Store) Find(ctx context.Context, resource string) (r protocol.Retention, found bool, err error) {
	dir, err := s.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, checkName(resource)
	}
	if err != nil {
		return r, false, err
	}
	defer dir.Close()
	if r, found, err = s.look(ctx, dir, resource); err != nil {
		return r, found, err
	}
	if err := s.whole(resource).Sweep(dir, nil); err != nil {
		return r, false, refuse(err, "what is unfinished cannot be removed", resource)
	}
	if !found {
		// Whoever was at work on it may have finished between the two.
		if r, found, err = s.look(ctx, dir, resource); err != nil {
			return r, found, err
		}
	}
	if found {
		// It may have been renamed by a life that ended before this.
		err = s.hands.Do("sync", dir.Sync)
	}
	if err != nil {
		return r, false, &DoubtError{refuse(err, "a folder cannot be made durable", resource)}
	}
	return r, found, nil
}

// Remove removes what is kept under a name, whole: what goes has lost its name before its
// first file. It is no error when nothing is there.
func (s *Store) Remove(resource string) error {
	if err := checkName(resource); err != nil {
		return err
	}
	dir, err := s.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	failed := func(err error) error { return refuse(err, "what was kept cannot be removed", resource) }
	whole := s.whole(resource)
	if err := whole.Sweep(dir, nil); err != nil {
		return failed(err)
	}
	err = s.hands.Do("rename", func() error {
		return unix.Renameat2(int(dir.Fd()), resource, int(dir.Fd()), whole.Partial(), unix.RENAME_NOREPLACE)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed(err)
	}
	if err := s.hands.Remove(dir, whole.Partial()); err != nil {
		return failed(err)
	}
	if err := s.hands.Do("sync", dir.Sync); err != nil {
		return failed(err)
	}
	return nil
}

// open opens the folder. One that is missing is made, or is fs.ErrNotExist. No link leads
// out of the state folder.
func (s *Store) open(make bool) (*os.File, error) {
	state, err := os.Open(s.state)
	if err != nil {
		return nil, refuse(err, "the state folder cannot be opened", s.state)
	}
	defer state.Close()
	made := false
	if make {
		err = s.hands.Do("mkdir", func() error { return unix.Mkdirat(int(state.Fd()), Folder, 0o700) })
		made = err == nil
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, refuse(err, "the folder of what is kept cannot be made", s.state)
	}
	dir, err := beneath.Open(state, Folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, reason.New(reason.RetentionOccupied, "the folder of what is kept is none", Folder, "move away what stands there").Because(err)
	case err != nil:
		return nil, refuse(err, "the folder of what is kept cannot be opened", Folder)
	case made:
		err = s.hands.Do("sync", state.Sync)
	}
	if err != nil {
		return nil, errors.Join(refuse(err, "the folder of what is kept cannot be made durable", s.state), dir.Close())
	}
	return dir, nil
}

func (s *Store) whole(resource string) beneath.Whole {
	return beneath.Whole{Hands: s.hands, Name: resource, Modes: beneath.Private()}
}

// look compares what stands under the name with its own manifest, byte for byte.
func (s *Store) look(ctx context.Context, place *os.File, resource string) (r protocol.Retention, found bool, err error) {
	if err := checkName(resource); err != nil {
		return r, false, err
	}
	dir, err := beneath.Open(place, resource)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, false, nil
	case err != nil:
		return r, false, occupied(resource).Because(err)
	}
	defer dir.Close()
	raw, m, err := read(dir)
	if err != nil || m.Kind != ManifestKind || m.Resource != resource {
		return r, false, occupied(resource).Because(err)
	}
	names, err := beneath.Files(dir, len(m.Files)+1)
	if err != nil || len(names) != len(m.Files)+1 {
		return r, false, occupied(resource).Because(err)
	}
	for _, f := range m.Files {
		same, err := holds(ctx, dir, f)
		if err != nil {
			return r, false, refuse(err, "what is kept cannot be read", resource)
		}
		if !same {
			return r, false, occupied(resource)
		}
	}
	return m.result(raw), true, nil
}

func read(dir *os.File) ([]byte, Manifest, error) {
	file, err := beneath.OpenFile(dir, manifestName)
	if err != nil {
		return nil, Manifest{}, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err != nil {
		return nil, Manifest{}, err
	}
	m, err := parse(raw)
	return raw, m, err
}

// holds reports whether dir holds a file as the manifest names it.
func holds(ctx context.Context, dir *os.File, want File) (bool, error) {
	file, err := beneath.OpenFile(dir, want.At)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, beneath.ErrIrregular):
		return false, nil
	case err != nil:
		return false, err
	}
	defer file.Close()
	hash := canonical.NewHasher()
	if _, err := io.Copy(hash, io.LimitReader(beneath.Patient{Ctx: ctx, R: file}, want.Size+1)); err != nil {
		return false, err
	}
	return hash.Digest() == want.Digest && hash.Size() == want.Size, nil
}

// listed takes the entries of a workspace, within the order's bounds. The digests are not
// known yet.
func listed(ctx context.Context, o Order, src artifact.Source) (Manifest, error) {
	m := Manifest{
		Kind: ManifestKind, Attempt: o.Attempt, Bundle: o.Bundle, Resource: o.Resource, Policy: o.Policy,
	}
	unreadable := func(what, path string) error {
		return reason.New(reason.RetentionUnreadable, what, protocol.EscapePath(path), "run again")
	}
	tooMuch := func(what string) error {
		return reason.New(reason.RetentionTooMuch, what, o.Resource, "this is a fault of the environment, which has limits: report it")
	}
	seen := map[string]bool{}
	var folders []string
	for e, err := range src.Entries(ctx) {
		switch {
		case err != nil:
			return m, err
		case int64(len(seen)) >= o.Files:
			return m, tooMuch(fmt.Sprintf("the workspace holds more than %d files and folders", o.Files))
		case seen[e.Path]:
			return m, unreadable("the workspace lists a path twice", e.Path)
		}
		seen[e.Path] = true
		switch {
		case e.Type == artifact.Dir:
			folders = append(folders, e.Path)
			continue
		case e.Type != artifact.File || e.Size < 0:
			return m, unreadable(fmt.Sprintf("the workspace lists a %s of %d bytes", e.Type, e.Size), e.Path)
		case e.Size > o.Bytes-m.Bytes:
			return m, tooMuch(fmt.Sprintf("the workspace holds more than %d bytes", o.Bytes))
		}
		m.Bytes += e.Size
		m.Files = append(m.Files, File{Path: e.Path, Size: e.Size})
	}
	if err := ctx.Err(); err != nil {
		return m, err
	}
	slices.SortFunc(m.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range m.Files {
		for at := f.Path; strings.Contains(at, "/"); {
			at = at[:strings.LastIndexByte(at, '/')]
			if _, file := slices.BinarySearchFunc(m.Files, at, func(f File, path string) int { return cmp.Compare(f.Path, path) }); file {
				return m, unreadable("the workspace lists something beneath a file", f.Path)
			}
		}
	}
	place(m.Files)
	m.Folders = emptyFolders(folders, m.Files)
	if len(m.Files) == 0 {
		return m, Nothing("its workspace held no file", o.Resource)
	}
	return m, nil
}

// fill copies every file, and the manifest last.
func fill(ctx context.Context, b *beneath.Building, m *Manifest, src artifact.Source) ([]byte, error) {
	for i := range m.Files {
		f := &m.Files[i]
		in, err := src.Open(ctx, f.Path)
		if err != nil {
			return nil, err
		}
		digest, size, err := b.Add(f.At, false, f.Size, in)
		if err = errors.Join(err, in.Close()); err != nil {
			return nil, err
		}
		if size != f.Size {
			return nil, reason.New(reason.RetentionUnreadable, fmt.Sprintf("a file serves other than the %d bytes that it was listed with", f.Size),
				protocol.EscapePath(f.Path), "run again")
		}
		f.Digest = digest
	}
	raw, err := canonical.Marshal(*m)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxManifest {
		return nil, reason.New(reason.RetentionTooMuch, fmt.Sprintf("the list of %d files takes %d bytes, more than %d", len(m.Files), len(raw), maxManifest),
			m.Resource, "have the tool write fewer files, or shorter names")
	}
	_, _, err = b.Add(manifestName, false, int64(len(raw)), bytes.NewReader(raw))
	return raw, err
}

// Nothing says why nothing of an environment can be kept.
func Nothing(why, resource string) *reason.Refusal {
	return reason.New(reason.RetentionNothingLeft, "nothing was kept: "+why, resource, "nothing is to be done; run again if it is needed")
}

func occupied(resource string) *reason.Refusal {
	return reason.New(reason.RetentionOccupied, "what stands where a workspace is kept is not what was kept; it was left alone", filepath.Join(Folder, resource),
		"look at it, and move it away")
}

// checkName refuses what is no name of a resource, but a path.
func checkName(resource string) error {
	if resource == "" || strings.HasPrefix(resource, ".") || strings.ContainsAny(resource, "/\x00") {
		return reason.New(reason.InternalBug, "a resource has an unusable name", fmt.Sprintf("%q", resource), "report it")
	}
	return nil
}

// refuse makes a refusal of an error that the operating system gave.
func refuse(err error, what, where string) error {
	if _, ok := reason.As(err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return reason.New(reason.RetentionFull, what+", because no space is left", where, "free some space").Because(err)
	}
	return reason.New(reason.RetentionIO, what+": "+err.Error(), where, "check the disk and the state folder").Because(err)
}
