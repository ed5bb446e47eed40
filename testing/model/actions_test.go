package model_test

import (
	"errors"
	"fmt"
	"reflect"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// mostOrders bounds a history.
const mostOrders = 3

func (m *machine) submission(id workorder.ID) ledger.Turn {
	submit := fixture.Submit()
	submit.ID = id
	return ledger.Turn{Commands: []kernel.Command{submit}, Actor: "uid:0"}
}

func (m *machine) submit(t *rapid.T) {
	if len(m.ref.orders) == mostOrders {
		t.Skip("enough")
	}
	id := workorder.ID(m.id("wo"))
	opened, err := m.ledger.CommitOrder(m.ctx, kernel.State{}, id, m.submission(id))
	m.commit(t, opened, err, func() { m.ref.orders[id] = &orderRef{} })
}

// submitAgain repeats a submission, as whoever never heard of the first one would.
func (m *machine) submitAgain(t *rapid.T) {
	id := drawn(t, m.ref.orders, func(workorder.ID, *orderRef) bool { return true })
	opened, err := m.ledger.CommitOrder(m.ctx, kernel.State{}, id, m.submission(id))
	m.commit(t, opened, err, func() { t.Fatal("a submission was recorded twice") })
	if err == nil && opened.Sequence == 0 {
		t.Fatal("a repeated submission is not answered by the first")
	}
}

func (m *machine) order(t *rapid.T, id workorder.ID) kernel.State {
	s, err := m.ledger.Order(m.ctx, id)
	must(t, err)
	return s
}

// reservation is the next one of a work order, for the bundle that bundleFor makes.
func (m *machine) reservation(t *rapid.T, order kernel.State) workorder.Reservation {
	r := fixture.Reserved(m.t, m.kernel)
	r.ID, r.Attempt = workorder.ReservationID(m.id("res")), workorder.AttemptID(m.id("att"))
	r.WorkOrder, r.Ordinal, r.Fence.Attempt = order.WorkOrder, order.Attempts+1, r.Attempt
	r.ExpiresUnixMilli, r.Account = m.clock.now+60_000, account
	b := m.bundleFor(r, order, 0).Bundle()
	r.Budget = b.Budget()
	digests, err := b.Digests()
	must(t, err)
	r.Digests = digests
	return r
}

// bundleFor is the bundle of a reservation, compiled at a version of its work order that is
// off by so many events.
func (m *machine) bundleFor(r workorder.Reservation, order kernel.State, off uint64) *attemptbundle.Compiled {
	return fixture.Bundle(m.t, m.kernel, r, func(b *attemptbundle.Bundle) {
		b.Cause.ExpectedVersion = order.Of(kernel.WorkOrderMachine).Version + off
		b.Ceilings.Retries = 2
	})
}

// reserve allocates an attempt. A work order that nobody works at and that is not at its end
// has room for one.
func (m *machine) reserve(t *rapid.T) {
	id := drawn(t, m.ref.orders, func(id workorder.ID, o *orderRef) bool { return o.attempts < 4 })
	order := m.order(t, id)
	r, funded := m.reservation(t, order), m.hasRoom(t)
	opened, err := m.ledger.Reserve(m.ctx, order, r.Attempt, ledger.Turn{Commands: []kernel.Command{kernel.Reserve{Reservation: r}}, Actor: "uid:0"})
	room := false
	switch order.Of(kernel.WorkOrderMachine).State {
	case "submitted", "ready":
		room = funded
	}
	if !funded {
		m.seen["unfunded"]++
	}
	ok := m.commit(t, opened, err, func() {
		m.ref.orders[id].attempts++
		m.ref.attempts[r.Attempt] = &attemptRef{id: r.Attempt, order: id, operations: map[operation.Key]*operationRef{}}
	})
	if ok != room && !isDoubt(err) {
		t.Fatalf("a reservation of an order that is %s: %v", order.Of(kernel.WorkOrderMachine).State, err)
	}
	if !ok && !isDoubt(err) {
		m.ledger.Forget(r.Attempt)
	}
}

// begin takes the usual way to a running attempt: submitted, reserved, activated.
func (m *machine) begin(t *rapid.T) {
	for _, a := range m.ref.attempts {
		if s := m.state(t, a.id); !m.kernel.Closed(s) {
			t.Skip("one is under way")
		}
	}
	if len(m.ref.orders) < mostOrders {
		m.submit(t)
	}
	lives := m.lives
	if m.reserve(t); m.lives == lives {
		m.activate(t)
	}
}

// activate activates a reservation: the order must be open, the reservation fresh, and the
// bundle compiled for what is there.
func (m *machine) activate(t *rapid.T) {
	a, s := m.attempt(t, func(s kernel.State) bool { return s.Of(kernel.AttemptMachine).State == "reserved" })
	// Another attempt at the same work order may have moved it since this one was looked at.
	order := m.order(t, a.order)
	off := rapid.SampledFrom([]uint64{0, 0, 0, 1}).Draw(t, "off")
	bundle := m.bundleFor(s.Reserved, order, off)
	activate := kernel.Activate{Bundle: bundle, Now: m.clock.Now()}
	twin := ledger.New(m.store, m.kernel, m.clock)
	if _, err := twin.State(m.ctx, a.id); err != nil {
		t.Fatal(err)
	}
	commands, err := fixture.Turn(m.kernel, s, activate)
	var opened ledger.Opened
	if err == nil {
		opened, err = m.ledger.Commit(m.ctx, ledger.Turn{Fence: s.Fence(), Commands: commands, Actor: "uid:0"})
	}
	lives := m.lives
	ok := m.commit(t, opened, err, func() { m.recorded(a, commands) })
	if ok {
		m.behind(t, twin, s, commands, opened)
	}
	switch {
	case isDoubt(err):
	case m.clock.now >= s.Reserved.ExpiresUnixMilli && !reason.Is(err, reason.BundleExpired):
		t.Fatalf("a reservation that has expired: %v", err)
	case off > 0 && ok:
		t.Fatal("a bundle of another version was activated")
	case ok && m.lives == lives:
		m.drives[a.id] = &drive{permits: opened.Permits}
	}
}

// behind has somebody act who saw the attempt before its activation: who takes the same turn
// is answered by it and may do nothing, and who takes another one is told.
func (m *machine) behind(t *rapid.T, twin *ledger.Ledger, s kernel.State, commands []kernel.Command, first ledger.Opened) {
	other := rapid.Bool().Draw(t, "another turn")
	if other {
		commands = []kernel.Command{kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.AttemptFailed, Detail: "it was behind"}}}
	}
	opened, err := twin.Commit(m.ctx, ledger.Turn{Fence: s.Fence(), Commands: commands, Actor: "uid:0"})
	if other {
		if r, ok := reason.As(err); !ok || r.Code.Exit() != reason.ExitConflict {
			t.Fatalf("another turn in the place of one that was taken: %+v, %v", opened, err)
		}
	} else if err != nil || len(opened.Permits) > 0 || opened.Sequence != first.Sequence {
		t.Fatalf("a turn that was taken again opens %d permits, as turn %d after %d: %v", len(opened.Permits), opened.Sequence, first.Sequence, err)
	}
}

