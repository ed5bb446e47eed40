package sqlite_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/storetest"
	"github.com/writ-runtime/writ/go/lifecycle"
)

// BenchmarkAppend measures appends a second with one client and with 64, and against
// SQLite itself making the same rows durable in groups formed the same way, in turns
// of the same run. A batch has two events of one subject, about 1 KB in all.
func BenchmarkAppend(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			store, plain := &storeUnderTest{s: open(b, b.TempDir(), true)}, newPlain(b)
			defer plain.close()
			var spent, spentPlain time.Duration
			for done := 0; done < b.N; {
				// Short turns, so that what else the machine does hits both alike.
				n := min(max(clients*8, 64), b.N-done)
				spent += drive(b, clients, n, store)
				spentPlain += drive(b, clients, n, plain)
				done += n
			}
			b.ReportMetric(float64(b.N)/spent.Seconds(), "appends/s")
			b.ReportMetric(float64(b.N)/spentPlain.Seconds(), "plain-appends/s")
			b.ReportMetric(100*spentPlain.Seconds()/spent.Seconds(), "%-of-plain")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// drive has the clients append n batches in all, and returns how long that took.
func drive(b *testing.B, clients, n int, to interface {
	next() int
	append(subject lifecycle.Subject, name string) error
}) time.Duration {
	turn := to.next()
	begin := time.Now()
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := c; i < n; i += clients {
				name := fmt.Sprintf("%d-%d", turn, i)
				if err := to.append(lifecycle.Of("machine", name), name); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(begin)
}

func benchBatch(epoch uint64, subject lifecycle.Subject, name string) journal.Batch {
	batch := storetest.NewBatch(name, epoch, subject, 0, 2)
	for i := range batch.Events {
		batch.Events[i].Body = canonical.Raw(fmt.Sprintf(`{"digest":%q,"padding":"%0200d","result":%q}`, canonical.Sum([]byte(name)), i, name))
	}
	return batch
}

type storeUnderTest struct {
	s    journal.Store
	turn int
}

func (s *storeUnderTest) next() int { s.turn++; return s.turn }

func (s *storeUnderTest) append(subject lifecycle.Subject, name string) error {
	batch := benchBatch(s.s.Epoch(), subject, name)
	results, err := s.s.Append(context.Background(), batch)
	if err == nil {
		err = results[0].Err
	}
	return err
}

// plain writes the rows of the journal with prepared statements and nothing else: no
// encoding, no check, no chain.
type plain struct {
	db    *sql.DB
	queue chan plainRow
	done  chan struct{}
	turn  int
	seq   int
}

type plainRow struct {
	subject, name string
	stored        chan error
}

func newPlain(b *testing.B) *plain {
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
	p := &plain{db: db, queue: make(chan plainRow, 1024), done: make(chan struct{})}
	e, err := journal.Encode(benchBatch(1, "machine/1-1", "1-1"))
	if err != nil {
		b.Fatal(err)
	}
	go p.run(b, e.Body)
	return p
}

func (p *plain) next() int { p.turn++; return p.turn }

func (p *plain) append(subject lifecycle.Subject, name string) error {
	benchBatch(1, subject, name) // what a client has before it asks, here as there
	r := plainRow{string(subject), "writ/storetest/store/append/" + name, make(chan error, 1)}
	p.queue <- r
	return <-r.stored
}

func (p *plain) close() { close(p.queue); <-p.done; _ = p.db.Close() }

func (p *plain) run(b *testing.B, body []byte) {
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
	subject := prepare(`INSERT INTO subjects VALUES (?, ?, ?)`)
	sum := sha256.Sum256(body)
	for first := range p.queue {
		group := []plainRow{first}
	more:
		for len(group) < 512 {
			select {
			case r, open := <-p.queue:
				if !open {
					break more
				}
				group = append(group, r)
			default:
				break more
			}
		}
		var err error
		exec := func(s *sql.Stmt, args ...any) {
			if err == nil {
				_, err = s.Exec(args...)
			}
		}
		exec(begin)
		for _, r := range group {
			p.seq++
			exec(identity, r.name, p.seq, sum[:])
			exec(batch, p.seq, r.name, body, sum[:], sum[:])
			exec(event, r.subject, 1, p.seq, 0)
			exec(event, r.subject, 2, p.seq, 1)
			exec(subject, r.subject, 2, p.seq)
		}
		exec(commit)
		for _, r := range group {
			r.stored <- err
		}
	}
}

// BenchmarkVerify measures the walk of the whole journal, a batch.
func BenchmarkVerify(b *testing.B) {
	s := open(b, b.TempDir(), true)
	const batches = 2000
	for i := range batches {
		name := fmt.Sprint(i)
		results, err := s.Append(b.Context(), benchBatch(s.Epoch(), lifecycle.Of("machine", name), name))
		if err != nil || results[0].Err != nil {
			b.Fatal(err, results)
		}
	}
	for b.Loop() {
		if _, err := s.Verify(b.Context(), func(d journal.Damage) { b.Errorf("damage: %+v", d) }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/batches, "µs/batch")
}

// BenchmarkEncode measures what a caller's goroutine does for one batch.
func BenchmarkEncode(b *testing.B) {
	batch := benchBatch(1, "machine/1-1", "1-1")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := journal.Encode(batch); err != nil {
			b.Fatal(err)
		}
	}
}
