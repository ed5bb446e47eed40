package bench_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/bench/peer"
	"github.com/writ-runtime/writ/testing/fixture"
)

// BenchmarkLedger is ledger and kernel alone: whole attempts over a real SQLite journal,
// with effects that do nothing; and SQLite itself, which makes the rows of the same
// attempts durable in the same number of turns. Both take turns in the same run, so that
// whatever else the machine does hits them alike. One op is two attempts a client.
func BenchmarkLedger(b *testing.B) {
	for _, atOnce := range []int{1, 64} {
		b.Run(fmt.Sprintf("at-once=%d", atOnce), func(b *testing.B) {
			store, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{Write: true})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			f := &factory{b: b, kernel: fixture.Kernel(b)}
			l := ledger.New(store, f.kernel, still{})
			recorded := recordOne(b, store, l, f)
			plain := peer.Open(b, recorded...)

			each := 2 * atOnce
			var ours, theirs time.Duration
			for range b.N {
				lives := f.make(l, each)
				ours += peer.Drive(b, atOnce, each, func(i int) error { return lives[i].live(b.Context()) })
				first := f.made
				theirs += peer.Drive(b, atOnce, each, func(i int) error { return plain.Store(fmt.Sprintf("%d-%d", first, i)) })
			}
			attempts := float64(b.N * each)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(attempts/ours.Seconds(), "attempts/s")
			b.ReportMetric(attempts*float64(len(recorded))/ours.Seconds(), "turns/s")
			b.ReportMetric(attempts*float64(len(recorded))/theirs.Seconds(), "plain-turns/s")
			b.ReportMetric(100*theirs.Seconds()/ours.Seconds(), "%-of-plain")
		})
	}
}

// BenchmarkQueue is a whole attempt whose effects do nothing beside an empty job of River, a
// queue over SQLite with the same driver and the same durability: what is asked for is
// recorded, done, and recorded as done. Both take turns in the same run. One op is 512 of
// each, 64 at once: River gathers what is done for a while before it records it, which a few
// jobs alone would wait for.
func BenchmarkQueue(b *testing.B) {
	const atOnce, each = 64, 512
	store, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{Write: true})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	f := &factory{b: b, kernel: fixture.Kernel(b)}
	l := ledger.New(store, f.kernel, still{})
	queue := peer.OpenRiver(b, atOnce)
	var ours, theirs time.Duration
	for range b.N {
		lives := f.make(l, each)
		ours += peer.Drive(b, atOnce, each, func(i int) error { return lives[i].live(b.Context()) })
		theirs += queue.Do(b, atOnce, each)
	}
	done := float64(b.N * each)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(done/ours.Seconds(), "attempts/s")
	b.ReportMetric(done/theirs.Seconds(), "river-jobs/s")
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "attempts-a-job")
}

// recordOne carries one attempt and returns its turns as the journal stored them.
func recordOne(b *testing.B, store journal.Reader, l *ledger.Ledger, f *factory) []journal.Entry {
	b.Helper()
	if err := f.make(l, 1)[0].live(b.Context()); err != nil {
		b.Fatal(err)
	}
	page, err := store.Page(b.Context(), 0, 100)
	if err != nil {
		b.Fatal(err)
	}
	return page
}

// factory makes attempts like the fixed one, each with ids of its own. What admission
// would do, their bundles, is done before the clock runs.
type factory struct {
	b      *testing.B
	kernel kernel.Kernel
	made   int
}

func (f *factory) make(l *ledger.Ledger, n int) []*life {
	f.b.Helper()
	lives := make([]*life, n)
	for i := range lives {
		f.made++
		r := fixture.Reserved(f.b, f.kernel)
		id := func(prefix string) string { return fmt.Sprintf("%s_01939a3c-7c1e-7000-8000-%012d", prefix, f.made) }
		r.ID, r.WorkOrder, r.Attempt = workorder.ReservationID(id("res")), workorder.ID(id("wo")), workorder.AttemptID(id("att"))
		r.Fence.Attempt = r.Attempt
		digests, err := fixture.Bundle(f.b, f.kernel, r, nil).Bundle().Digests()
		if err != nil {
			f.b.Fatal(err)
		}
		r.Digests = digests
		lives[i] = &life{factory: f, ledger: l, reservation: r, bundle: fixture.Bundle(f.b, f.kernel, r, nil)}
	}
	return lives
}

