package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
)

// Verify walks the whole journal on one snapshot, beside a live writer too; see
// journal.Reader.
//
// It finds every flipped bit that could change what is read back. What it cannot find
// changes nothing: unused space in SQLite's pages and counters in its file header. It
// cannot find, either, that the newest batches are gone together with every row that
// led to them, as after a restored copy: only a chain head kept elsewhere shows that.
func (s *Store) Verify(ctx context.Context, report func(journal.Damage)) (journal.Extent, error) {
	var first *journal.Damage
	v := &verification{ctx: ctx, path: s.path, report: func(d journal.Damage) {
		if first == nil {
			first = &d
		}
		report(d)
	}}
	err := s.snapshot(ctx, "verifying it", func(q querier) error {
		v.q = q
		if _, err := s.identify(ctx, q); err != nil {
			return err
		}
		for _, step := range []func() error{v.header, v.pages, v.meta, v.batches, v.surplus, v.subjects, v.blobs} {
			if err := v.tolerate(step()); err != nil {
				return err
			}
		}
		return nil
	})
	if reason.Is(err, reason.JournalCorrupt) {
		v.damage(0, "journal.db", err.Error())
		err = nil
	}
	if first != nil {
		s.latch(ctx, *first)
	}
	return v.extent, err
}

// verification is one walk.
type verification struct {
	ctx    context.Context
	path   string
	q      querier
	report func(journal.Damage)
	extent journal.Extent
	// epoch is that of the last batch, which never falls; highest is that of meta.
	epoch, highest uint64
	// identities, events and named count what the bodies account for.
	identities, events uint64
	named              map[canonical.Digest]bool
}

func (v *verification) damage(seq uint64, where, what string) {
	v.report(journal.Damage{Sequence: seq, Where: where, What: what})
}

// tolerate turns SQLite's own finding of damage into a report, so that the walk goes
// on with the next table.
func (v *verification) tolerate(err error) error {
	if err != nil && malformed(err) {
		v.damage(0, "journal.db", "SQLite finds the file damaged: "+err.Error())
		return nil
	}
	return err
}

func (v *verification) header() error {
	finding, err := checkHeader(v.path)
	if finding != "" {
		v.damage(0, "journal.db", finding)
	}
	return err
}

// pages lets SQLite check the structure of the file: pages, order of keys, indexes
// against tables, types.
func (v *verification) pages() error {
	return v.each(`PRAGMA integrity_check(100)`, func(rows *sql.Rows) error {
		var finding string
		if err := rows.Scan(&finding); err != nil {
			return err
		}
		if finding != "ok" {
			v.damage(0, "journal.db", finding)
		}
		return nil
	})
}

func (v *verification) meta() error {
	seen := false
	err := v.each(`SELECT key, value, sum FROM meta`, func(rows *sql.Rows) error {
		var key, value string
		var sum []byte
		if err := rows.Scan(&key, &value, &sum); err != nil {
			return err
		}
		switch {
		case string(sum) != string(metaSum(key, value)):
			v.damage(0, "meta "+key, "the row does not have its sum")
		case key == keyHalt:
			v.damage(0, "meta "+key, "the journal was halted earlier: "+value)
		case key == keyEpoch:
			var err error
			v.highest, err = strconv.ParseUint(value, 10, 53)
			seen = err == nil
		default:
			v.damage(0, "meta "+key, "no row has that key")
		}
		return nil
	})
	if err == nil && !seen {
		v.damage(0, "meta "+keyEpoch, "the row is missing or holds no number")
	}
	return err
}

// batches walks the chain, and holds the index rows of each batch against its body.
func (v *verification) batches() error {
	v.named = map[canonical.Digest]bool{}
	head := journal.Genesis()
	want := uint64(1)
	defer func() { v.extent.Head = canonical.DigestFromBytes(head) }()
	return v.each(`SELECT seq, identity, body, prev, chain FROM batches ORDER BY seq`, func(rows *sql.Rows) error {
		var r row
		if err := rows.Scan(&r.seq, &r.identity, &r.body, &r.prev, &r.chain); err != nil {
			return err
		}
		after, e, damage := r.check(head, want)
		if damage != nil {
			v.report(*damage)
		}
		v.extent.Batches++
		head, want = after, uint64(r.seq)+1
		if stored, ok := sumOf(r.chain); ok && damage != nil {
			head = stored // so that one damaged batch is not reported of all after it
		}
		if e == nil {
			return nil
		}
		return v.indexes(uint64(r.seq), e)
	})
}

