package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/lifecycle"
)

// indexes holds the index rows against what the bodies account for: all of them at once,
// and each by itself only where that does not agree, to say which.
func (v *verification) indexes() error {
	identities, events := v.identities.like(), v.events.like()
	err := v.each(`SELECT identity, seq, digest FROM identities`, func(rows *sql.Rows) error {
		var identity string
		var seq int64
		var digest sql.RawBytes
		if err := rows.Scan(&identity, &seq, &digest); err != nil {
			return err
		}
		identities.add(identity, seq, 0, 0, digest)
		return nil
	})
	if err != nil {
		return err
	}
	last := standing{}
	v.subjects, v.sound = newTally(), true
	err = v.each(`SELECT subject, version, seq, ordinal FROM events ORDER BY subject, version`, func(rows *sql.Rows) error {
		var subject sql.RawBytes
		var version, seq, ordinal int64
		if err := rows.Scan(&subject, &version, &seq, &ordinal); err != nil {
			return err
		}
		if last.subject != string(subject) {
			v.stand(last)
			last = standing{subject: string(subject)}
		}
		events.add(last.subject, version, seq, ordinal, nil)
		last.version++
		v.sound = v.sound && version == last.version && seq >= last.seq
		last.seq = seq
		return nil
	})
	v.stand(last)
	if err != nil {
		return err
	}
	if v.identities.equal(identities) && v.events.equal(events) {
		return nil
	}
	v.sound = false
	return v.each1by1(identities.rows, events.rows)
}

// standing is what the index of events makes of one subject.
type standing struct {
	subject      string
	version, seq int64
}

func (v *verification) stand(s standing) {
	if s.version > 0 {
		v.subjects.add(s.subject, s.version, s.seq, 0, nil)
	}
}

// each1by1 looks for the index rows of every body, and then for rows that no body accounts
// for: every row that one does was found by key, so that counting is enough.
func (v *verification) each1by1(identities, events uint64) error {
	err := eachBatch(v.ctx, v.q, math.MinInt64, all, func(r *row) error {
		if r.encoded == nil {
			return nil
		}
		return v.rowsOf(uint64(r.seq), r.encoded)
	})
	if err != nil {
		return err
	}
	for _, t := range []struct {
		table      string
		have, want uint64
	}{{"identities", identities, v.identities.rows}, {"events", events, v.events.rows}} {
		if t.have != t.want {
			v.damage(0, t.table, fmt.Sprintf("%d rows are stored where the batches account for %d", t.have, t.want))
		}
	}
	return nil
}

// rowsOf looks for the index rows of one body.
func (v *verification) rowsOf(seq uint64, e *journal.Encoded) error {
	var at, ordinal int64
	var digest []byte
	err := v.q.QueryRowContext(v.ctx, `SELECT seq, digest FROM identities WHERE identity = ?`, string(e.Identity)).Scan(&at, &digest)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		v.damage(seq, "identities "+string(e.Identity), "the row is missing")
	case err != nil:
		return err
	case uint64(at) != seq || !isSum(digest, e.ContentSum()):
		v.damage(seq, "identities "+string(e.Identity), "the row does not lead to the batch, or has another digest")
	}
	for i, ev := range e.Events {
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
	return nil
}

// versions holds the subjects against the index of events, which was checked: all at once,
// and each by itself where that does not agree.
func (v *verification) versions() error {
	stored := newTally()
	if v.subjects != nil {
		stored = v.subjects.like()
	}
	err := v.each(`SELECT subject, version, seq FROM subjects`, func(rows *sql.Rows) error {
		var subject string
		var version, seq int64
		if err := rows.Scan(&subject, &version, &seq); err != nil {
			return err
		}
		stored.add(subject, version, seq, 0, nil)
		return nil
	})
	v.extent.Subjects = stored.rows
	if err != nil || v.sound && v.subjects.equal(stored) {
		return err
	}
	err = v.each(`SELECT s.subject, s.version, s.seq, count(e.seq), coalesce(max(e.version), 0), coalesce(max(e.seq), 0)
		FROM subjects s LEFT JOIN events e ON e.subject = s.subject GROUP BY s.subject`, func(rows *sql.Rows) error {
		var subject string
		var version, seq, count, highest, last int64
		if err := rows.Scan(&subject, &version, &seq, &count, &highest, &last); err != nil {
			return err
		}
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

func eventRow(subject lifecycle.Subject, version int64) string {
	return fmt.Sprintf("events %s version %d", subject, version)
}
