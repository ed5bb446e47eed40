// Package admission takes a work order in: it submits it, reserves an attempt, has the
// policies decide, compiles the attempt bundle and hands over the activation. Nothing
// runs here.
package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/broker"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/go/workorder"
)

// preparationMillis is how long a reservation stands: longer than any preparation
// takes, short enough that a forgotten one does not matter.
const preparationMillis = 5 * 60 * 1000

// Admission admits work orders. Its fields are set once and not changed.
type Admission struct {
	Ledger    *ledger.Ledger
	Policies  *policy.Engine
	Actions   *capability.Registry
	Broker    *broker.Local
	Providers environment.Providers
	Pins      *pin.Set
	Artifacts *artifact.Store
	IDs       *canonical.IDSource
	// Outbox is where accepted results may go.
	Outbox *outbox.Outbox
	// State is the folder whose owner says which deployment it is of, and what its accounts are.
	State string
}

// Admitted is a work order that may be activated. The activation itself is committed
// with the attempt's first operations, in one transaction.
type Admitted struct {
	State    kernel.State
	Bundle   *attemptbundle.Compiled
	Activate kernel.Activate
	// Blobs go with the activation.
	Blobs    []journal.Blob
	Decision policy.Record
	Provider environment.Provider
	Sources  Sources
	// Schema is the output schema's bytes, nil if the order names none.
	Schema []byte
}

// DeniedError says that policy does not allow a work order. Everything about the
// decision is in the record; nothing has begun.
type DeniedError struct {
	WorkOrder workorder.ID
	Attempt   workorder.AttemptID
	Decision  policy.Record
}

// Error is the sentence of the first denial.
func (e *DeniedError) Error() string { return e.Decision.Refusal().Error() }

// Unwrap returns the first denial as a *reason.Refusal.
func (e *DeniedError) Unwrap() error { return e.Decision.Refusal() }

// Admit submits, as around has it, and reserves, in one turn; decides; and compiles. Relative
// paths of the document are taken from origin. A document that cannot be carried out is refused
// before anything is recorded; what policy denies is recorded, and comes back as a
// *DeniedError.
func (a *Admission) Admit(ctx context.Context, doc *schema.Document, origin string, accepted ingress.Accepted, around ingress.Around) (*Admitted, error) {
	o, err := a.resolve(ctx, doc, origin, nil)
	if err != nil {
		return nil, err
	}
	if len(o.order.DependsOn) > 0 {
		return nil, o.at("/depends_on", reason.New(reason.DependencyWaiting, "what is carried out at once cannot wait for other work orders", "/depends_on",
			"record it with `writ submit`; a tick attempts it once they are applied"))
	}
	submit, err := a.submission(o, accepted)
	if err != nil {
		return nil, err
	}
	return a.prepare(ctx, o, kernel.State{}, submit.ID, accepted, around(submit)...)
}

// Submit records a work order for a later attempt, in the turn that around makes of it. A document that cannot be carried out
// is refused before anything is recorded.
func (a *Admission) Submit(ctx context.Context, doc *schema.Document, origin string, accepted ingress.Accepted, around ingress.Around) (kernel.State, error) {
	o, err := a.resolve(ctx, doc, origin, nil)
	if err != nil {
		return kernel.State{}, err
	}
	submit, err := a.submission(o, accepted)
	if err != nil {
		return kernel.State{}, err
	}
	opened, err := a.Ledger.CommitOrder(context.WithoutCancel(ctx), kernel.State{}, submit.ID, ledger.Turn{
		Commands: around(submit), Blobs: append(o.blobs, accepted.Blob),
		Actor: accepted.Receipt.Principal, Cause: accepted.Receipt.ID,
	})
	return opened.State, err
}

// Again prepares the next attempt at a recorded work order: compiled anew, and authorized
// anew under the policies of today. A work order that cannot be prepared any more is
// closed, and the error says why.
func (a *Admission) Again(ctx context.Context, order kernel.State, accepted ingress.Accepted) (*Admitted, error) {
	o, err := a.recorded(ctx, order)
	if err != nil {
		var owned unreadable
		if r, ok := reason.As(err); ctx.Err() != nil || errors.As(err, &owned) || ok && r.Code.Transient() {
			return nil, err // Not the order's fault; it waits as before.
		}
		return nil, errors.Join(err, a.unpreparable(ctx, order, accepted, err))
	}
	return a.prepare(ctx, o, order, order.WorkOrder, accepted)
}

