package outbox

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/beneath"
	"github.com/writ-runtime/writ/go/reason"
)

// hands change what is outside, and know how to make what an effector makes.
type hands struct{ beneath.Hands }

// openPlace opens a folder of the deployment by its absolute path, no part of which may
// be a link.
func openPlace(where string) (*os.File, error) {
	f, err := beneath.OpenAt(unix.AT_FDCWD, where, unix.O_RDONLY|unix.O_DIRECTORY, 0, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
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

// stateFolder opens a folder of the state folder, and makes it, durably, where it is missing. No link leads out of the
// state folder.
func (h hands) stateFolder(where, name string) (*os.File, error) {
	state, err := os.Open(where)
	if err != nil {
		return nil, refuse(err, "the state folder cannot be opened", where)
	}
	defer state.Close()
	err = h.Do("mkdir", func() error { return unix.Mkdirat(int(state.Fd()), name, 0o700) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, refuse(err, "a folder cannot be made in the state folder", name)
	}
	dir, err := beneath.Open(state, name)
	if err != nil {
		return nil, reason.New(reason.OutboxDestinationUnusable, "a folder of the state folder is none", name, "move away what stands there").Because(err)
	}
	if err := h.Do("sync", state.Sync); err != nil {
		return nil, errors.Join(refuse(err, "a folder of the state folder cannot be made durable", name), dir.Close())
	}
	return dir, nil
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
