package sqlite

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// makeFolder makes the state folder for its owner alone. Where no journal stands in it yet
// its name is made durable, and that of every folder above it: an earlier start may have
// made them, and failed before it could.
func makeFolder(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, fileName)); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		// What may not be read was not made here.
		if err := syncFolder(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// syncFolder makes the names in a folder durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil // The file system keeps its names in another way, if at all.
	}
	return errors.Join(err, f.Close())
}

// rewrite makes durable what can be read of the write-ahead log. A writer whose sync failed
// may have ended before it could say so; then what it wrote stands in the page cache, no sync
// will ever write it, and what is recorded after it would rest on it. Writing the same bytes
// again either brings them to the disk or fails. Readers beside it see no difference. After a
// writer that closed the journal there is no log.
func rewrite(log string) error {
	f, err := os.OpenFile(log, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	chunk := make([]byte, 1<<20)
	var at int64
	for {
		n, err := f.ReadAt(chunk, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(err, f.Close())
		}
		if n == 0 {
			break
		}
		if _, err := f.WriteAt(chunk[:n], at); err != nil {
			return errors.Join(err, f.Close())
		}
		at += int64(n)
	}
	if at > 0 {
		err = unix.Fdatasync(int(f.Fd()))
	}
	return errors.Join(err, f.Close())
}
