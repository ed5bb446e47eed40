package peer

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// River is a job queue over SQLite with the journal's driver and its durability: a job is recorded before it is done
// and after, and nothing of it is checked, chained or receipted.
type River struct {
	client *river.Client[*sql.Tx]
	done   <-chan *river.Event
}

// empty is a job that does nothing.
type empty struct {
	Number int `json:"number"`
}

// Kind implements river.JobArgs.
func (empty) Kind() string { return "empty" }

// worker does empty jobs.
type worker struct {
	river.WorkerDefaults[empty]
}

// Work implements river.Worker.
func (worker) Work(context.Context, *river.Job[empty]) error { return nil }

// OpenRiver starts a queue that does so many jobs at once. It looks for work as often as River lets it, and ends with
// the benchmark.
func OpenRiver(b *testing.B, atOnce int) *River {
	b.Helper()
	path := filepath.Join(b.TempDir(), "river.db")
	db, err := sql.Open("sqlite", path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(16384)")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1) // As River's driver says.
	b.Cleanup(func() { _ = db.Close() })
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	migrator, err := rivermigrate.New(riversqlite.New(db), &rivermigrate.Config{Logger: quiet})
	if err == nil {
		_, err = migrator.Migrate(b.Context(), rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{})
	client, err := river.NewClient(riversqlite.New(db), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: atOnce}}, Workers: workers, Logger: quiet,
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: river.FetchPollIntervalMin,
	})
	if err != nil {
		b.Fatal(err)
	}
	done, cancel := client.SubscribeConfig(&river.SubscribeConfig{Kinds: []river.EventKind{river.EventKindJobCompleted}, ChanSize: 1 << 16})
	if err := client.Start(context.WithoutCancel(b.Context())); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cancel()
		stop, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := client.Stop(stop); err != nil {
			b.Errorf("stop River: %v", err)
		}
	})
	return &River{client: client, done: done}
}

// Do has the clients ask for n empty jobs, and returns how long it took until all of them were recorded as done.
func (r *River) Do(b *testing.B, clients, n int) time.Duration {
	b.Helper()
	begun := time.Now()
	Drive(b, clients, n, func(i int) error {
		_, err := r.client.Insert(b.Context(), empty{i}, nil)
		return err
	})
	for i := range n {
		if _, open := <-r.done; !open {
			b.Fatal(fmt.Errorf("River ended after %d jobs of %d", i, n))
		}
	}
	return time.Since(begun)
}
