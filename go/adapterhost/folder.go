package adapterhost

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// folderPrefix begins the names of socket folders.
const folderPrefix = "writ-a."

// folderLock is the file in a socket folder that its host keeps locked: the kernel frees
// it exactly when the host is dead, whichever process namespace looks.
const folderLock = "lock"

// unlocked is how old a folder without a lock has to be before it counts as abandoned: a
// host makes the one right after the other.
const unlocked = time.Minute

// MaxFolder is the longest base folder in bytes: a socket's path has to fit into 107, of which the folder of one
// start takes up to 18 and go-plugin's names 38.
const MaxFolder = 48

// folder is the private folder of the sockets of one start.
type folder struct {
	path string
	lock *os.File
}

// newFolder makes a folder in base, empty for the system's folder for temporary files.
func newFolder(base string) (*folder, error) {
	if base == "" {
		base = os.TempDir()
	}
	if len(base) > MaxFolder {
		return nil, fmt.Errorf("the path %s is longer than %d bytes, too long for sockets", base, MaxFolder)
	}
	path, err := os.MkdirTemp(base, folderPrefix)
	if err != nil {
		return nil, fmt.Errorf("make socket folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, folderLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		if err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return &folder{path, lock}, nil
		}
		err = errors.Join(err, lock.Close())
	}
	return nil, fmt.Errorf("lock socket folder: %w", errors.Join(err, os.RemoveAll(path)))
}

// remove removes the folder.
func (f *folder) remove() {
	_ = os.RemoveAll(f.path)
	_ = f.lock.Close()
}

// Sweep removes the socket folders that killed hosts left in base (empty for the system's folder for temporary
// files). Those of living hosts stay. A host calls it once when it starts.
func Sweep(base string) error {
	if base == "" {
		base = os.TempDir()
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("sweep socket folders: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), folderPrefix) {
			errs = append(errs, sweep(filepath.Join(base, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// sweep removes one folder if nobody holds its lock.
func sweep(path string) error {
	lock, err := os.OpenFile(filepath.Join(path, folderLock), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < unlocked {
			return nil // Gone meanwhile, or being made.
		}
		return os.RemoveAll(path)
	}
	if err != nil {
		return nil // Another user's.
	}
	defer lock.Close()
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil // Its host lives.
	}
	return os.RemoveAll(path)
}
