package kernel

import (
	"fmt"
	"slices"

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
	if !sending && !d.in(AttemptMachine, "unknown_terminal") {
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
	if err := d.inDoubt(o); err != nil {
		return err
	}
	for _, key := range d.covered(o) {
		if err := d.emit(operationSubject(key), lifecycle.Family("operation."+c.Disposition.Disposition), c.Disposition, g); err != nil {
			return err
		}
	}
	if err := d.of("attempt.disposed", c.Disposition, g); err != nil {
		return err
	}
	if d.state.undisposed() {
		return nil // The work order waits for the disposition of what is left too.
	}
	return d.disposed()
}

// inDoubt refuses a disposition of what is not in doubt. The provision stands for the
// environment: where that ended unknown a person has to say what became of it, and may say
// so again once its removal was given up.
func (d *decision) inDoubt(o Operation) error {
	open := d.in(WorkOrderMachine, "unknown_terminal")
	environment := o.Intent.Kind == operation.Provision && d.state.Doubted
	switch {
	case open && (o.State == "unknown" || environment && d.state.looked() == 0):
		return nil
	case !environment:
		return wrongState(string(o.Intent.Key), "what became of the operation is not in doubt: it is "+string(o.State))
	}
	plan, err := d.kernel.Next(d.state)
	if err != nil {
		return err
	}
	if plan.Wait == "" {
		return wrongState(string(o.Intent.Key), "a person has said already what became of the environment")
	}
	return nil
}

// looked counts how often a person has said what became of the environment.
func (s State) looked() int {
	n := 0
	for _, c := range s.Dispositions {
		if c.Operation.Kind() == operation.Provision {
			n++
		}
	}
	return n
}

// disposed ends the ambiguity of the work order by all that people have said of its
// attempt. The hardest counts, in whatever order it was said: what was given up stays
// unknown, and where one effect took place nothing is done again.
func (d *decision) disposed() error {
	rank := []string{ConfirmedAbsent, ConfirmedApplied, AbandonedUnknown}
	hardest := slices.MaxFunc(d.state.Dispositions, func(a, b Disposition) int {
		return slices.Index(rank, a.Disposition) - slices.Index(rank, b.Disposition)
	})
	g, err := report("AmbiguousEffectDisposition", hardest)
	if err != nil {
		return err
	}
	if !d.in(WorkOrderMachine, "unknown_terminal") {
		return nil // A person looked once more, so that it is tried again to remove what is left.
	}
	if err := d.of(lifecycle.Family("work_order."+hardest.Disposition), hardest, g); err != nil {
		return err
	}
	switch {
	case hardest.Disposition == ConfirmedApplied:
		// The owning reducer of an effect without outputs: the order is applied, by what the
		// attempt came to and the person found.
		return d.reduceResult(g.Digest)
	case hardest.Disposition == ConfirmedAbsent && d.state.CancelReason != "":
		// Somebody wanted it to stop, and nothing of it took place.
		return CancelOrder{CancelRequested{Reason: d.state.CancelReason}}.decide(d)
	}
	return nil
}

// covered returns the operations without a known outcome that a disposition speaks for:
// the one that it names and, where that is the provision of the environment, all that
// lived and died in it. An effect that nobody can ask about is spoken for by its own name
// only. Of a removal nobody has to say anything: it is tried again.
func (d *decision) covered(named Operation) []operation.Key {
	var keys []operation.Key
	for _, o := range d.state.Operations() {
		with := named.Intent.Kind == operation.Provision && o.Intent.Resource == named.Intent.Resource && o.Intent.Class != operation.NonReconcilable && !removes(o)
		if o.State == "unknown" && (with || o.Intent.Key == named.Intent.Key) {
			keys = append(keys, o.Intent.Key)
		}
	}
	return keys
}

// undisposed reports whether something is in doubt of which no person has said what became
// of it: an operation, or the environment.
func (s State) undisposed() bool { return len(s.InDoubt()) > 0 }

// InDoubt returns the operations of which a person has to say what became, in the order in which they were begun. The
// provision of an environment in doubt stands for all that nobody else has to be asked about.
func (s State) InDoubt() []operation.Key {
	environment := s.Doubted && s.looked() == 0
	var keys []operation.Key
	for _, o := range s.Operations() {
		unknown := o.State == "unknown" && o.Record.Outcome.Code != reason.OperationDissolved && !o.Intent.Kind.OfOutbox() && !removes(o)
		if unknown && !(environment && o.Intent.Class != operation.NonReconcilable) || environment && o.Intent.Kind == operation.Provision {
			keys = append(keys, o.Intent.Key)
		}
	}
	return keys
}

// removes reports whether an operation removes its environment, or what is left in it.
func removes(o Operation) bool {
	return o.Intent.Kind == operation.Destroy || o.Intent.Kind == operation.Cleanup
}
