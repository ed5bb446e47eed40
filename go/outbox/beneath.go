package outbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/reason"
)

// beneath is how everything inside a destination is resolved: no link is followed and
// nothing leads out of it.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// hands change what is outside. Its zero value just does; a test may have at called before
// and after every step that changes something, and end it there.
type hands struct {
	at func(step string) error
}

func (h hands) do(step string, change func() error) error {
	if h.at == nil {
		return change()
	}
	if err := h.at("before " + step); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return h.at("after " + step)
}

// openPlace opens a folder of the deployment by its absolute path, no part of which may
// be a link.
func openPlace(where string) (*os.File, error) {
	f, err := openAt(unix.AT_FDCWD, where, unix.O_RDONLY|unix.O_DIRECTORY, 0, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
	if err == nil {
		return f, nil
	}
	what := "a destination cannot be opened"
	switch {
	case errors.Is(err, unix.ENOENT):
		what = "a destination is not there"
	case errors.Is(err, unix.ELOOP):
		what = "the path of a destination leads through a symbolic link"
	case errors.Is(err, unix.ENOTDIR):
		what = "a destination is no folder"
	}
	return nil, reason.New(reason.OutboxDestinationUnusable, what, where, "make the folder, or mend its path in "+DestinationsFile).Because(err)
}

func openAt(dir int, name string, flags int, mode uint32, resolve uint64) (*os.File, error) {
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

// openFolder opens a folder beneath dir.
func openFolder(dir *os.File, name string) (*os.File, error) {
	return openAt(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0, beneath)
}

// errIrregular says that a name does not lead to a regular file.
var errIrregular = errors.New("it is no regular file")

// openFile opens a regular file beneath dir for reading, without waiting on a pipe.
func openFile(dir *os.File, name string) (*os.File, error) {
	f, err := openAt(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0, beneath)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errIrregular
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// createFile creates a file beneath dir that was not there.
func createFile(dir *os.File, name string) (*os.File, error) {
	return openAt(int(dir.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600, beneath)
}

// folders makes the folders of a relative path beneath dir, and returns those it went
// through, outermost first. The caller closes them, also after an error.
func (h hands) folders(dir *os.File, name string) ([]*os.File, error) {
	var all []*os.File
	at := dir
	for segment := range strings.SplitSeq(name, "/") {
		err := h.do("mkdir", func() error {
			err := unix.Mkdirat(int(at.Fd()), segment, 0o755)
			if errors.Is(err, fs.ErrExist) {
				return nil
			}
			return err
		})
		if err != nil {
			return all, err
		}
		if at, err = openFolder(at, segment); err != nil {
			return all, err
		}
		all = append(all, at)
	}
	return all, nil
}

// unlock gives a locked folder back. Closing alone would not do: a program that is being
// started at this moment holds every descriptor until it runs, and the lock with it.
func unlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	_ = f.Close()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// remove removes name beneath dir with all that is in it. It follows no link.
func (h hands) remove(dir *os.File, name string) error {
	err := h.do("unlink", func() error { return unix.Unlinkat(int(dir.Fd()), name, 0) })
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM):
		return err
	}
	sub, err := openFolder(dir, name)
	if err != nil {
		return err
	}
	names, err := sub.Readdirnames(-1)
	for _, n := range names {
		err = errors.Join(err, h.remove(sub, n))
	}
	if err = errors.Join(err, sub.Close()); err != nil {
		return err
	}
	return h.do("rmdir", func() error { return unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR) })
}

// files lists every file below dir by its relative path, sorted, and refuses whatever is
// neither file nor folder. most bounds how many.
func files(dir *os.File, most int) ([]string, error) {
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
				sub, err := openFolder(d, n)
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
	again, err := openFolder(dir, ".") // a reading position of its own
	if err != nil {
		return nil, err
	}
	defer again.Close()
	err = walk(again, "", 0)
	slices.Sort(all)
	return all, err
}

// sameFile reports whether a name beneath dir still leads to f.
func sameFile(dir *os.File, name string, f *os.File) bool {
	var a, b unix.Stat_t
	return unix.Fstatat(int(dir.Fd()), name, &a, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		unix.Fstat(int(f.Fd()), &b) == nil && a.Ino == b.Ino && a.Dev == b.Dev
}

// refuse makes a refusal of an error that the operating system gave.
func refuse(err error, what, where string) error {
	if _, ok := reason.As(err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return reason.New(reason.OutboxFull, what+", because no space is left", where, "free some space, and send it again").Because(err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return reason.New(reason.OutboxDestinationUnusable, what+": "+err.Error(), where, "let the user who runs Writ write there, on a file system of this machine").Because(err)
	}
	return reason.New(reason.OutboxIO, what+": "+err.Error(), where, "check the disk and the folder, and send it again").Because(err)
}
