package kernel

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
)

// Retained is what is kept of an environment that is gone.
type Retained struct {
	protocol.Retention
	// Expired is the reading by which its time was over and its removal began, nil before.
	Expired *lifecycle.Observation
	// Ended says that it is removed.
	Ended bool
}

// againPrefix begins the purpose of a further try to destroy; its number follows, from 1.
const againPrefix = "again-"

// retention is the policy that a cleanup or a destroy is asked for with. The tries to
// destroy keep as often as the bundle allows tries; those after them, and the removal of
// what was kept, keep nothing.
func (s State) retention(w want) protocol.RetentionParameters {
	b := s.Bundle.Bundle()
	p := protocol.RetentionParameters{Keep: b.Environment.Retention.Keep, Days: b.Environment.Retention.Days}
	if number, ok := strings.CutPrefix(w.purpose, againPrefix); ok && w.kind == operation.Destroy {
		try, err := strconv.ParseInt(number, 10, 64)
		p.Keep = p.Keep && err == nil && try < b.Reconciliation.Tries
	}
	if w.purpose == protocol.RetentionPurpose {
		p.Keep = false
	}
	return p
}

// ExpireRetention asks for the removal of what is kept, once its time is over by a clock whose newest
// reading is recorded and counts. What is durable afterwards is its intent.
type ExpireRetention struct {
	Clock Clock
}

func (c ExpireRetention) decide(d *decision) error {
	if err := d.expiresBy(c.Clock); err != nil {
		return err
	}
	r := d.state.Retained
	switch {
	case r == nil || r.Expired != nil:
		return wrongState(string(d.state.Attempt), "nothing is kept of the attempt, or it is being removed already")
	case !c.Clock.Last.Reached(c.Clock.KeptUntil(r.Retention)):
		return wrongState(string(d.state.Attempt), fmt.Sprintf("what is kept of the attempt is kept until %d of the clock %s", r.Until.UnixMilli, r.Until.Domain))
	}
	in, err := d.kernel.order(d.state, want{operation.Destroy, protocol.RetentionPurpose})
	if err != nil {
		return err
	}
	g, err := report("OperationIntent", in)
	if err != nil {
		return err
	}
	if err := d.emit(operationSubject(in.Key), "operation.intended", in, g); err != nil {
		return err
	}
	d.begun = append(d.begun, in)
	at, err := report("ClockObservation", c.Clock.Last)
	if err != nil {
		return err
	}
	return d.of("environment.retention_expired", c.Clock.Last, at, g, d.known(lifecycle.RetentionReceipt))
}

// forgotten makes the transition that the removal of what was kept stands for. One that did
// not work leaves it kept, and is asked about again.
func (d *decision) forgotten(applied bool, receipt lifecycle.Guard) error {
	r := d.state.Retained
	if !applied || r == nil || r.Expired == nil || r.Ended {
		return nil
	}
	at, err := report("ClockObservation", *r.Expired)
	if err != nil {
		return err
	}
	return d.of("environment.retention_ended", *r.Expired, at, receipt)
}
