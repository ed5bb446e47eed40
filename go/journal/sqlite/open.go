package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/reason"
)

// Options say how a journal is opened.
type Options struct {
	// Write takes the writer lock, makes the journal if there is none, and raises the
	// epoch. Without it nothing is written and no lock is needed; a writer may be live.
	Write bool
	// Activity says what this process is doing, for example "writ run order.yaml". A
	// process that finds the journal locked shows it to its person.
	Activity string
}

// Open opens the journal in the state folder dir. Whoever opened it closes it.
//
// It refuses with journal.missing (reading, and there is none), journal.locked,
// journal.foreign_file, journal.newer_version, journal.read_only, journal.full,
// journal.corrupt or journal.io. A journal that is halted, or whose last batch does
// not hold, is opened: it can be read, and Health and Append say why no more.
//
// As a process-wide effect, SQLite is told to lock by open file description, so that
// no other reader of the file in this process can strip the locks, and to sync by
// fdatasync, which keeps a commit as durable for half the time.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", dir, err)
	}
	tellDriver()
	s := &Store{dir: dir, path: filepath.Join(dir, fileName)}
	if o.Write {
		err = s.openWriter(ctx, o.Activity)
	} else {
		err = s.openReader(ctx)
	}
	if err != nil {
		s.abandon()
		return nil, err
	}
	return s, nil
}

// tellDriver sets what SQLite takes for a whole process.
func tellDriver() {
	// Both fail only where the platform has no such thing; then the defaults serve.
	_, _ = driver.OFDLocking(true)
	_, _ = driver.Fdatasync(true)
}

func missing(path string) *reason.Refusal {
	return reason.New(reason.JournalMissing, "no journal stands there yet", path,
		"it is made with the first `writ run`; see --state for another folder")
}

func (s *Store) openWriter(ctx context.Context, activity string) error {
	if err := makeFolder(s.dir); err != nil {
		return refuseOS(err, "the state folder cannot be made", s.dir)
	}
	var err error
	if s.lock, err = lockWriter(s.dir, activity); err != nil {
		return err
	}
	if err := createFile(s.path); err != nil {
		return refuseOS(err, "the journal cannot be made", s.path)
	}
	if err := rewrite(s.path + "-wal"); err != nil {
		return refuseOS(err, "what the last writer left cannot be made durable", s.path)
	}
	if s.wdb, err = sql.Open("sqlite", dsn(s.path, "rw", "synchronous(FULL)", "wal_autocheckpoint("+strconv.Itoa(walPages)+")",
		"journal_size_limit("+strconv.Itoa(walPages*4096)+")")); err != nil {
		return refuse(err, "opening it", s.path)
	}
	s.wdb.SetMaxOpenConns(1)
	if s.conn, err = s.wdb.Conn(ctx); err != nil {
		return refuse(err, "opening it", s.path)
	}
	fresh, err := s.identify(ctx, s.conn)
	if err != nil {
		return err
	}
	if err := s.useLog(ctx); err != nil {
		return refuse(err, "opening it", s.path)
	}
	if fresh {
		if err := s.create(ctx); err != nil {
			return refuse(err, "making it", s.path)
		}
	}
	if err := s.inspect(ctx, s.conn, func(d journal.Damage) { s.latch(ctx, d) }); err != nil {
		return err
	}
	if err := s.openPool("ro"); err != nil {
		return err
	}
	if s.Health() != nil {
		return nil // nothing may be written, the epoch neither
	}
	return s.startWriter(ctx)
}

func (s *Store) openReader(ctx context.Context) error {
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing(s.path)
	case err != nil:
		return refuseOS(err, "the journal cannot be looked at", s.path)
	case !info.Mode().IsRegular():
		return foreign(s.path, "the journal is no regular file")
	}
	s.opened = info
	if err := s.openPool("ro"); err != nil {
		return err
	}
	fresh, err := s.identify(ctx, s.pool)
	if err != nil && s.cannotShare(err) {
		// SQLite needs to write beside a journal even to read it, but for one that
		// nobody can have open.
		if err = s.openFrozen(); err == nil {
			fresh, err = s.identify(ctx, s.pool)
		}
	}
	if err != nil {
		return err
	}
	if fresh {
		return reason.New(reason.JournalMissing, "the journal is only being made", s.path, "run again in a moment")
	}
	s.readOnly = readOnly(s.path, "the journal is opened for reading")
	return s.inspect(ctx, s.pool, func(d journal.Damage) { s.damaged.Store(&d) })
}

// cannotShare reports whether an opening may have failed only because the files beside
// the journal, through which readers and a writer share it, cannot be made.
func (s *Store) cannotShare(err error) bool {
	switch resultCode(err) & 0xff {
	case lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY, lib.SQLITE_PERM, lib.SQLITE_IOERR:
		return unix.Access(s.dir, unix.W_OK) != nil
	}
	return false
}

// openFrozen opens a journal in a folder that cannot be written as a file that cannot
// change. That is sound only while nobody changes it: every read looks afterwards.
func (s *Store) openFrozen() error {
	_ = s.pool.Close()
	s.pool = nil
	info, err := os.Stat(s.path)
	if err != nil {
		return refuseOS(err, "the journal cannot be looked at", s.path)
	}
	s.frozen = info
	if err := s.thawed(); err != nil {
		return err
	}
	return s.openPool("ro&immutable=1")
}

// thawed refuses once a journal that was opened as one that cannot change has a
// write-ahead log, or is no longer the file it was.
func (s *Store) thawed() error {
	log, err := os.Stat(s.path + "-wal")
	used := err == nil && log.Size() > 0
	now, err := os.Stat(s.path)
	if used || err != nil || now.Size() != s.frozen.Size() || !now.ModTime().Equal(s.frozen.ModTime()) {
		return reason.New(reason.JournalReadOnly,
			"the journal is in use, or was left open by a crash, and its folder cannot be written, which reading it needs then", s.path,
			"give write permission on the folder, or run once as its owner")
	}
	return nil
}

func (s *Store) openPool(mode string) error {
	pool, err := sql.Open("sqlite", dsn(s.path, mode, "query_only(1)"))
	if err != nil {
		return refuse(err, "opening it", s.path)
	}
	pool.SetMaxOpenConns(readers)
	pool.SetMaxIdleConns(readers)
	s.pool = pool
	return nil
}

// dsn names a file and the pragmas of every connection to it. The file is not made:
// createFile does that with the right permissions.
func dsn(path, mode string, pragmas ...string) string {
	u := url.URL{Scheme: "file", Path: path}
	var b strings.Builder
	fmt.Fprintf(&b, "%s?mode=%s&_txlock=deferred&_error_rc=1&_defensive=1", u.String(), mode)
	for _, p := range append([]string{"busy_timeout(5000)", "foreign_keys(1)", "recursive_triggers(1)", "trusted_schema(0)", "cell_size_check(1)"}, pragmas...) {
		b.WriteString("&_pragma=" + url.QueryEscape(p))
	}
	return b.String()
}

// createFile makes an empty journal for its owner alone, unless there is a file.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		info, err := os.Lstat(path)
		if err == nil && !info.Mode().IsRegular() {
			return foreign(path, "the journal is no regular file")
		}
		return err
	}
	if err != nil {
		return err
	}
	return f.Close()
}