// abandon closes an attempt that nothing of has begun.
func (m *machine) abandon(t *rapid.T) {
	a, s := m.attempt(t, func(s kernel.State) bool { return s.Of(kernel.AttemptMachine).State == "reserved" })
	m.abandoned(t, a, s)
}

func (m *machine) abandoned(t *rapid.T, _ *attemptRef, s kernel.State) {
	c := kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Lost, Code: reason.AttemptLost, Detail: "its supervisor is gone"}}
	opened, err := m.ledger.Commit(m.ctx, ledger.Turn{Fence: s.Fence(), Commands: []kernel.Command{c}, Actor: "uid:0"})
	m.commit(t, opened, err, func() {})
}

// askAgain begins an operation that was begun before: the same request is answered by its
// record, byte for byte, and another one under its key collides.
func (m *machine) askAgain(t *rapid.T) {
	a, s := m.attempt(t, func(s kernel.State) bool { return len(s.Operations()) > 0 })
	o := m.ref.attempts[a.id].operations[drawn(t, a.operations, func(operation.Key, *operationRef) bool { return true })]
	in := o.intent
	other := rapid.Bool().Draw(t, "other")
	if other {
		in.Digest = canonical.Sum([]byte("other"))
	}
	opened, err := m.ledger.Commit(m.ctx, ledger.Turn{Fence: s.Fence(), Commands: []kernel.Command{kernel.Begin{Intent: in}}, Actor: "uid:0"})
	m.commit(t, opened, err, func() { t.Fatal("asking again was recorded") })
	switch {
	case other && !reason.Is(err, reason.OperationCollision):
		t.Fatalf("another request under the key of %s: %v", in.Key, err)
	case !other && !o.settled() && !reason.Is(err, reason.OperationUnknownOutcome):
		t.Fatalf("%s is asked for again while it is %s: %v", in.Key, o.state, err)
	case !other && o.settled():
		if err != nil || len(opened.Permits) > 0 || len(opened.Replayed) != 1 || string(opened.Replayed[0].Receipt) != o.receipt {
			t.Fatalf("%s is asked for again: %+v, %v", in.Key, opened, err)
		}
	}
	if err != nil {
		m.seen["refused twice"]++
	}
}

