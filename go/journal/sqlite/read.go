package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// maxPage bounds one page, in entries.
const maxPage = 10_000

// snapshot runs f on one snapshot of the journal.
func (s *Store) snapshot(ctx context.Context, doing string, f func(q querier) error) error {
	if err := s.stopped(); err != nil {
		return err
	}
	tx, err := s.pool.BeginTx(ctx, nil)
	if err != nil {
		return refuse(err, doing, s.path)
	}
	defer func() { _ = tx.Rollback() }()
	if err := f(tx); err != nil {
		return refuse(err, doing, s.path)
	}
	if s.frozen != nil {
		return s.thawed()
	}
	return nil
}

// Page returns up to limit entries after the given sequence, in order; at most 10,000.
func (s *Store) Page(ctx context.Context, after uint64, limit int) ([]journal.Entry, error) {
	after, limit = min(after, canonical.MaxInteger), min(max(limit, 0), maxPage)
	var entries []journal.Entry
	err := s.snapshot(ctx, "reading a page", func(q querier) error {
		return eachBatch(ctx, q, int64(after)+1, int64(limit), func(r *row) error {
			e, err := r.entry()
			if err == nil {
				entries = append(entries, e)
			}
			return err
		})
	})
	return entries, err
}

// Events returns every event of a subject in order, with the sequence of its batch.
func (s *Store) Events(ctx context.Context, subject lifecycle.Subject) ([]journal.Recorded, error) {
	var events []journal.Recorded
	err := s.snapshot(ctx, "reading events", func(q querier) error {
		rows, err := q.QueryContext(ctx, `SELECT e.version, e.ordinal, e.seq, coalesce(b.identity, ''), b.body, b.prev, b.chain
			FROM events e LEFT JOIN batches b ON b.seq = e.seq WHERE e.subject = ? ORDER BY e.version`, string(subject))
		if err != nil {
			return err
		}
		defer rows.Close()
		var batch journal.Entry
		for rows.Next() {
			var r row
			var version, ordinal uint64
			if err := rows.Scan(&version, &ordinal, &r.seq, &r.identity, &r.body, &r.prev, &r.chain); err != nil {
				return err
			}
			if batch.Sequence != uint64(r.seq) || batch.Sequence == 0 {
				if batch, err = r.entry(); err != nil {
					return err
				}
			}
			if version != uint64(len(events))+1 || ordinal >= uint64(len(batch.Events)) ||
				batch.Events[ordinal].Subject != subject || batch.Events[ordinal].Version != version {
				return reason.New(reason.JournalCorrupt, "the index of events contradicts the journal",
					fmt.Sprintf("%s version %d", subject, version), "run `writ verify` to see the extent")
			}
			events = append(events, journal.Recorded{
				Event: batch.Events[ordinal], Sequence: batch.Sequence, Ordinal: int(ordinal), At: batch.At, Actor: batch.Actor, Cause: batch.Cause,
			})
		}
		return rows.Err()
	})
	return events, err
}

// Version returns the number of events of a subject.
func (s *Store) Version(ctx context.Context, subject lifecycle.Subject) (version uint64, err error) {
	err = s.snapshot(ctx, "reading a version", func(q querier) error {
		err := q.QueryRowContext(ctx, `SELECT version FROM subjects WHERE subject = ?`, string(subject)).Scan(&version)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return version, err
}

// Subjects returns up to limit subjects that begin with prefix, sorted by bytes.
func (s *Store) Subjects(ctx context.Context, prefix string, limit int) ([]lifecycle.Subject, error) {
	var subjects []lifecycle.Subject
	err := s.snapshot(ctx, "listing subjects", func(q querier) error {
		// No subject holds a character above U+10FFFF, so this bound ends the prefix.
		rows, err := q.QueryContext(ctx, `SELECT subject FROM subjects WHERE subject >= ?1 AND subject < ?1 || char(0x10FFFF) ORDER BY subject LIMIT ?2`,
			prefix, max(limit, 0))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var subject string
			if err := rows.Scan(&subject); err != nil {
				return err
			}
			subjects = append(subjects, lifecycle.Subject(subject))
		}
		return rows.Err()
	})
	return subjects, err
}

// Lookup returns the entry that was appended under an identity, or nil.
func (s *Store) Lookup(ctx context.Context, identity operation.Key) (*journal.Entry, error) {
	var found *journal.Entry
	err := s.snapshot(ctx, "looking up an identity", func(q querier) error {
		var r row
		err := q.QueryRowContext(ctx, `SELECT i.seq, coalesce(b.identity, ''), b.body, b.prev, b.chain
			FROM identities i LEFT JOIN batches b ON b.seq = i.seq WHERE i.identity = ?`, string(identity)).
			Scan(&r.seq, &r.identity, &r.body, &r.prev, &r.chain)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		e, err := r.entry()
		if err != nil {
			return err
		}
		if e.Identity != identity {
			return reason.New(reason.JournalCorrupt, "the index of identities contradicts the journal", string(identity),
				"run `writ verify` to see the extent")
		}
		found = &e
		return nil
	})
	return found, err
}

// Blob returns the bytes of a blob, checked against its digest.
func (s *Store) Blob(ctx context.Context, digest canonical.Digest) ([]byte, error) {
	sum, ok := digest.Bytes()
	if !ok {
		_, err := canonical.ParseDigest(string(digest))
		return nil, err
	}
	var bytes []byte
	err := s.snapshot(ctx, "reading a blob", func(q querier) error {
		err := q.QueryRowContext(ctx, `SELECT bytes FROM blobs WHERE digest = ?`, sum[:]).Scan(&bytes)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return reason.New(reason.ArtifactMissing, "no artifact with that digest is stored", string(digest),
				"it was never stored here, or has been collected")
		case err != nil:
			return err
		case canonical.Sum(bytes) != digest:
			return reason.New(reason.ArtifactCorrupt, "a stored artifact no longer has its digest", string(digest),
				"run `writ verify` to see the extent")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return bytes, nil
}