// recorded finds again what a recorded work order names.
func (a *Admission) recorded(ctx context.Context, order kernel.State) (*order, error) {
	registry, err := schema.Open()
	if err != nil {
		return nil, err
	}
	doc, err := registry.Load(string(order.WorkOrder), order.Order.Order, workorder.Kind)
	if err != nil {
		return nil, err
	}
	return a.resolve(ctx, doc, order.Order.Origin, &order)
}

func (a *Admission) unpreparable(ctx context.Context, order kernel.State, accepted ingress.Accepted, why error) error {
	_, err := a.Ledger.CommitOrder(context.WithoutCancel(ctx), order, order.WorkOrder, ledger.Turn{
		Commands: []kernel.Command{kernel.Unpreparable{Failure: failure(workorder.Failed, why)}}, Blobs: []journal.Blob{accepted.Blob},
		Actor: accepted.Receipt.Principal, Cause: accepted.Receipt.ID,
	})
	return err
}

// submission is the command that submits an order.
func (a *Admission) submission(o *order, accepted ingress.Accepted) (kernel.Submit, error) {
	id, err := a.IDs.Mint(workorder.IDPrefix)
	return kernel.Submit{ID: workorder.ID(id), Ingress: accepted.Digest, Submitted: kernel.Submitted{
		Order: canonical.Raw(o.document.Canonical), Digest: o.document.Digest, Origin: o.origin,
		Inputs: o.inputs, Schema: o.schemaDigest,
	}}, err
}

// prepare reserves an attempt, together with what comes first; has the policies decide;
// and compiles the bundle.
func (a *Admission) prepare(ctx context.Context, o *order, before kernel.State, id workorder.ID, accepted ingress.Accepted, first ...kernel.Command) (*Admitted, error) {
	// From here on the journal knows of it: a turn is committed, or it is not. Giving up
	// in between would leave an attempt that nobody carries out.
	state, err := a.reserve(context.WithoutCancel(ctx), o, before, id, accepted, first)
	if err != nil {
		return nil, err
	}
	in := o.input()
	record, err := a.decide(ctx, in, o.provider)
	if err != nil {
		return nil, a.abandon(ctx, state, accepted, err)
	}
	decision, blobs, err := a.keep(ctx, in, record)
	if err != nil {
		return nil, a.abandon(ctx, state, accepted, err)
	}
	if err := undecided(record); err != nil {
		// Nothing was decided: nothing runs, and the order waits to be decided on.
		return nil, errors.Join(err, Abandon(ctx, a.Ledger, state, accepted, workorder.Lost, err))
	}
	if refusal := record.Refusal(); refusal != nil {
		return nil, a.block(context.WithoutCancel(ctx), state, record, decision, blobs, accepted)
	}
	bundle, err := attemptbundle.Compile(a.compile(o, state, record, decision))
	if err != nil {
		return nil, a.abandon(ctx, state, accepted, err)
	}
	return &Admitted{
		State: state, Bundle: bundle, Activate: kernel.Activate{Bundle: bundle, Now: a.Ledger.Now()},
		Blobs: blobs, Decision: record, Provider: o.provider, Sources: o.sources, Schema: o.schema,
	}, nil
}

// reserve commits a reservation that fixes what the bundle must be compiled from.
func (a *Admission) reserve(ctx context.Context, o *order, before kernel.State, id workorder.ID, accepted ingress.Accepted, first []kernel.Command) (kernel.State, error) {
	att, err := a.IDs.Mint(workorder.AttemptIDPrefix)
	if err != nil {
		return kernel.State{}, err
	}
	res, err := a.IDs.Mint(workorder.ReservationIDPrefix)
	if err != nil {
		return kernel.State{}, err
	}
	if o.order.Account != "" {
		if _, err := a.Account(ctx, o.order.Account, accepted); err != nil {
			return kernel.State{}, err
		}
	}
	fence := workorder.Fence{Attempt: workorder.AttemptID(att), Generation: 1, Phase: workorder.Live}
	digests, err := o.digests(fence)
	if err != nil {
		return kernel.State{}, err
	}
	reserve := kernel.Reserve{Reservation: workorder.Reservation{
		Kind: workorder.ReservationKind, ID: workorder.ReservationID(res), WorkOrder: id,
		Order: o.document.Digest, Attempt: fence.Attempt, Ordinal: before.Attempts + 1, Fence: fence, Budget: o.budget, Account: o.order.Account, Price: o.price,
		ExpiresUnixMilli: a.Ledger.Now().UnixMilli + preparationMillis, Digests: digests,
	}}
	blobs := append(o.blobs, accepted.Blob)
	opened, err := a.Ledger.Reserve(ctx, before, fence.Attempt, ledger.Turn{
		Commands: append(slices.Clone(first), reserve), Blobs: blobs,
		Actor: accepted.Receipt.Principal, Cause: accepted.Receipt.ID,
	})
	if reason.Is(err, reason.BudgetBlocked) || reason.Is(err, reason.BudgetExhausted) {
		return kernel.State{}, a.unfunded(ctx, before, reserve.Reservation, accepted, blobs, first, err)
	}
	return opened.State, err
}

