// Package sqlite keeps the journal in one SQLite file: journal.db in the state folder,
// write-ahead log, synchronous=FULL. One process writes, under a lock that the kernel
// releases with it; any number read, also while it writes.
//
// The chain covers bodies and sequences. Everything else in the file is an index that
// Verify holds against the bodies and that can be rebuilt from them.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/reason"
)

const (
	// walPages is the size at which a commit copies the write-ahead log into the file,
	// in pages of 4 KiB: 64 MiB. Small logs halve the rate; large ones lengthen the
	// opening after a crash.
	walPages = 16384
	// readers bounds the connections that read at once.
	readers = 4
)

// Store is an open journal. It is safe for concurrent use.
type Store struct {
	dir, path string
	lock      *writerLock // nil when reading
	wdb       *sql.DB     // holds conn alone
	conn      *sql.Conn   // the writer's; its goroutine has it while it runs
	pool      *sql.DB     // the readers'
	frozen    fs.FileInfo // of a file that the pool treats as one that cannot change
	opened    fs.FileInfo // the file that a store for reading has open
	readOnly  *reason.Refusal
	epoch     uint64

	// damaged is set once damage was found, and never cleared.
	damaged atomic.Pointer[journal.Damage]
	// failed is set once a write failed, and never cleared: what the file holds is not
	// known from then on, and nothing is read back through this opening.
	failed atomic.Pointer[error]

	writer *writer // nil while nothing can be written

	// mu lets Close wait for those who are handing a request to the writer.
	mu     sync.RWMutex
	closed bool
}

var (
	_ journal.Store  = (*Store)(nil)
	_ journal.Halter = (*Store)(nil)
)

// Epoch is the writer epoch of this opening; 0 of a store opened for reading, or
// opened halted.
func (s *Store) Epoch() uint64 { return s.epoch }

// Health returns nil, or the refusal that every Append gets.
func (s *Store) Health() error {
	if err := s.stopped(); err != nil {
		return err
	}
	if d := s.damaged.Load(); d != nil {
		return halted(haltText(*d), s.path)
	}
	if s.readOnly != nil {
		return s.readOnly
	}
	return nil
}

// stopped refuses after a failed write, reads too: after an error of the disk, what
// the cache shows is not what a power loss would leave.
func (s *Store) stopped() error {
	if cause := s.failed.Load(); cause != nil {
		if reason.Is(*cause, reason.JournalTakenOver) {
			return *cause
		}
		return reason.New(reason.JournalHalted, "the journal stopped after a failed write", s.path,
			"run again: opening it anew finds out what is stored, and repeating is safe").Because(*cause)
	}
	return nil
}

// Held returns nil, or the refusal that every Append gets once another process has taken
// the state folder over. Whoever holds the folder without writing for long asks now and then.
func (s *Store) Held(ctx context.Context) error {
	if err := s.stopped(); err != nil {
		return err
	}
	epoch, err := readEpoch(ctx, s.pool)
	if err != nil {
		return refuse(err, "reading its epoch", s.path)
	}
	return s.holds(epoch)
}

// holds refuses when the journal is at another epoch than this opening. The lock's file
// was removed then, or the folder is on a file system that does not keep locks.
func (s *Store) holds(epoch uint64) error {
	if epoch == s.epoch {
		return nil
	}
	return reason.New(reason.JournalTakenOver,
		fmt.Sprintf("another process took the state folder over: it writes under epoch %d, this one had epoch %d", epoch, s.epoch), s.path,
		"leave the file "+lockName+" where it is, and see with `writ status` what the other process does; nothing was recorded here after it came")
}

// Close waits for what was queued, copies the write-ahead log into the file and gives
// the writer lock back. Everything acknowledged is durable without it.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	if s.writer != nil {
		close(s.writer.queue)
	}
	s.mu.Unlock()
	if s.writer != nil {
		<-s.writer.done
	}
	err := s.pool.Close()
	if s.conn != nil && s.stopped() == nil {
		// Readers elsewhere may keep the log busy. Nobody waits for them: the next
		// writer copies it.
		_, cerr := s.conn.ExecContext(context.Background(), `PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)`)
		if cerr != nil && !malformed(cerr) {
			err = errors.Join(err, cerr)
		}
	}
	if rerr := s.abandon(); rerr != nil {
		err = errors.Join(err, rerr)
	}
	if err != nil {
		return refuse(err, "closing it", s.path)
	}
	return nil
}

// abandon closes whatever is open, the lock last.
func (s *Store) abandon() error {
	var errs []error
	if s.pool != nil {
		errs = append(errs, s.pool.Close())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.wdb != nil {
		errs = append(errs, s.wdb.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	return errors.Join(errs...)
}
