package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/reason"
)

// insertHalt adds the halt row. The first halt stands: it says what was found first.
const insertHalt = `INSERT INTO meta (key, value, sum) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`

// latch makes damage a halt that outlives this opening. It reports whether the halt is
// durable: that of a store opened for reading is not, and the next writer looks for
// itself.
func (s *Store) latch(ctx context.Context, d journal.Damage) bool {
	first := s.damaged.CompareAndSwap(nil, &d)
	switch {
	case s.writer != nil:
		req := &request{halt: &d, done: make(chan struct{})}
		return s.submit(context.WithoutCancel(ctx), req) == nil && req.err == nil
	case s.lock == nil:
		return false
	case !first:
		return true // opened halted, or halted while opening
	}
	text := haltText(d)
	_, err := s.conn.ExecContext(ctx, insertHalt, keyHalt, text, metaSum(keyHalt, text))
	return err == nil
}

// Halt makes damage durable that was found by reading; see journal.Halter. A store that
// was opened for reading takes the writer lock for it, and gives it back.
func (s *Store) Halt(ctx context.Context, d journal.Damage) (err error) {
	if s.lock != nil {
		if !s.latch(ctx, d) {
			return errors.Join(s.stopped(), errNotHalted)
		}
		return nil
	}
	if s.lock, err = lockWriter(s.dir, "recording damage"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.lock.release()); s.lock = nil }()
	// Nobody can replace the journal from here on. Who did before has recovered it, and
	// what was found is no finding about what stands there now.
	if now, err := os.Stat(s.path); err != nil || !os.SameFile(now, s.opened) {
		return replaced(s.path)
	}
	if err := writeHalt(ctx, s.path, d); err != nil {
		return err
	}
	s.damaged.CompareAndSwap(nil, &d)
	return nil
}

// writeHalt halts a journal that nobody else writes. Preconditions: the lock is held.
func writeHalt(ctx context.Context, path string, d journal.Damage) error {
	db, err := sql.Open("sqlite", dsn(path, "rw", "synchronous(FULL)"))
	if err != nil {
		return refuse(err, "halting it", path)
	}
	defer db.Close()
	text := haltText(d)
	if _, err := db.ExecContext(context.WithoutCancel(ctx), insertHalt, keyHalt, text, metaSum(keyHalt, text)); err != nil {
		return refuse(err, "halting it", path)
	}
	return nil
}

// errNotHalted says that a halt could not be written, for a reason that was told already.
var errNotHalted = errors.New("the halt could not be recorded")

func replaced(path string) *reason.Refusal {
	return reason.New(reason.JournalReplaced, "another journal stands in the place of the one that was read", path, "run `writ verify` again")
}

// halt makes damage that a reader found durable. It runs in the writer's goroutine.
func (w *writer) halt(d journal.Damage) error {
	if err := w.store.stopped(); err != nil {
		return err
	}
	if err := w.recordDamage(d); err != nil {
		return w.fail(err)
	}
	return nil
}

// fail stops the store after a failed write and returns what the callers of the group
// get. What contradicts the chain is damage, and halts later openings too.
func (w *writer) fail(err error) error {
	refusal := refuse(err, "appending", w.store.path)
	if reason.Is(refusal, reason.JournalCorrupt) {
		// Before the store stops: what is damaged was read, and nothing was lost by
		// writing. Where this fails too, opening finds the damage, or nothing does.
		_ = w.recordDamage(journal.Damage{Where: "appending", What: refusal.Error()})
	}
	w.store.failed.CompareAndSwap(nil, &refusal)
	return refusal
}

func (w *writer) recordDamage(d journal.Damage) error {
	w.store.damaged.CompareAndSwap(nil, &d)
	text := haltText(d)
	_, err := w.statements.halt.run(keyHalt, text, metaSum(keyHalt, text))
	return err
}