func (v *verification) indexes(seq uint64, e *journal.Encoded) error {
	if e.Epoch < v.epoch || e.Epoch == 0 || e.Epoch > v.highest {
		v.damage(seq, "batches", fmt.Sprintf("its writer epoch %d lies outside %d to %d", e.Epoch, max(v.epoch, 1), v.highest))
	}
	v.epoch = e.Epoch
	v.identities++
	var at, ordinal int64
	var digest []byte
	err := v.q.QueryRowContext(v.ctx, `SELECT seq, digest FROM identities WHERE identity = ?`, string(e.Identity)).Scan(&at, &digest)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		v.damage(seq, "identities "+string(e.Identity), "the row is missing")
	case err != nil:
		return err
	case uint64(at) != seq || string(digest) != string(e.ContentSum[:]):
		v.damage(seq, "identities "+string(e.Identity), "the row does not lead to the batch, or has another digest")
	}
	for i, ev := range e.Events {
		v.events++
		where := eventRow(ev.Subject, int64(ev.Version))
		err := v.q.QueryRowContext(v.ctx, `SELECT seq, ordinal FROM events WHERE subject = ? AND version = ?`, string(ev.Subject), int64(ev.Version)).
			Scan(&at, &ordinal)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			v.damage(seq, where, "the row is missing")
		case err != nil:
			return err
		case uint64(at) != seq || ordinal != int64(i):
			v.damage(seq, where, "the row does not lead to the event")
		}
	}
	for _, b := range e.Blobs {
		v.named[b.Digest] = true
	}
	return nil
}

// surplus looks for index rows that no batch accounts for. Every row that one does
// was found by key, so that counting is enough.
func (v *verification) surplus() error {
	for _, t := range []struct {
		table string
		want  uint64
	}{{"identities", v.identities}, {"events", v.events}} {
		var n uint64
		if err := v.q.QueryRowContext(v.ctx, `SELECT count(*) FROM `+t.table).Scan(&n); err != nil {
			return err
		}
		if n != t.want {
			v.damage(0, t.table, fmt.Sprintf("%d rows are stored where the batches account for %d", n, t.want))
		}
	}
	v.extent.Events = v.events
	return nil
}

// subjects holds the versions against the index of events, which was checked.
func (v *verification) subjects() error {
	err := v.each(`SELECT s.subject, s.version, s.seq, count(e.seq), coalesce(max(e.version), 0), coalesce(max(e.seq), 0)
		FROM subjects s LEFT JOIN events e ON e.subject = s.subject GROUP BY s.subject`, func(rows *sql.Rows) error {
		var subject string
		var version, seq, count, highest, last int64
		if err := rows.Scan(&subject, &version, &seq, &count, &highest, &last); err != nil {
			return err
		}
		v.extent.Subjects++
		if version != highest || count != highest || seq != last || count == 0 {
			v.damage(uint64(last), "subjects "+subject, fmt.Sprintf("the row says version %d at batch %d; %d events lead to version %d at batch %d",
				version, seq, count, highest, last))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return v.each(`SELECT DISTINCT subject FROM events WHERE subject NOT IN (SELECT subject FROM subjects)`, func(rows *sql.Rows) error {
		var subject string
		if err := rows.Scan(&subject); err != nil {
			return err
		}
		v.damage(0, "subjects "+subject, "the row is missing")
		return nil
	})
}

// blobs checks every stored blob, and counts those that have been collected.
func (v *verification) blobs() error {
	err := v.each(`SELECT digest, bytes FROM blobs`, func(rows *sql.Rows) error {
		var digest, bytes []byte
		if err := rows.Scan(&digest, &bytes); err != nil {
			return err
		}
		v.extent.Blobs++
		sum, ok := sumOf(digest)
		if !ok {
			v.damage(0, "blobs", "a digest has "+strconv.Itoa(len(digest))+" bytes")
			return nil
		}
		named := canonical.DigestFromBytes(sum)
		switch {
		case canonical.Sum(bytes) != named:
			v.damage(0, "blobs "+string(named), "the bytes do not have the digest")
		case !v.named[named]:
			v.damage(0, "blobs "+string(named), "no batch records the blob")
		}
		delete(v.named, named)
		return nil
	})
	v.extent.Collected = uint64(len(v.named))
	return err
}

func (v *verification) each(query string, row func(*sql.Rows) error) error {
	rows, err := v.q.QueryContext(v.ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func eventRow(subject lifecycle.Subject, version int64) string {
	return fmt.Sprintf("events %s version %d", subject, version)
}