// life is one attempt, driven as a supervisor drives it.
type life struct {
	*factory
	ledger      *ledger.Ledger
	reservation workorder.Reservation
	bundle      *attemptbundle.Compiled
	state       kernel.State
}

// effect answers what it is told to, at once.
type effect struct{ out operation.Outcome }

func (e effect) Perform(context.Context, ledger.Permit) operation.Outcome    { return e.out }
func (e effect) Resolve(context.Context, operation.Intent) operation.Outcome { return e.out }

// live carries the attempt through its six turns.
func (l *life) live(ctx context.Context) error {
	defer l.ledger.Forget(l.reservation.Attempt)
	submit := fixture.Submit()
	submit.ID = l.reservation.WorkOrder
	opened, err := l.ledger.Reserve(ctx, kernel.State{}, l.reservation.Attempt, ledger.Turn{
		Commands: []kernel.Command{submit, kernel.Reserve{Reservation: l.reservation}}, Actor: "uid:0",
	})
	if err != nil {
		return err
	}
	l.state = opened.State
	commands := []kernel.Command{kernel.Activate{Bundle: l.bundle, Now: fixture.At(0)}}
	for {
		permits, err := l.turn(ctx, commands)
		if err != nil || len(permits) == 0 {
			return err
		}
		if commands, err = l.perform(ctx, permits); err != nil {
			return err
		}
	}
}

// turn commits commands together with all that follows from them.
func (l *life) turn(ctx context.Context, commands []kernel.Command) ([]ledger.Permit, error) {
	draft, err := l.ledger.Draft(ctx, l.state.Fence())
	if err != nil {
		return nil, err
	}
	if err := draft.Add(commands...); err != nil {
		return nil, err
	}
	plan, err := draft.Next()
	if err != nil {
		return nil, err
	}
	commands = nil
	for _, in := range plan.Begin {
		commands = append(commands, kernel.Begin{Intent: in})
	}
	opened, err := l.ledger.Commit(ctx, ledger.Turn{Fence: l.state.Fence(), Draft: draft, Commands: commands, Actor: "uid:0"})
	l.state = opened.State
	return opened.Permits, err
}

// perform runs the effects of a turn, and adds what the host itself learns from them.
func (l *life) perform(ctx context.Context, permits []ledger.Permit) ([]kernel.Command, error) {
	var commands []kernel.Command
	for _, p := range permits {
		settle, err := l.ledger.Run(ctx, p, effect{operation.Done(l.result(p.Intent().Kind))})
		if err != nil {
			return nil, err
		}
		commands = append(commands, settle)
		switch p.Intent().Kind {
		case operation.Provision:
			expected, report := fixture.Attestation(l.b, l.kernel, l.state)
			commands = append(commands, kernel.Attest{Expected: expected, Report: report})
		case operation.Launch:
			commands = append(commands, kernel.Complete{Report: protocol.CompletionReport{
				Handle: "h", Launches: []operation.Key{p.Intent().Key}, Ended: []protocol.LaunchResult{launched()},
			}})
		case operation.Collect:
			commands = append(commands, kernel.Accept{})
		}
	}
	return commands, nil
}

func launched() protocol.LaunchResult {
	return protocol.LaunchResult{Tool: fixture.Digest("textstat"), Ended: protocol.EndedExited}
}

// result is what an operation of the kind comes to.
func (l *life) result(kind operation.Kind) any {
	manifest := fixture.Digest("manifest")
	switch kind {
	case operation.Provision:
		return protocol.ProvisionResult{Provider: "wasm", Resource: l.state.Resource}
	case operation.Materialize:
		return protocol.MaterializeResult{Inputs: fixture.Digest("inputs"), Files: 1, Bytes: 2}
	case operation.Prepare:
		return protocol.PrepareResult{Handle: "h"}
	case operation.Start:
		return protocol.StartResult{Handle: "h"}
	case operation.Launch:
		return launched()
	case operation.Freeze:
		return protocol.FreezeResult{Manifest: manifest, Files: 1, Bytes: 3}
	case operation.Collect:
		return protocol.CollectResult{Manifest: manifest}
	}
	return protocol.RemovalResult{Resource: l.state.Resource, Gone: true}
}

// still is a clock that stands still.
type still struct{}

func (still) Now() journal.Observation {
	return journal.Observation{Domain: "fixture", UnixMilli: fixture.Now}
}
func (still) Micros() int64 { return 0 }
func (still) Lot() uint32   { return 0 }