// spendAgain runs an effect under a permit that is spent.
func (m *machine) spendAgain(t *rapid.T) {
	if len(m.spent) == 0 {
		t.Skip("none is spent")
	}
	p := rapid.SampledFrom(m.spent).Draw(t, "permit")
	if _, err := m.ledger.Run(m.ctx, p, effect{world: m.world}); !reason.Is(err, reason.OperationPermitInvalid) {
		t.Fatalf("a permit was spent twice: %v", err)
	}
}

// deliver hands a command to the desk, and takes its answer.
func (m *machine) deliver(t *rapid.T, text string, done func(ingress.Answer)) {
	id := m.id("dlv")
	answer, ok := m.handle(t, id, text, done)
	if ok {
		m.ref.deliveries[id] = &deliveryRef{text: text, answer: answer}
	}
}

// handle has the desk hear one delivery. Every turn that it takes counts.
func (m *machine) handle(t *rapid.T, id, text string, done func(ingress.Answer)) (ingress.Answer, bool) {
	m.store.next = nothing // Of a delivery that was only received, deliverAgain has the same.
	answer, err := m.desk().Handle(m.ctx, "uid:0", ingress.Delivery{ID: id, Channel: "local", Verb: ingress.Command, Content: []byte(text)})
	must(t, err)
	extent, err := m.store.Page(m.ctx, m.ref.recorded, 100)
	must(t, err)
	m.ref.recorded += uint64(len(extent))
	m.store.stored = false
	if done != nil {
		done(answer)
	}
	return answer, true
}

func (m *machine) wake(t *rapid.T) {
	m.deliver(t, "/writ wake", func(a ingress.Answer) { expect(t, a, "applied") })
}

func expect(t *rapid.T, a ingress.Answer, states ...lifecycle.State) {
	for _, s := range states {
		if a.State == s {
			return
		}
	}
	t.Fatalf("%s came to %s (%v), expected %v", a.Verb, a.State, a.Refusal(), states)
}

// deliverAgain delivers under the id of a delivery that was answered: the same bytes get the
// same answer, others are quarantined, and nothing else changes.
func (m *machine) deliverAgain(t *rapid.T) {
	id := drawn(t, m.ref.deliveries, func(string, *deliveryRef) bool { return true })
	d := m.ref.deliveries[id]
	before := map[workorder.ID]uint64{}
	for o := range m.ref.orders {
		before[o] = m.order(t, o).Events()
	}
	if rapid.Bool().Draw(t, "the same") {
		answer, _ := m.handle(t, id, d.text, nil)
		want := d.answer
		want.Replayed = true
		if !reflect.DeepEqual(answer, want) {
			t.Fatalf("delivered again: %+v, first %+v", answer, want)
		}
	} else {
		answer, _ := m.handle(t, id, d.text+" ", nil)
		expect(t, answer, "quarantined")
		d.disputed = true
	}
	for o, n := range before {
		if m.order(t, o).Events() != n {
			t.Fatalf("a redelivery changed %s", o)
		}
	}
}

// cancel asks for the end of a work order, as of what is there or of something older.
func (m *machine) cancel(t *rapid.T) {
	id := drawn(t, m.ref.orders, func(workorder.ID, *orderRef) bool { return true })
	order := m.order(t, id)
	version := order.Of(kernel.WorkOrderMachine).Version
	// Most histories would end at once if most people were sure.
	stale := rapid.IntRange(0, 7).Draw(t, "stale") > 0
	if stale {
		version--
	}
	m.deliver(t, fmt.Sprintf("/writ cancel-work %s --expected-version %d --reason enough", id, version), func(a ingress.Answer) {
		switch {
		case stale:
			expect(t, a, "conflict")
		default:
			expect(t, a, "applied", "rejected", "conflict")
		}
	})
}

