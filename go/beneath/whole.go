package beneath

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
)

// ErrBusy says that another process makes the same folder.
var ErrBusy = errors.New("another process makes the same folder")

// Modes are the permissions of what a folder is made of.
type Modes struct{ Folder, File, Program fs.FileMode }

// Shared are the permissions of what everybody may read.
func Shared() Modes { return Modes{Folder: 0o755, File: 0o644, Program: 0o755} }

// Private are the permissions of what is its owner's alone, and nobody's to run.
func Private() Modes { return Modes{Folder: 0o700, File: 0o600, Program: 0o600} }

// Whole makes a complete folder appear under one name at a place, once. It is built under
// a name that begins with a dot, made durable, and renamed; the rename replaces nothing.
type Whole struct {
	Hands Hands
	Name  string
	Modes Modes
}

// Partial is the name under which the folder is built.
func (w Whole) Partial() string { return ".writ-" + w.Name }

// Build makes the folder complete and durable under its partial name: fill adds its files.
// The folder that comes back, after an error too unless it is nil, is locked for as long as
// it is open. The error is ErrBusy where somebody else is at work on it.
func (w Whole) Build(ctx context.Context, place *os.File, fill func(*Building) error) (*os.File, error) {
	dir, err := w.claim(place)
	if err != nil {
		return nil, err
	}
	b := &Building{whole: w, ctx: ctx, dir: dir, inner: map[string]bool{}}
	if err := fill(b); err != nil {
		return dir, err
	}
	if err := w.Hands.Do("chmod", func() error { return dir.Chmod(w.Modes.Folder) }); err != nil {
		return dir, err
	}
	return dir, b.syncFolders()
}

// claim makes the partial folder and locks it. One that an earlier life left is emptied.
func (w Whole) claim(place *os.File) (*os.File, error) {
	err := w.Hands.Do("mkdir", func() error { return unix.Mkdirat(int(place.Fd()), w.Partial(), 0o700) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := Open(place, w.Partial())
	if err != nil {
		return nil, err
	}
	if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || !Same(place, w.Partial(), dir) {
		Unlock(dir)
		return nil, ErrBusy
	}
	again, err := Open(dir, ".")
	if err != nil {
		return dir, err
	}
	names, err := again.Readdirnames(-1)
	for _, n := range names {
		err = errors.Join(err, w.Hands.Remove(dir, n))
	}
	return dir, errors.Join(err, again.Close())
}

// Rename gives what was built its name. Without renamed nothing stands under the name that
// was not there before; fs.ErrExist says that something was.
func (w Whole) Rename(place *os.File) (renamed bool, err error) {
	err = w.Hands.Do("rename", func() error {
		err := unix.Renameat2(int(place.Fd()), w.Partial(), int(place.Fd()), w.Name, unix.RENAME_NOREPLACE)
		renamed = err == nil
		return err
	})
	return renamed, err
}

// Sweep removes a partial folder that nobody holds but the caller: held is that folder, or
// nil. The error is ErrBusy where somebody else is at work on it; then it is theirs to sweep.
func (w Whole) Sweep(place, held *os.File) error {
	if held != nil {
		if !Same(place, w.Partial(), held) {
			return nil
		}
		return w.Hands.Remove(place, w.Partial())
	}
	dir, err := Open(place, w.Partial())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil // not made here
	case err != nil:
		return err
	}
	defer Unlock(dir)
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return ErrBusy
	}
	return w.Hands.Remove(place, w.Partial())
}

// Building is a folder that is being built.
type Building struct {
	whole Whole
	ctx   context.Context
	dir   *os.File
	// inner are the folders in it, by their relative paths.
	inner map[string]bool
}

// Add copies one file into the folder, durable, with the folders it lies in. It reads at
// most most+1 bytes, and returns what it read: judging that is the caller's business.
func (b *Building) Add(path string, executable bool, most int64, in io.Reader) (canonical.Digest, int64, error) {
	hands := b.whole.Hands
	way, name := []*os.File{b.dir}, path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		made, err := hands.Folders(b.dir, path[:i], uint32(b.whole.Modes.Folder))
		defer CloseAll(made)
		if err != nil {
			return "", 0, err
		}
		way, name = append(way, made...), path[i+1:]
	}
	for at := path; strings.Contains(at, "/"); {
		at = at[:strings.LastIndexByte(at, '/')]
		b.inner[at] = true
	}
	var out *os.File
	err := hands.Do("create", func() (err error) {
		out, err = Create(way[len(way)-1], name)
		return err
	})
	if out != nil {
		defer out.Close()
	}
	if err != nil {
		return "", 0, err
	}
	hash := canonical.NewHasher()
	err = hands.Do("write", func() error {
		_, err := io.Copy(io.MultiWriter(hash, out), io.LimitReader(Patient{b.ctx, in}, most+1))
		return err
	})
	if err != nil {
		return "", 0, err
	}
	mode := b.whole.Modes.File
	if executable {
		mode = b.whole.Modes.Program
	}
	if err := hands.Do("chmod", func() error { return out.Chmod(mode) }); err != nil {
		return "", 0, err
	}
	return hash.Digest(), hash.Size(), hands.Do("sync", out.Sync)
}

// syncFolders gives every folder its permissions and makes the names in it durable, the
// innermost first.
func (b *Building) syncFolders() error {
	hands := b.whole.Hands
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(b.inner))) {
		at, err := Open(b.dir, name)
		if err != nil {
			return err
		}
		err = hands.Do("chmod", func() error { return at.Chmod(b.whole.Modes.Folder) })
		if err == nil {
			err = hands.Do("sync", at.Sync)
		}
		if err = errors.Join(err, at.Close()); err != nil {
			return err
		}
	}
	return hands.Do("sync", b.dir.Sync)
}

// Patient reads until its context ends.
type Patient struct {
	Ctx context.Context
	R   io.Reader
}

// Read implements io.Reader.
func (p Patient) Read(b []byte) (int, error) {
	if err := p.Ctx.Err(); err != nil {
		return 0, err
	}
	return p.R.Read(b)
}
