package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
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
		return v.walk()
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
	// identities and events are what the bodies account for, subjects what the index of
	// events does.
	identities, events, subjects *tally
	// sound says that nothing was found wrong with the index of events.
	sound bool
	named map[journal.Sum]bool
}

// walk goes through everything, in this order.
func (v *verification) walk() error {
	for _, step := range []func() error{v.header, v.pages, v.meta, v.batches, v.indexes, v.versions, v.blobs} {
		if err := v.tolerate(step()); err != nil {
			return err
		}
	}
	return nil
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

// batches walks the chain, and counts up what the index rows must be.
func (v *verification) batches() error {
	v.named, v.identities, v.events = map[journal.Sum]bool{}, newTally(), newTally()
	head := journal.Genesis()
	want := uint64(1)
	proof := newPrefix()
	defer func() {
		v.extent.Head, v.extent.Events = canonical.DigestFromBytes(head), v.events.rows
		v.extent.Intact, v.extent.IntactHead = proof.intact, canonical.DigestFromBytes(proof.proven)
	}()
	return eachBatch(v.ctx, v.q, math.MinInt64, all, func(r *row) error {
		after, damage := r.check(head, want)
		if damage != nil {
			v.report(*damage)
		}
		proof.add(r)
		v.extent.Batches++
		head, want = after, uint64(r.seq)+1
		if stored, ok := sumOf(r.chain); ok && damage != nil {
			head = stored // so that one damaged batch is not reported of all after it
		}
		if e := r.encoded; e != nil {
			v.account(uint64(r.seq), e)
		}
		return nil
	})
}

// account counts up the index rows of a batch.
func (v *verification) account(seq uint64, e *journal.Encoded) {
	if e.Epoch < v.epoch || e.Epoch == 0 || e.Epoch > v.highest {
		v.damage(seq, "batches", fmt.Sprintf("its writer epoch %d lies outside %d to %d", e.Epoch, max(v.epoch, 1), v.highest))
	}
	v.epoch = e.Epoch
	content := e.ContentSum()
	v.identities.add(string(e.Identity), int64(seq), 0, 0, content[:])
	for i, ev := range e.Events {
		v.events.add(string(ev.Subject), int64(ev.Version), int64(seq), int64(i), nil)
	}
	for _, b := range e.Blobs {
		if sum, ok := b.Digest.Bytes(); ok {
			v.named[sum] = true
		}
	}
}

// blobs checks every stored blob, and counts those that have been collected.
func (v *verification) blobs() error {
	err := v.each(`SELECT digest, bytes FROM blobs`, func(rows *sql.Rows) error {
		var digest, bytes sql.RawBytes
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
			v.report(journal.Damage{Where: "blobs " + string(named), What: "the bytes do not have the digest", Artifact: named})
		case !v.named[sum]:
			v.damage(0, "blobs "+string(named), "no batch records the blob")
		}
		delete(v.named, sum)
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
