package model_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/evidence"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// clock is a clock that is set by hand.
type clock struct {
	domain string
	now    int64
}

// Now implements ledger.Clock.
func (c *clock) Now() journal.Observation {
	return journal.Observation{Domain: c.domain, UnixMilli: c.now}
}

// Micros implements ledger.Clock.
func (c *clock) Micros() int64 { return 0 }

// Lot implements ledger.Clock.
func (c *clock) Lot() uint32 { return 250 }

// machine is one history: what outlives a crash, what does not, and what is expected.
type machine struct {
	t      *testing.T
	ctx    context.Context
	seen   map[string]int
	dir    string
	kernel kernel.Kernel
	world  *world
	clock  *clock
	ref    *reference
	ids    int
	// told are answers that were recorded, late those that are still on their way. They come
	// to whoever lives then.
	told, late []message

	// reader stays open through every life, as another process would, and index is its view.
	reader *sqlite.Store
	index  *projection.View

	// lives counts the lives that have begun. What one life holds in memory is all below.
	lives  int
	store  *store
	ledger *ledger.Ledger
	drives map[workorder.AttemptID]*drive
	spent  []ledger.Permit
}

// drive is what the supervisor of one attempt holds in memory.
type drive struct {
	permits []ledger.Permit
	settled []kernel.Settle
	// failed is set once an effect of the turn did not succeed: what follows is skipped.
	failed *kernel.Failure
}

// message is an answer on its way to an attempt.
type message struct {
	attempt *attemptRef
	settle  kernel.Settle
}

// newMachine begins a history under a registry of effect classes in which a launch is of a
// class that is drawn.
func newMachine(t *testing.T, rt *rapid.T, seen map[string]int) *machine {
	dir, err := os.MkdirTemp("", "model")
	must(rt, err)
	class := rapid.SampledFrom([]operation.EffectClass{operation.Reconcilable, operation.ProviderIdempotent, operation.NonReconcilable}).Draw(rt, "class of a launch")
	m := &machine{
		t: t, ctx: context.Background(), seen: seen, dir: dir, kernel: kernelWith(rt, class),
		world: newWorld(), clock: &clock{"host", fixture.Now},
		ref: &reference{orders: map[workorder.ID]*orderRef{}, attempts: map[workorder.AttemptID]*attemptRef{}, deliveries: map[string]*deliveryRef{}},
	}
	m.live(rt)
	m.setCeiling(rt, 3*share)
	m.reader, err = sqlite.Open(m.ctx, dir, sqlite.Options{})
	must(rt, err)
	m.index = projection.NewView(m.reader, m.kernel.Transitions())
	return m
}

func (m *machine) close() {
	_ = m.reader.Close()
	_ = m.store.Close()
	_ = os.RemoveAll(m.dir)
}

// live begins a life: nothing of the one before is left but the journal and the world.
func (m *machine) live(t *rapid.T) {
	s, err := sqlite.Open(m.ctx, m.dir, sqlite.Options{Write: true})
	must(t, err)
	m.lives++
	m.store = &store{Store: s}
	m.ledger = ledger.New(m.store, m.kernel, m.clock)
	m.drives, m.spent = map[workorder.AttemptID]*drive{}, nil
}

func (m *machine) crash(t *rapid.T) {
	must(t, m.store.Close())
	m.seen["crash"]++
	m.live(t)
}

// lose has the next turn be lost on its way to the disk, or its acknowledgement on the way
// back.
func (m *machine) lose(t *rapid.T) {
	m.store.next = rapid.SampledFrom([]lossOf{theTurn, theAnswer}).Draw(t, "what")
}

// commit takes what became of a commit: done is called if the turn is durable, whoever heard
// of it. It returns false if the turn was refused, or nobody knows: then this life is over.
func (m *machine) commit(t *rapid.T, o ledger.Opened, err error, done func()) bool {
	if m.store.stored {
		m.ref.recorded++
		m.store.stored = false
		done()
	}
	var doubt *ledger.InDoubtError
	switch _, refused := reason.As(err); {
	case errors.As(err, &doubt):
		m.seen["in doubt"]++
		m.crash(t)
		return false
	case err != nil && !refused:
		t.Fatalf("neither a refusal nor a doubt: %v", err)
	}
	return err == nil
}

