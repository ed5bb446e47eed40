package kernel

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// The dispositions of an effect of which nobody could find out whether it took place (K6).
const (
	// ConfirmedAbsent says that it did not: a new fenced attempt may be made.
	ConfirmedAbsent = "confirmed_absent"
	// ConfirmedApplied says that it did: what it came to passes the owning reducer.
	ConfirmedApplied = "confirmed_applied"
	// AbandonedUnknown gives it up: the work order stays without an outcome for good.
	AbandonedUnknown = "abandoned_unknown"
)

// Dispose records what an authenticated person found of an ambiguous effect. The attempt
// itself stays closed, whatever was found.
type Dispose struct {
	Disposition
}

// Disposition is the body of the events that a disposition leads to.
type Disposition struct {
	Operation   operation.Key `json:"operation"`
	Disposition string        `json:"disposition"`
	// Evidence is the digest of what it was found by.
	Evidence canonical.Digest `json:"evidence"`
	// ExpectedVersion is how many events the work order had when the person looked.
	ExpectedVersion uint64 `json:"expected_version"`
	Principal       string `json:"principal"`
	Reason          string `json:"reason"`
}

func (c Dispose) decide(d *decision) error {
	o, ok := d.state.operations[c.Operation]
	sending := ok && o.Intent.Kind.OfOutbox()
	if !sending && (!d.in(AttemptMachine, "unknown_terminal") || !d.in(WorkOrderMachine, "unknown_terminal")) {
		return wrongState(string(d.state.Attempt), "only an attempt that ended unknown waits for a person's disposition")
	}
	if at := d.state.Of(WorkOrderMachine).Version; c.ExpectedVersion != at {
		return reason.New(reason.IngressStale,
			fmt.Sprintf("the work order is at event %d, and the disposition is of event %d", at, c.ExpectedVersion),
			string(d.state.WorkOrder), "look again with `writ show`, and decide on what is there now")
	}
	if !ok {
		return reason.New(reason.IDUnknown, "the attempt has no such operation", string(c.Operation),
			"list them with `writ receipts "+string(d.state.Attempt)+"`")
	}
	g, err := report("AmbiguousEffectDisposition", c.Disposition)
	if err != nil {
		return err
	}
	if sending {
		return d.disposeSending(o, c.Disposition, g)
	}
	for _, key := range d.covered(o) {
		if err := d.emit(operationSubject(key), lifecycle.Family("operation."+c.Disposition.Disposition), c.Disposition, g); err != nil {
			return err
		}
	}
	if err := d.of("attempt.disposed", c.Disposition, g); err != nil {
		return err
	}
	if open := d.undisposed(); open != "" {
		return nil // The work order waits for the disposition of that one too.
	}
	if err := d.of(lifecycle.Family("work_order."+c.Disposition.Disposition), c.Disposition, g); err != nil {
		return err
	}
	if c.Disposition.Disposition != ConfirmedApplied {
		return nil
	}
	// The owning reducer of an effect without outputs: the order is applied, by what the
	// attempt came to and the person found.
	return d.reduceResult(g.Digest)
}

// covered returns the operations without a known outcome that a disposition speaks for:
// the one that it names and, where that is the provision of the environment, all that
// lived and died in it. An effect that nobody can ask about is spoken for by its own name
// only.
func (d *decision) covered(named Operation) []operation.Key {
	var keys []operation.Key
	for _, o := range d.state.Operations() {
		with := named.Intent.Kind == operation.Provision && o.Intent.Resource == named.Intent.Resource && o.Intent.Class != operation.NonReconcilable
		if o.State == "unknown" && (with || o.Intent.Key == named.Intent.Key) {
			keys = append(keys, o.Intent.Key)
		}
	}
	return keys
}

// undisposed returns an operation whose effect nobody could ask about and no person has
// judged, empty if there is none.
func (d *decision) undisposed() operation.Key {
	for _, o := range d.state.Operations() {
		if o.State == "unknown" && o.Record.Outcome.Code != reason.OperationDissolved {
			return o.Intent.Key
		}
	}
	return ""
}
