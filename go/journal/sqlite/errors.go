package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/writ-runtime/writ/go/reason"
)

// resultCode returns SQLite's extended result code, or 0 for another error.
func resultCode(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// malformed reports whether SQLite found the file itself damaged.
func malformed(err error) bool {
	switch resultCode(err) & 0xff {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_FORMAT, lib.SQLITE_ERROR, lib.SQLITE_SCHEMA:
		// SQLITE_ERROR: our statements are fixed, so one that does not compile means
		// that the stored schema changed under them.
		return true
	}
	return false
}

// refuse makes a refusal of an error that SQLite gave while doing something to the
// journal at path. What is a refusal already, and the end of a context, stay what
// they are.
func refuse(err error, doing, path string) error {
	if _, ok := reason.As(err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	code := resultCode(err)
	switch code & 0xff {
	case lib.SQLITE_NOTADB:
		return foreign(path, "the file is no SQLite database").Because(err)
	case lib.SQLITE_CORRUPT, lib.SQLITE_FORMAT, lib.SQLITE_ERROR, lib.SQLITE_SCHEMA:
		return reason.New(reason.JournalCorrupt, "SQLite finds the journal damaged while "+doing, path,
			"keep the file, and restore it from a copy that `writ verify` accepts, or see `writ recover`").Because(err)
	case lib.SQLITE_CONSTRAINT:
		return reason.New(reason.JournalCorrupt, "an index of the journal contradicts it, found while "+doing, path,
			"run `writ verify` to see the extent").Because(err)
	case lib.SQLITE_FULL:
		return reason.New(reason.JournalFull, "no space is left while "+doing, path, "free some space and run again").Because(err)
	case lib.SQLITE_READONLY, lib.SQLITE_PERM:
		return readOnly(path, "the journal cannot be written").Because(err)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return reason.New(reason.JournalLocked, "another program holds SQLite's lock while "+doing, path,
			"end the program that has the file open, and run again").Because(err)
	}
	if strings.Contains(err.Error(), "no space left") {
		return reason.New(reason.JournalFull, "no space is left while "+doing, path, "free some space and run again").Because(err)
	}
	return reason.New(reason.JournalIO, "the journal fails while "+doing, path, "check the disk and the permissions, and run again").Because(err)
}

func foreign(path, what string) *reason.Refusal {
	return reason.New(reason.JournalForeignFile, what, path, "choose another folder with --state, or move the file away")
}

func readOnly(path, what string) *reason.Refusal {
	return reason.New(reason.JournalReadOnly, what, path, "give write permission on the folder, or choose another with --state")
}

// refuseOS makes a refusal of an error that the operating system gave.
func refuseOS(err error, what, path string) error {
	if _, ok := reason.As(err); ok {
		return err
	}
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return readOnly(path, what).Because(err)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return reason.New(reason.JournalFull, what+", because no space is left", path, "free some space and run again").Because(err)
	}
	return reason.New(reason.JournalIO, what, path, "check the disk and the permissions, and run again").Because(err)
}