// drawn returns one of the keys of a map, in an order that does not change; it skips the
// action where there is none.
func drawn[K ~string, V any](t *rapid.T, from map[K]V, keep func(K, V) bool) K {
	var keys []K
	for _, k := range slices.Sorted(maps.Keys(from)) {
		if keep(k, from[k]) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(keys).Draw(t, "of")
}

// state is where an attempt stands.
func (m *machine) state(t *rapid.T, id workorder.AttemptID) kernel.State {
	s, err := m.ledger.State(m.ctx, id)
	must(t, err)
	return s
}

// attempt draws an attempt of which keep is true.
func (m *machine) attempt(t *rapid.T, keep func(kernel.State) bool) (*attemptRef, kernel.State) {
	id := drawn(t, m.ref.attempts, func(id workorder.AttemptID, _ *attemptRef) bool { return keep(m.state(t, id)) })
	return m.ref.attempts[id], m.state(t, id)
}

func (m *machine) id(prefix string) string {
	m.ids++
	return fmt.Sprintf("%s_01939a3c-7c1e-7000-8000-%012d", prefix, m.ids)
}

func (m *machine) desk() *ingress.Desk {
	return &ingress.Desk{
		Gate: ingress.NewGate("uid:0"), Ledger: m.ledger, Journal: m.store,
		Running: func(context.Context, workorder.AttemptID, []kernel.Command, []journal.Blob) (bool, error) {
			return false, nil // Whoever supervises an attempt here looks at its state before each turn.
		},
	}
}

// end has the world answer from now on, and everything that still can come to its end. Then
// the whole journal is replayed.
func (m *machine) end(t *rapid.T) {
	m.store.next = nothing
	for _, id := range slices.Sorted(maps.Keys(m.ref.attempts)) {
		m.finish(t, id)
	}
	m.hold(t)
	remembered := map[workorder.AttemptID]kernel.State{}
	for id := range m.ref.attempts {
		remembered[id] = m.state(t, id)
	}
	m.crash(t)
	m.sound(t)
	for id, s := range remembered {
		// Other attempts at the same work order come after what this one remembers of it.
		now := m.state(t, id)
		if m.ref.orders[m.ref.attempts[id].order].attempts == 1 && !reflect.DeepEqual(s.Operations(), now.Operations()) {
			t.Fatalf("%s is\n%+v\nin the journal, and\n%+v\nin memory", id, now, s)
		}
	}
	out, err := evidence.Replay(m.ctx, m.store, m.kernel, 0, evidence.Watch{Refused: func(what string, err error) { t.Errorf("%s: %v", what, err) }})
	must(t, err)
	if out.Turns != m.ref.recorded || out.Attempts != len(m.ref.attempts) || out.Orders != len(m.ref.orders) {
		t.Fatalf("replayed %+v of %d turns, %d attempts, %d orders", out, m.ref.recorded, len(m.ref.attempts), len(m.ref.orders))
	}
}

// finish brings one attempt to its end. It takes no more turns than each making progress would.
func (m *machine) finish(t *rapid.T, id workorder.AttemptID) {
	for range 64 {
		s := m.state(t, id)
		if s.Of(kernel.AttemptMachine).State == "reserved" {
			m.abandoned(t, m.ref.attempts[id], s)
			continue
		}
		d := m.drives[id]
		idle := d != nil && len(d.permits) == 0 && len(d.settled) == 0
		p, err := m.kernel.Next(s)
		must(t, err)
		switch {
		case p.Done:
			return
		case idle && p.Wait != "":
			if !m.kernel.Closed(s) {
				t.Fatalf("%s waits for %s, and nobody can bring that about", id, p.Wait)
			}
			return // For a person.
		}
		m.advance(t, m.ref.attempts[id], func() fate { return answered })
	}
	s := m.state(t, id)
	p, err := m.kernel.Next(s)
	t.Fatalf("%s does not come to its end: %s, %+v, %v", id, s.Of(kernel.AttemptMachine).State, p, err)
}
