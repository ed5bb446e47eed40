// Package beneath works inside a folder that is held open: no link is followed, nothing
// leads out of it, and a folder that is to appear there appears whole or not at all.
package beneath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// within is how everything inside a folder is resolved: no link is followed and nothing
// leads out of it.
const within = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// Hands change what is outside. Its zero value just does; a test may have At called before
// and after every step that changes something, and end it there.
type Hands struct {
	At func(step string) error
}

// Do makes one change. step names it.
func (h Hands) Do(step string, change func() error) error {
	if h.At == nil {
		return change()
	}
	if err := h.At("before " + step); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return h.At("after " + step)
}

// OpenAt opens a name that is resolved from dir, or absolute, as the flags and the rules of
// openat2 say. It is for what Open and its siblings are too narrow for.
func OpenAt(dir int, name string, flags int, mode uint32, resolve uint64) (*os.File, error) {
	for {
		fd, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC, Mode: uint64(mode), Resolve: resolve})
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return os.NewFile(uintptr(fd), name), nil
	}
}

// Open opens a folder beneath dir.
func Open(dir *os.File, name string) (*os.File, error) {
	return OpenAt(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0, within)
}

// ErrIrregular says that a name does not lead to a regular file.
var ErrIrregular = errors.New("it is no regular file")

// OpenFile opens a regular file beneath dir for reading, without waiting on a pipe.
func OpenFile(dir *os.File, name string) (*os.File, error) {
	f, err := OpenAt(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0, within)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrIrregular
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Create creates a file beneath dir that was not there.
func Create(dir *os.File, name string) (*os.File, error) {
	return OpenAt(int(dir.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600, within)
}

// Folders makes the folders of a relative path beneath dir, and returns those it went
// through, outermost first. The caller closes them, also after an error.
func (h Hands) Folders(dir *os.File, name string, mode uint32) ([]*os.File, error) {
	var all []*os.File
	at := dir
	for segment := range strings.SplitSeq(name, "/") {
		err := h.Do("mkdir", func() error {
			err := unix.Mkdirat(int(at.Fd()), segment, mode)
			if errors.Is(err, fs.ErrExist) {
				return nil
			}
			return err
		})
		if err != nil {
			return all, err
		}
		if at, err = Open(at, segment); err != nil {
			return all, err
		}
		all = append(all, at)
	}
	return all, nil
}

// Unlock gives a locked folder back. Closing alone would not do: a program that is being
// started at this moment holds every descriptor until it runs, and the lock with it.
func Unlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	_ = f.Close()
}

// CloseAll closes files that were only read, or whose bytes are durable.
func CloseAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// Remove removes name beneath dir with all that is in it. It follows no link.
func (h Hands) Remove(dir *os.File, name string) error {
	err := h.Do("unlink", func() error { return unix.Unlinkat(int(dir.Fd()), name, 0) })
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM):
		return err
	}
	sub, err := Open(dir, name)
	if err != nil {
		return err
	}
	names, err := sub.Readdirnames(-1)
	for _, n := range names {
		err = errors.Join(err, h.Remove(sub, n))
	}
	if err = errors.Join(err, sub.Close()); err != nil {
		return err
	}
	return h.Do("rmdir", func() error { return unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR) })
}

// Files lists every file below dir by its relative path, sorted, and refuses whatever is
// neither file nor folder. most bounds how many.
func Files(dir *os.File, most int) ([]string, error) {
	var all []string
	var walk func(d *os.File, prefix string, depth int) error
	walk = func(d *os.File, prefix string, depth int) error {
		if depth > 64 {
			return errors.New("folders lie too deep within each other")
		}
		names, err := d.Readdirnames(-1)
		if err != nil {
			return err
		}
		for _, n := range names {
			var st unix.Stat_t
			if err := unix.Fstatat(int(d.Fd()), n, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return err
			}
			switch st.Mode & unix.S_IFMT {
			case unix.S_IFREG:
				if all = append(all, path.Join(prefix, n)); len(all) > most {
					return fmt.Errorf("there are more than %d files", most)
				}
			case unix.S_IFDIR:
				sub, err := Open(d, n)
				if err != nil {
					return err
				}
				if err := errors.Join(walk(sub, path.Join(prefix, n), depth+1), sub.Close()); err != nil {
					return err
				}
			default:
				return fmt.Errorf("%s is neither file nor folder", path.Join(prefix, n))
			}
		}
		return nil
	}
	again, err := Open(dir, ".") // a reading position of its own
	if err != nil {
		return nil, err
	}
	defer again.Close()
	err = walk(again, "", 0)
	slices.Sort(all)
	return all, err
}

// Same reports whether a name beneath dir still leads to f.
func Same(dir *os.File, name string, f *os.File) bool {
	var a, b unix.Stat_t
	return unix.Fstatat(int(dir.Fd()), name, &a, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		unix.Fstat(int(f.Fd()), &b) == nil && a.Ino == b.Ino && a.Dev == b.Dev
}
