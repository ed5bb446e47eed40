package model_test

import (
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/workorder"
)

// reference is what a person who read the specification expects of the runtime, in a few
// lines. It knows what was recorded, and nothing of how.
type reference struct {
	orders     map[workorder.ID]*orderRef
	attempts   map[workorder.AttemptID]*attemptRef
	deliveries map[string]*deliveryRef
	clock      clockRef
	// ceiling is how much time there is to draw on, in milliseconds.
	ceiling int64
	// recorded counts the turns that are durable.
	recorded uint64
}

type orderRef struct {
	attempts int64
	// applied counts the results that were applied to it.
	applied int
}

type attemptRef struct {
	id    workorder.AttemptID
	order workorder.ID
	// closed is the state in which it was first seen at its end, empty before.
	closed     lifecycle.State
	generation uint64
	operations map[operation.Key]*operationRef
}

// operationRef is one operation by what was answered: the first answer that settles counts.
type operationRef struct {
	intent  operation.Intent
	state   lifecycle.State
	receipt string
}

// answer takes an answer that was recorded.
func (o *operationRef) answer(s kernel.Settle) {
	switch {
	case o.state == "intended":
	case o.state == "unknown" && o.intent.Class != operation.NonReconcilable && s.Outcome.Knowledge != operation.Unknown:
	default:
		return
	}
	o.state, o.receipt = lifecycle.State(s.Outcome.Knowledge), string(s.Receipt)
}

// settled reports whether nothing will change the operation any more.
func (o *operationRef) settled() bool { return o.state == "applied" || o.state == "not_applied" }

// deliveryRef is a command that was answered.
type deliveryRef struct {
	text   string
	answer ingress.Answer
	// disputed says that other bytes came under its id.
	disputed bool
}

// clockRef is a clock by the readings that were recorded.
type clockRef struct {
	known, blocked bool
	last           int64
	// from is the reading from which on a person said that it counts, disowned the newest of
	// those of which one was wrong then.
	from, disowned int64
}

// The bounds of a clock that counts, in milliseconds, as RATIONALE.md has them: two seconds
// back, ninety days ahead.
const (
	mostBack  = 2_000
	mostAhead = 90 * 24 * 3600 * 1000
)

// observe takes a reading.
func (c *clockRef) observe(now int64) {
	switch {
	case !c.known:
		c.known, c.last = true, now
	case c.blocked:
	case now < c.last-mostBack || now > c.last+mostAhead:
		c.blocked, c.disowned = true, max(c.last, now)
	case now > c.last:
		c.last = now
	}
}

// reconcile takes the word of a person.
func (c *clockRef) reconcile(from int64) { c.blocked, c.last, c.from = false, from, from }

// due is when a pause is over that began at a reading. One that was disowned since is measured
// from where the clock counts again.
func (c *clockRef) due(begun, delay int64) int64 {
	if begun > c.from && begun <= c.disowned && c.last < begun {
		begun = c.from
	}
	return begun + delay
}