// keep stores a decision record, which can be larger than a blob, and the input that it
// names, so that anyone can decide it again.
func (a *Admission) keep(ctx context.Context, in policy.Input, r policy.Record) (canonical.Digest, []journal.Blob, error) {
	input, err := canonical.Marshal(in)
	if err != nil {
		return "", nil, err
	}
	_, blobs, err := store(ctx, a.Artifacts, input, inputMediaType)
	if err != nil {
		return "", nil, err
	}
	raw, err := r.Bytes()
	if err != nil {
		return "", nil, err
	}
	decision, more, err := store(ctx, a.Artifacts, raw, DecisionMediaType)
	return decision, append(blobs, more...), err
}

// block records the denial, and returns it.
func (a *Admission) block(ctx context.Context, s kernel.State, r policy.Record, decision canonical.Digest, blobs []journal.Blob, accepted ingress.Accepted) error {
	denied := &DeniedError{WorkOrder: s.WorkOrder, Attempt: s.Attempt, Decision: r}
	first := r.Denials[0]
	_, err := a.Ledger.Commit(ctx, ledger.Turn{
		Fence: s.Fence(), Blobs: blobs, Actor: accepted.Receipt.Principal, Cause: accepted.Receipt.ID,
		Commands: []kernel.Command{kernel.Block{Decision: decision, Blocked: kernel.Blocked{
			Decision: decision, Code: first.Code, Why: first.Refusal().What,
		}}},
	})
	if reason.Is(err, reason.JournalConflict) {
		// A person said something of the order meanwhile: it is to be decided on as it stands now.
		return errors.Join(err, Abandon(ctx, a.Ledger, s, accepted, workorder.Lost, err))
	}
	if err != nil {
		return fmt.Errorf("record the denial of %s: %w", s.WorkOrder, err)
	}
	return denied
}

// abandon closes a reserved attempt that cannot be activated, and returns why.
func (a *Admission) abandon(ctx context.Context, s kernel.State, accepted ingress.Accepted, why error) error {
	how := workorder.Failed
	if ctx.Err() != nil {
		how = workorder.Cancelled
		why = reason.New(reason.AttemptCancelled, context.Cause(ctx).Error(), string(s.Attempt), "run the work order again: nothing had begun").Because(why)
	}
	return errors.Join(why, Abandon(ctx, a.Ledger, s, accepted, how, why))
}

// Abandon closes an attempt that was reserved and never activated.
func Abandon(ctx context.Context, l *ledger.Ledger, s kernel.State, accepted ingress.Accepted, how workorder.Conclusion, why error) error {
	_, err := l.Commit(context.WithoutCancel(ctx), ledger.Turn{
		Fence: s.Fence(), Actor: accepted.Receipt.Principal, Cause: accepted.Receipt.ID, Blobs: []journal.Blob{accepted.Blob},
		Commands: []kernel.Command{kernel.Abandon{Failure: failure(how, why)}},
	})
	if err != nil {
		return fmt.Errorf("abandon %s: %w", s.Attempt, err)
	}
	return nil
}

// failure says why an attempt could not be prepared.
func failure(how workorder.Conclusion, why error) kernel.Failure {
	f := kernel.Failure{Conclusion: how, Code: reason.AttemptLost, Detail: why.Error(), Stage: "activate"}
	if r, ok := reason.As(why); ok {
		f.Code, f.Detail, f.Remedy = r.Code, r.What, r.Remedy
	}
	return f
}
