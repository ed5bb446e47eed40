// Package peer is what benchmarks of the journal are measured against, in turns of the same run.
package peer

import (
	"crypto/sha256"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/writ-runtime/writ/go/journal"
)

// SQLite makes the rows of batches durable with prepared statements and nothing else: no kernel, no encoding, no
// check, no chain. It groups what waits, as the journal does.
type SQLite struct {
	db      *sql.DB
	batches []journal.Entry
	queue   chan request
	done    chan struct{}
	seq     int
}

type request struct {
	batch  *journal.Entry
	name   string
	stored chan error
}

// Open returns a store that repeats the batches. It needs the driver of go/journal/sqlite, and ends with the
// benchmark.
func Open(b *testing.B, batches ...journal.Entry) *SQLite {
	b.Helper()
	path := filepath.Join(b.TempDir(), "plain.db")
	db, err := sql.Open("sqlite", path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(16384)")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, s := range []string{
		`CREATE TABLE batches (seq INTEGER PRIMARY KEY, identity TEXT NOT NULL, body BLOB NOT NULL, prev BLOB NOT NULL, chain BLOB NOT NULL) STRICT`,
		`CREATE TABLE identities (identity TEXT PRIMARY KEY, seq INTEGER NOT NULL, digest BLOB NOT NULL) STRICT, WITHOUT ROWID`,
		`CREATE TABLE subjects (subject TEXT PRIMARY KEY, version INTEGER NOT NULL, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
		`CREATE TABLE events (subject TEXT NOT NULL, version INTEGER NOT NULL, seq INTEGER NOT NULL, ordinal INTEGER NOT NULL, PRIMARY KEY (subject, version)) STRICT, WITHOUT ROWID`,
	} {
		if _, err := db.Exec(s); err != nil {
			b.Fatal(err)
		}
	}
	p := &SQLite{db: db, batches: batches, queue: make(chan request, 1024), done: make(chan struct{})}
	go p.run(b)
	b.Cleanup(func() { close(p.queue); <-p.done; _ = p.db.Close() })
	return p
}

// Store makes the batches durable, one after the other; name sets their identities and subjects apart from those
// that were stored before.
func (p *SQLite) Store(name string) error {
	for i := range p.batches {
		r := request{&p.batches[i], name, make(chan error, 1)}
		p.queue <- r
		if err := <-r.stored; err != nil {
			return err
		}
	}
	return nil
}

// group waits for one request and takes what else waits.
func (p *SQLite) group() []request {
	first, open := <-p.queue
	if !open {
		return nil
	}
	group := []request{first}
	for len(group) < 512 {
		select {
		case r, open := <-p.queue:
			if !open {
				return group
			}
			group = append(group, r)
		default:
			return group
		}
	}
	return group
}

func (p *SQLite) run(b *testing.B) {
	defer close(p.done)
	prepare := func(s string) *sql.Stmt {
		stmt, err := p.db.Prepare(s)
		if err != nil {
			b.Error(err)
		}
		return stmt
	}
	begin, commit := prepare(`BEGIN IMMEDIATE`), prepare(`COMMIT`)
	identity := prepare(`INSERT INTO identities VALUES (?, ?, ?)`)
	batch := prepare(`INSERT INTO batches VALUES (?, ?, ?, ?, ?)`)
	event := prepare(`INSERT INTO events VALUES (?, ?, ?, ?)`)
	subject := prepare(`INSERT INTO subjects VALUES (?, ?, ?) ON CONFLICT (subject) DO UPDATE SET version = excluded.version, seq = excluded.seq`)
	sum := sha256.Sum256(nil)
	for group := p.group(); group != nil; group = p.group() {
		var err error
		exec := func(s *sql.Stmt, args ...any) {
			if err == nil {
				_, err = s.Exec(args...)
			}
		}
		exec(begin)
		for _, r := range group {
			p.seq++
			last := map[string]uint64{}
			name := string(r.batch.Identity) + "/" + r.name
			exec(identity, name, p.seq, sum[:])
			exec(batch, p.seq, name, r.batch.Body, sum[:], sum[:])
			for i, ev := range r.batch.Events {
				own := string(ev.Subject) + "/" + r.name
				exec(event, own, ev.Version, p.seq, i)
				last[own] = ev.Version
			}
			for s, version := range last {
				exec(subject, s, version, p.seq)
			}
		}
		exec(commit)
		for _, r := range group {
			r.stored <- err
		}
	}
}
