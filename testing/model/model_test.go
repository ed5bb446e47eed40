// Package model_test runs random histories over kernel, ledger and the real journal, with a
// world that loses, delays and repeats answers, and lives that end at any point, and holds
// each of them against a small reference.
//
// The ordinary run takes a few seconds. A change of kernel, ledger or store deserves more:
//
//	go test ./testing/model -model.histories=2000
package model_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/projection"
)

// enough is how many histories come by everything that there is.
const enough = 500

var histories = flag.Int("model.histories", 25, "how many histories are drawn")

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	set := map[string]string{"rapid.checks": strconv.Itoa(*histories), "rapid.steps": "50", "rapid.nofailfile": "true"}
	flag.Visit(func(f *flag.Flag) { delete(set, f.Name) })
	for name, value := range set {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// Whatever happens in whatever order, nothing is done twice and nothing that was recorded is
// lost; at the end everything comes to its end, or says what person it waits for.
func TestNothingTwiceNothingLost(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(t, rt, seen)
		defer m.close()
		rt.Repeat(map[string]func(*rapid.T){
			"":               m.hold,
			"submit":         m.submit,
			"submit again":   m.submitAgain,
			"reserve":        m.reserve,
			"activate":       m.activate,
			"abandon":        m.abandon,
			"begin":          m.begin,
			"begin another":  m.begin,
			"step":           m.step,
			"step on":        m.step,
			"step further":   m.step,
			"walk":           m.walk,
			"step at last":   m.step,
			"late answer":    m.lateAnswer,
			"answer again":   m.answerAgain,
			"ask again":      m.askAgain,
			"spend again":    m.spendAgain,
			"cancel":         m.cancel,
			"dispose":        m.dispose,
			"wake":           m.wake,
			"deliver again":  m.deliverAgain,
			"time passes":    m.timePasses,
			"reconcile time": m.reconcileTime,
			"retry":          m.retry,
			"change ceiling": m.changeCeiling,
			"settle budget":  m.settleBudget,
			"lose":           m.lose,
			"crash":          m.crash,
		})
		m.end(rt)
	})
	// Histories in which nothing of interest happens show nothing.
	for _, what := range []string{"applied", "lost", "retry_wait", "unknown_terminal", "cancelled", "disposed", "refused twice", "late", "crash", "in doubt", "settled", "unfunded"} {
		if seen[what] == 0 && *histories >= enough {
			t.Errorf("no history came by %q: %v", what, seen)
		}
	}
	t.Logf("%v", seen)
}

// hold is what must be true after every step.
func (m *machine) hold(t *rapid.T) {
	for id, a := range m.ref.attempts {
		s, err := m.ledger.State(m.ctx, id)
		must(t, err)
		m.holdAttempt(t, s, a)
	}
	for key, n := range m.world.effects {
		if n > 1 {
			t.Fatalf("%s had %d effects", key, n)
		}
	}
	for key, n := range m.world.asked {
		if n > 1 {
			t.Fatalf("%s was performed %d times", key, n)
		}
	}
	for id, o := range m.ref.orders {
		s, err := m.ledger.Order(m.ctx, id)
		must(t, err)
		if s.Attempts != o.attempts {
			t.Fatalf("%s has %d attempts, %d were reserved", id, s.Attempts, o.attempts)
		}
		applied := 0
		events, err := m.store.Events(m.ctx, s.OrderSubject())
		must(t, err)
		for _, e := range events {
			if e.Family == "work_order.applied" {
				applied++
			}
		}
		if applied > 1 {
			t.Fatalf("%s was applied %d times", id, applied)
		}
		m.seen[string(s.Of(kernel.WorkOrderMachine).State)]++
	}
	// Whoever follows the journal has the index that reading all of it gives.
	followed, err := m.index.Index(m.ctx)
	must(t, err)
	built, err := projection.Build(m.ctx, m.store, m.kernel.Transitions())
	must(t, err)
	if got, want := marshalled(t, followed), marshalled(t, built); !bytes.Equal(got, want) {
		t.Fatalf("followed, the index is\n%s\nand built anew\n%s", got, want)
	}
	m.holdAccount(t)
	c, err := m.ledger.Clock(m.ctx, m.clock.domain)
	must(t, err)
	if known := c.At.Version > 0; known != m.ref.clock.known || known && (c.Steady() == m.ref.clock.blocked || c.Last.UnixMilli != m.ref.clock.last) {
		t.Fatalf("the clock is %+v, expected %+v", c, m.ref.clock)
	}
}

// holdAttempt holds one attempt against the reference.
func (m *machine) holdAttempt(t *rapid.T, s kernel.State, a *attemptRef) {
	at := s.Of(kernel.AttemptMachine)
	if s.Generation < a.generation {
		t.Fatalf("the fence of %s fell from generation %d to %d", a.id, a.generation, s.Generation)
	}
	a.generation = s.Generation
	switch closed := m.kernel.Closed(s); {
	case a.closed == "" && closed:
		a.closed = at.State
		if s.Result == nil {
			t.Fatalf("%s is closed as %s without a result", a.id, at.State)
		}
	case a.closed != "" && at.State != a.closed:
		t.Fatalf("%s was %s at its end and is %s", a.id, a.closed, at.State)
	}
	if len(s.Operations()) != len(a.operations) {
		t.Fatalf("%s has %d operations, %d were begun", a.id, len(s.Operations()), len(a.operations))
	}
	for _, o := range s.Operations() {
		want := a.operations[o.Intent.Key]
		if want == nil || want.intent != o.Intent || want.state != o.State {
			t.Fatalf("%s is %s (%+v), expected %+v", o.Intent.Key, o.State, o.Intent, want)
		}
		if string(o.Record.Receipt) != want.receipt {
			t.Fatalf("%s has the receipt %s, recorded was %s", o.Intent.Key, o.Record.Receipt, want.receipt)
		}
	}
	p, err := m.kernel.Next(s)
	must(t, err)
	if p.Done && m.world.alive[s.Resource] {
		t.Fatalf("nothing of %s is left to do, and something bears the name %s", a.id, s.Resource)
	}
	parts := 0
	for _, set := range []bool{len(p.Resolve) > 0, p.Reconcile, len(p.Begin) > 0, p.Reduce, p.Wait != "", p.Done} {
		if set {
			parts++
		}
	}
	if parts != 1 {
		t.Fatalf("the plan of %s has %d parts: %+v", a.id, parts, p)
	}
}

// sound verifies the whole journal, and that each attempt is in it what it is in memory.
func (m *machine) sound(t *rapid.T) {
	extent, err := m.store.Verify(m.ctx, func(d journal.Damage) { t.Errorf("damage: %+v", d) })
	must(t, err)
	if extent.Batches != m.ref.recorded {
		t.Fatalf("the journal has %d turns, %d were recorded", extent.Batches, m.ref.recorded)
	}
}

func marshalled(t *rapid.T, x *projection.Index) []byte {
	t.Helper()
	b, err := canonical.Marshal(x)
	must(t, err)
	return b
}

func must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
