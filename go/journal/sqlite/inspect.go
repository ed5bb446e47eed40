package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/reason"
)

// minSQLite is the oldest SQLite that may touch a journal: before 3.51.3 resetting the
// write-ahead log could corrupt the file.
const minSQLite = 3051003

// identify says whose file it is before anything else is read from it. fresh means
// that it holds nothing yet.
func (s *Store) identify(ctx context.Context, q querier) (fresh bool, err error) {
	var version string
	var app, user, objects int64
	if err := q.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version); err != nil {
		return false, refuse(err, "opening it", s.path)
	}
	if number(version) < minSQLite {
		return false, reason.New(reason.InternalBug, "SQLite "+version+" is linked, and before 3.51.3 it can corrupt a journal", s.path,
			"build this release with its own go.mod")
	}
	if err := q.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&app); err != nil {
		return false, refuse(err, "opening it", s.path)
	}
	if err := q.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&user); err != nil {
		return false, refuse(err, "opening it", s.path)
	}
	if err := q.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&objects); err != nil {
		return false, refuse(err, "opening it", s.path)
	}
	switch {
	case app == 0 && user == 0 && objects == 0:
		return true, nil
	case app != applicationID:
		return false, foreign(s.path, "the file belongs to another program")
	case user > userVersion:
		return false, reason.New(reason.JournalNewerVersion,
			fmt.Sprintf("the journal was made by a newer writ: it has version %d, this release knows %d", user, userVersion), s.path,
			"use that release")
	case user < userVersion:
		return false, reason.New(reason.JournalCorrupt, fmt.Sprintf("no writ made version %d of the journal", user), s.path,
			"restore the journal from a copy, or see `writ recover`")
	}
	stored, err := storedSchema(ctx, q)
	if err != nil {
		return false, refuse(err, "opening it", s.path)
	}
	if fingerprint(stored) != fingerprint(schemaV1()) {
		return false, reason.New(reason.JournalCorrupt, "the journal's tables are not those of its version", s.path,
			"restore the journal from a copy, or see `writ recover`")
	}
	return false, nil
}

// useLog makes the file one with a write-ahead log. That is kept in the file and cannot
// be part of a transaction; a file that has only that counts as fresh. On a journal it
// changes nothing, unless somebody else's tool had changed it back.
func (s *Store) useLog(ctx context.Context) error {
	var mode string
	if err := s.conn.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return reason.New(reason.JournalIO, "the file system does not allow a write-ahead log", s.path,
			"choose a folder on a local disk with --state")
	}
	return nil
}

// create makes the tables and the first meta row, all or nothing.
func (s *Store) create(ctx context.Context) error {
	tx, err := s.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, o := range schemaV1() {
		if _, err := tx.ExecContext(ctx, o.sql); err != nil {
			return fmt.Errorf("make %s: %w", o.name, err)
		}
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO meta VALUES (?, '0', ?)`, keyEpoch, metaSum(keyEpoch, "0")); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d`, applicationID, userVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// inspect looks for a halt and checks the last batch: cheap enough for every opening.
// What it finds goes to damaged; an error means that it could not look.
func (s *Store) inspect(ctx context.Context, q querier, damaged func(journal.Damage)) error {
	found, halt, err := readMeta(ctx, q, keyHalt)
	switch {
	case reason.Is(err, reason.JournalCorrupt):
		damaged(journal.Damage{Where: "meta " + keyHalt, What: "the row does not have its sum"})
		return nil
	case err != nil:
		return refuse(err, "looking for a halt", s.path)
	case halt:
		s.damaged.Store(&journal.Damage{Where: "found earlier", What: found})
		return nil
	}
	if _, err := readEpoch(ctx, q); reason.Is(err, reason.JournalCorrupt) {
		damaged(journal.Damage{Where: "meta " + keyEpoch, What: "the row is damaged"})
		return nil
	} else if err != nil {
		return refuse(err, "reading its epoch", s.path)
	}
	d, err := s.checkTail(ctx, q)
	if err != nil && malformed(err) {
		d = &journal.Damage{Where: "the last batch", What: "SQLite finds the file damaged: " + err.Error()}
	} else if err != nil {
		return refuse(err, "checking its last batch", s.path)
	}
	if d != nil {
		damaged(*d)
	}
	return nil
}

// checkTail checks the last batch against the chain and its index rows.
func (s *Store) checkTail(ctx context.Context, q querier) (*journal.Damage, error) {
	var r row
	err := q.QueryRowContext(ctx, `SELECT seq, identity, body, prev, chain FROM batches ORDER BY seq DESC LIMIT 1`).
		Scan(&r.seq, &r.identity, &r.body, &r.prev, &r.chain)
	if errors.Is(err, sql.ErrNoRows) {
		var n int
		if err := q.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM identities LIMIT 1)`).Scan(&n); err != nil || n == 0 {
			return nil, err
		}
		return &journal.Damage{Where: "batches", What: "no batch is stored, but identities are"}, nil
	}
	if err != nil {
		return nil, err
	}
	before := journal.Genesis()
	if r.seq != 1 {
		var chain []byte
		err := q.QueryRowContext(ctx, `SELECT chain FROM batches WHERE seq = ?`, r.seq-1).Scan(&chain)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
		sum, ok := sumOf(chain)
		if !ok {
			return &journal.Damage{Sequence: uint64(r.seq), Where: "batches", What: "the batch before it is missing or has no chain"}, nil
		}
		before = sum
	}
	r.decode()
	if _, damage := r.check(before, uint64(r.seq)); damage != nil {
		return damage, nil
	}
	return s.checkIndexes(ctx, q, r.encoded, uint64(r.seq))
}

// checkIndexes checks the index rows that the last batch must have left.
func (s *Store) checkIndexes(ctx context.Context, q querier, e *journal.Encoded, seq uint64) (*journal.Damage, error) {
	bad := func(where, what string) (*journal.Damage, error) {
		return &journal.Damage{Sequence: seq, Where: where, What: what}, nil
	}
	var at uint64
	var digest []byte
	err := q.QueryRowContext(ctx, `SELECT seq, digest FROM identities WHERE identity = ?`, string(e.Identity)).Scan(&at, &digest)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	if at != seq || !isSum(digest, e.ContentSum()) {
		return bad("identities "+string(e.Identity), "the index does not lead to the batch")
	}
	for _, m := range e.Moves {
		if m.From == m.To {
			continue
		}
		var version uint64
		err := q.QueryRowContext(ctx, `SELECT version, seq FROM subjects WHERE subject = ?`, string(m.Subject)).Scan(&version, &at)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
		if version != m.To || at != seq {
			return bad("subjects "+string(m.Subject), "the index does not have the version that the last batch left")
		}
	}
	return nil, nil
}

// number turns "3.51.3" into 3051003.
func number(version string) int {
	n := 0
	for part := range strings.SplitSeq(version, ".") {
		v, err := strconv.Atoi(part)
		if err != nil {
			return 0
		}
		n = n*1000 + v
	}
	return n
}
