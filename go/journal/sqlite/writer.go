package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"strconv"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/lifecycle"
)

const (
	// queueLength is how many requests may wait before callers block.
	queueLength = 1024
	// groupBatches and groupBytes bound one commit, so that nobody waits for a group
	// much larger than a disk's own latency.
	groupBatches = 512
	groupBytes   = 4 << 20
)

// What a batch leaves in each table.
const (
	insertBatch    = `INSERT INTO batches (seq, identity, body, prev, chain) VALUES (?, ?, ?, ?, ?)`
	insertIdentity = `INSERT INTO identities (identity, seq, digest) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
	insertEvent    = `INSERT INTO events (subject, version, seq, ordinal) VALUES (?, ?, ?, ?)`
	insertBlob     = `INSERT INTO blobs (digest, bytes) VALUES (?, ?) ON CONFLICT DO NOTHING`
)

// writer is the one goroutine that appends. It takes whatever waits and commits that
// at once: no timer, so one caller alone waits for one commit and no more.
//
// All fields but store, queue and done belong to that goroutine.
type writer struct {
	store *Store
	queue chan *request
	done  chan struct{}

	seq        uint64
	chain      journal.Sum
	versions   versions
	statements statements
}

// statements are prepared once, on the writer's connection.
type statements struct {
	begin, commit, rollback      *statement
	identity, batch, event, blob *statement
	subjectNew, subjectMoved     *statement
	selectVersion, selectFirst   *statement
	selectMeta, halt             *statement
}

// startWriter raises the epoch in a commit of its own, which also makes durable
// whatever a crash left in the write-ahead log, and starts the writer.
func (s *Store) startWriter(ctx context.Context) error {
	w := &writer{store: s, queue: make(chan *request, queueLength), done: make(chan struct{}), chain: journal.Genesis()}
	epoch, err := readEpoch(ctx, s.conn)
	if err != nil {
		return refuse(err, "reading its epoch", s.path)
	}
	value := strconv.FormatUint(epoch+1, 10)
	if _, err := s.conn.ExecContext(ctx, `UPDATE meta SET value = ?, sum = ? WHERE key = ?`, value, metaSum(keyEpoch, value), keyEpoch); err != nil {
		return refuse(err, "raising its epoch", s.path)
	}
	// The commit has made the write-ahead log; SQLite syncs the folder too, and does not
	// look whether it could.
	if err := syncFolder(s.dir); err != nil {
		return refuseOS(err, "the name of the journal's log cannot be made durable", s.dir)
	}
	var seq int64
	var chain []byte
	switch err := s.conn.QueryRowContext(ctx, `SELECT seq, chain FROM batches ORDER BY seq DESC LIMIT 1`).Scan(&seq, &chain); {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return refuse(err, "reading its head", s.path)
	default:
		head, ok := sumOf(chain)
		if !ok {
			return corruptRow(seq, nil)
		}
		w.seq, w.chain = uint64(seq), head
	}
	s.epoch = epoch + 1
	started := make(chan error)
	go func() {
		defer close(w.done)
		// The connection belongs to this goroutine until the queue is closed.
		err := s.conn.Raw(func(c any) error {
			conn, ok := c.(driver.Conn)
			if !ok {
				return fmt.Errorf("the driver's connection is a %T", c)
			}
			closeAll, err := w.statements.prepare(conn)
			defer closeAll()
			if err != nil {
				return err
			}
			started <- nil
			w.run()
			return nil
		})
		if err != nil {
			started <- err
		}
	}()
	if err := <-started; err != nil {
		return refuse(err, "preparing to write", s.path)
	}
	s.writer = w
	return nil
}

// prepare prepares every statement. The returned function closes those that were, also
// after an error: an open one would keep its connection alive.
func (s *statements) prepare(conn driver.Conn) (closeAll func(), err error) {
	var open []*statement
	closeAll = func() {
		for _, st := range open {
			_ = st.stmt.Close()
		}
	}
	for _, p := range []struct {
		to   **statement
		text string
	}{
		{&s.begin, `BEGIN IMMEDIATE`},
		{&s.commit, `COMMIT`},
		{&s.rollback, `ROLLBACK`},
		{&s.identity, insertIdentity},
		{&s.batch, insertBatch},
		{&s.event, insertEvent},
		{&s.blob, insertBlob},
		{&s.subjectNew, `INSERT INTO subjects (subject, version, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`},
		{&s.subjectMoved, `UPDATE subjects SET version = ?2, seq = ?3 WHERE subject = ?1 AND version = ?4`},
		{&s.selectVersion, `SELECT version FROM subjects WHERE subject = ?`},
		{&s.selectFirst, `SELECT i.seq, i.digest, b.chain FROM identities i JOIN batches b ON b.seq = i.seq WHERE i.identity = ?`},
		{&s.selectMeta, `SELECT value, sum FROM meta WHERE key = ?`},
		{&s.halt, insertHalt},
	} {
		if *p.to, err = prepare(conn, p.text); err != nil {
			return closeAll, err
		}
		open = append(open, *p.to)
	}
	return closeAll, nil
}

func (w *writer) run() {
	for first := range w.queue {
		group := []*request{first}
		batches, bytes := first.weight()
		// Callers that the last commit woke are about to ask again. Letting them run
		// first makes one larger group of several small ones; alone it costs nothing.
		runtime.Gosched()
	more:
		for batches < groupBatches && bytes < groupBytes {
			select {
			case req, open := <-w.queue:
				if !open {
					break more
				}
				n, b := req.weight()
				group, batches, bytes = append(group, req), batches+n, bytes+b
			default:
				break more
			}
		}
		w.serve(group)
		for _, req := range group {
			close(req.done)
		}
	}
}

// serve stores a group, all or nothing. Refusals of single batches are in their
// results; an error is of the whole group, and then the store stops.
func (w *writer) serve(group []*request) {
	err := w.store.Health()
	if err == nil {
		if err = w.transact(group); err != nil {
			err = w.fail(err)
		}
	}
	for _, req := range group {
		if req.halt != nil {
			req.err = w.halt(*req.halt)
		} else {
			req.err = err
		}
	}
}

// cacheSubjects bounds each of the two generations of cached versions.
const cacheSubjects = 1 << 15

// versions are those of subjects seen lately. What is in neither generation is asked
// of the subjects table.
type versions struct{ young, old map[lifecycle.Subject]uint64 }

func (v *versions) get(s lifecycle.Subject) (version uint64, known bool) {
	if version, known = v.young[s]; known {
		return version, true
	}
	version, known = v.old[s]
	return version, known
}

func (v *versions) put(s lifecycle.Subject, version uint64) {
	if v.young == nil || len(v.young) >= cacheSubjects {
		v.old, v.young = v.young, make(map[lifecycle.Subject]uint64)
	}
	v.young[s] = version
}