// dispose has a person judge an effect that nobody could ask about.
func (m *machine) dispose(t *rapid.T) {
	a, s := m.attempt(t, func(s kernel.State) bool {
		return s.Of(kernel.WorkOrderMachine).State == "unknown_terminal" && s.Of(kernel.AttemptMachine).State == "unknown_terminal"
	})
	key := drawn(t, a.operations, func(operation.Key, *operationRef) bool { return true })
	what := rapid.SampledFrom([]string{kernel.ConfirmedAbsent, kernel.ConfirmedApplied, kernel.AbandonedUnknown}).Draw(t, "disposition")
	version := s.Of(kernel.WorkOrderMachine).Version
	text := fmt.Sprintf("/writ resolve-ambiguous-effect %s --disposition %s --operation-key %s --evidence seen --expected-version %d --reason looked", a.id, what, key, version)
	m.deliver(t, text, func(answer ingress.Answer) {
		if answer.State != "applied" {
			return
		}
		m.seen["disposed"]++
		// Which operations a word speaks for is the kernel's to say; that it speaks only for
		// unknown ones, and which word it was, is held here.
		for _, o := range m.state(t, a.id).Operations() {
			ref := a.operations[o.Intent.Key]
			if o.State == ref.state {
				continue
			}
			word := map[string]lifecycle.State{kernel.ConfirmedApplied: "applied", kernel.ConfirmedAbsent: "not_applied", kernel.AbandonedUnknown: "abandoned_unknown"}[what]
			if ref.state != "unknown" || o.State != word {
				t.Fatalf("%s was %s and is %s by %s", o.Intent.Key, ref.state, o.State, what)
			}
			ref.state = o.State
		}
	})
}

// timePasses sets the clock, and has it observed.
func (m *machine) timePasses(t *rapid.T) {
	const day = 24 * 3600 * 1000
	m.clock.now += rapid.SampledFrom([]int64{1, 1500, 10_000, 600_000, 600_000, day, 100 * day, -1000, -10_000}).Draw(t, "by")
	c, err := m.ledger.Clock(m.ctx, m.clock.domain)
	must(t, err)
	now := m.clock.Now()
	err = m.ledger.CommitClock(m.ctx, c, ledger.Turn{Commands: []kernel.Command{kernel.ObserveClock{Clock: c, Now: now}}, Actor: "uid:0"})
	recorded := false
	ok := m.commit(t, ledger.Opened{}, err, func() { recorded = true })
	switch {
	case ok || recorded:
		m.ref.clock.observe(now.UnixMilli)
	case !isDoubt(err):
		t.Fatal(err)
	}
}

// reconcileTime has a person say from when on a clock counts.
func (m *machine) reconcileTime(t *rapid.T) {
	c, err := m.ledger.Clock(m.ctx, m.clock.domain)
	must(t, err)
	if c.At.Version == 0 {
		t.Skip("it was never read")
	}
	stale := rapid.Bool().Draw(t, "stale")
	version := c.At.Version
	if stale {
		version++
	}
	m.deliver(t, fmt.Sprintf("/writ reconcile-clock %s --from %d --expected-version %d --reason looked", m.clock.domain, m.clock.now, version), func(a ingress.Answer) {
		switch {
		case !m.ref.clock.blocked:
			expect(t, a, "rejected")
		case stale:
			expect(t, a, "conflict")
		default:
			expect(t, a, "applied")
			m.ref.clock.reconcile(m.clock.now)
		}
	})
}

// retry ends the wait of a work order, by a clock that counts and has come far enough.
func (m *machine) retry(t *rapid.T) {
	id := drawn(t, m.ref.orders, func(id workorder.ID, _ *orderRef) bool {
		return m.order(t, id).Of(kernel.WorkOrderMachine).State == "retry_wait"
	})
	order := m.order(t, id)
	c, err := m.ledger.Clock(m.ctx, m.clock.domain)
	must(t, err)
	w := order.Retry
	due := m.ref.clock.due(w.NotBefore.UnixMilli-w.DelayMillis, w.DelayMillis)
	may := m.ref.clock.known && !m.ref.clock.blocked && m.ref.clock.last >= due
	opened, err := m.ledger.CommitOrder(m.ctx, order, id, ledger.Turn{Commands: []kernel.Command{kernel.RetryReady{Clock: c}}, Actor: "uid:0"})
	if ok := m.commit(t, opened, err, func() {}); ok != may && !isDoubt(err) {
		t.Fatalf("the wait until %d ends at %+v: %v", due, m.ref.clock, err)
	}
}

// isDoubt reports whether nobody knows what became of a turn.
func isDoubt(err error) bool {
	var doubt *ledger.InDoubtError
	return errors.As(err, &doubt)
}
