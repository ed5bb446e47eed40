package bench_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/testing/fixture"
)

// plain makes the rows of attempts durable with prepared statements and nothing else: no
// kernel, no encoding, no check, no chain. It groups what waits, as the journal does.
type plain struct {
	db    *sql.DB
	turns []plainTurn
	queue chan plainRequest
	done  chan struct{}
	seq   int
}

// plainTurn is one turn of the attempt that it repeats: the stored body, and the subject
// and version of each event.
type plainTurn struct {
	identity string
	body     []byte
	events   []plainEvent
}

type plainEvent struct {
	subject string
	version uint64
}

type plainRequest struct {
	turn   *plainTurn
	name   string
	stored chan error
}

// newPlain returns a plain store that repeats the turns of a recorded attempt.
func newPlain(b *testing.B, recorded []journal.Entry) *plain {
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
	p := &plain{db: db, queue: make(chan plainRequest, 1024), done: make(chan struct{})}
	for _, e := range recorded {
		t := plainTurn{identity: string(e.Identity), body: e.Body}
		for _, ev := range e.Events {
			t.events = append(t.events, plainEvent{string(ev.Subject), ev.Version})
		}
		p.turns = append(p.turns, t)
	}
	go p.run(b)
	return p
}

// attempt makes the turns of one attempt durable, one after the other.
func (p *plain) attempt(name string) error {
	for i := range p.turns {
		r := plainRequest{&p.turns[i], name, make(chan error, 1)}
		p.queue <- r
		if err := <-r.stored; err != nil {
			return err
		}
	}
	return nil
}

func (p *plain) close() { close(p.queue); <-p.done; _ = p.db.Close() }

// group waits for one request and takes what else waits.
func (p *plain) group() []plainRequest {
	first, open := <-p.queue
	if !open {
		return nil
	}
	group := []plainRequest{first}
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

func (p *plain) run(b *testing.B) {
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
	sum := []byte(fixture.Digest("sum"))[:32]
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
			name := r.turn.identity + "/" + r.name
			exec(identity, name, p.seq, sum)
			exec(batch, p.seq, name, r.turn.body, sum, sum)
			for i, ev := range r.turn.events {
				own := ev.subject + "/" + r.name
				exec(event, own, ev.version, p.seq, i)
				last[own] = ev.version
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
