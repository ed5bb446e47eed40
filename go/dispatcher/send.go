package dispatcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Sent is what became of one proposal.
type Sent struct {
	Attempt workorder.AttemptID
	kernel.Sending
	// Outcome is that of its newest operation, zero for one that was never begun.
	Outcome operation.Outcome
	// Waits says what it waits for, Code why; both are empty for one that came to its end.
	Waits string
	Code  reason.Code
}

// Drain sends every accepted proposal that was not sent yet, and asks about those whose
// answer was lost. Whatever it does is recorded with the delivery that caused it. The error
// is that of a journal of which nothing is known any more.
func (d *Dispatcher) Drain(ctx context.Context, accepted ingress.Accepted) ([]Sent, error) {
	index, err := d.Index.Index(ctx)
	if err != nil {
		return nil, err
	}
	return d.drain(ctx, index, accepted)
}

func (d *Dispatcher) drain(ctx context.Context, index *projection.Index, accepted ingress.Accepted) ([]Sent, error) {
	var all []Sent
	for _, a := range index.Attempts {
		if a.Unsent == 0 {
			continue
		}
		if ctx.Err() != nil {
			return all, nil
		}
		_, sent, err := d.Send(ctx, a.ID, accepted)
		all = append(all, sent...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// Send does for one attempt what Drain does for all, and returns its state.
func (d *Dispatcher) Send(ctx context.Context, id workorder.AttemptID, accepted ingress.Accepted) (kernel.State, []Sent, error) {
	s, err := d.Ledger.State(ctx, id)
	if err != nil {
		return kernel.State{}, nil, err
	}
	defer d.Ledger.Forget(id)
	var all []Sent
	machine := d.Ledger.Kernel().Transitions().Latest(kernel.OutboxMachine)
	for _, at := range s.Sendings() {
		if machine.Terminal(at.State) {
			continue // It was told when it came to its end.
		}
		e := &sender{dispatcher: d, state: s, purpose: at.Purpose, accepted: accepted}
		sent, err := e.run(ctx)
		if doubtful(err) {
			return e.state, all, fmt.Errorf("send %s of %s: %w", at.Purpose, id, err)
		}
		if err != nil {
			// Nothing of the last step was begun, and the next tick tries again.
			sent.Waits, sent.Code = err.Error(), reason.KernelNotReady
			if r, ok := reason.As(err); ok {
				sent.Waits, sent.Code = r.What, r.Code
			}
		}
		all, s = append(all, sent), e.state
	}
	return s, all, nil
}

// sender brings one proposal as far as it comes.
type sender struct {
	dispatcher *Dispatcher
	state      kernel.State
	purpose    string
	accepted   ingress.Accepted
}

func (e *sender) run(ctx context.Context) (Sent, error) {
	for range maxTurns {
		at := e.at()
		var (
			waits *reason.Refusal
			err   error
		)
		switch at.State {
		case "proposed":
			waits, err = e.send(ctx, at)
		case "sending":
			err = e.resolve(ctx, at)
		case "unknown":
			if o, _ := e.state.Operation(at.Last); kernel.Personal(o) || int64(o.Late)+1 >= e.state.Bundle.Bundle().Reconciliation.Tries {
				waits = wait(reason.OperationUnknownOutcome, "a person, who finds out whether it took place: docs/recovery.md")
				break
			}
			err = e.resolve(ctx, at)
		default:
			return e.sent(nil), nil
		}
		if err != nil || waits != nil {
			return e.sent(waits), err
		}
	}
	return e.sent(nil), fmt.Errorf("no end after %d turns", maxTurns)
}

// at is where the proposal stands.
func (e *sender) at() kernel.Sending {
	for _, at := range e.state.Sendings() {
		if at.Purpose == e.purpose {
			return at
		}
	}
	return kernel.Sending{}
}

func (e *sender) sent(waits *reason.Refusal) Sent {
	at := e.at()
	o, _ := e.state.Operation(at.Last)
	s := Sent{Attempt: e.state.Attempt, Sending: at, Outcome: o.Record.Outcome, Code: at.Code}
	if waits != nil {
		s.Waits, s.Code = waits.What, waits.Code
	}
	return s
}

// wait says what a proposal waits for.
func wait(code reason.Code, what string) *reason.Refusal {
	return reason.New(code, what, "", "see where it stands with `writ show`")
}

// send sends the proposal under the policies of now. It returns what a proposal waits for
// that cannot be sent now.
func (e *sender) send(ctx context.Context, at kernel.Sending) (waits *reason.Refusal, err error) {
	if at.Tries >= kernel.MaxSendings {
		return wait(reason.KernelNotReady, fmt.Sprintf("a person: it was sent %d times, and nothing came of it", at.Tries)), nil
	}
	record, decision, blobs, err := e.dispatcher.Admission.Reconsider(ctx, e.state)
	if err != nil {
		return nil, err
	}
	sending, err := e.prepare(ctx, at, at.Tries+1, capability.NewSet(record.Effective.Grants...))
	if err != nil {
		return nil, err // Nothing was begun. What is missing is the deployment's to bring.
	}
	if err := sending.Forbidden(); err != nil {
		blocked := kernel.Blocked{Decision: decision, Code: reason.CapabilityNotGranted, Why: err.Error()}
		why := err
		if refusal := record.Refusal(); refusal != nil {
			why = refusal
		}
		if r, ok := reason.As(why); ok {
			blocked.Code, blocked.Why = r.Code, r.What
		}
		_, err := e.turn(ctx, blobs, kernel.DenySending{Purpose: at.Purpose, Blocked: blocked})
		return nil, err
	}
	if err := sending.Ready(); err != nil {
		return nil, err // Nothing was begun, and no try is used up.
	}
	opened, err := e.turn(ctx, nil, sending.Send())
	if err != nil {
		return nil, err
	}
	for _, p := range opened.Permits {
		// What was begun is not given up for a request to stop: that is one to begin no more.
		settle, err := e.dispatcher.Ledger.Run(context.WithoutCancel(ctx), p, sending)
		if err != nil {
			return nil, err
		}
		if _, err := e.turn(ctx, nil, settle); err != nil {
			return nil, err
		}
		sending.Settled(settle.Outcome)
		if now := e.at(); now.State == "proposed" {
			return wait(settle.Outcome.Code, "its next try: "+settle.Outcome.Detail), nil
		}
	}
	return nil, nil
}

// resolve asks what became of the newest sending.
func (e *sender) resolve(ctx context.Context, at kernel.Sending) error {
	o, ok := e.state.Operation(at.Last)
	if !ok {
		return reason.New(reason.InternalBug, "a proposal is being sent by no operation", at.Purpose, "report it")
	}
	allowed, err := e.allowed(ctx, o.Intent)
	if err != nil {
		return err
	}
	sending, err := e.prepare(ctx, at, at.Tries, allowed)
	if err == nil {
		err = sending.Asked(o.Intent)
	}
	if err != nil {
		return err // Nobody could be asked, and that is no answer: it uses up no try.
	}
	asking, cancel := environment.ReconciliationContext(ctx, e.state)
	defer cancel()
	settle, err := e.dispatcher.Ledger.Resolve(asking, e.state, o.Intent, again{sending})
	if err != nil {
		return err
	}
	if _, err = e.turn(ctx, nil, settle); err == nil {
		sending.Settled(settle.Outcome)
	}
	return err
}

// allowed are the grants of today for a sending that may be made again; asking needs none.
func (e *sender) allowed(ctx context.Context, in operation.Intent) (capability.Set, error) {
	if in.Class != operation.ProviderIdempotent {
		return capability.Set{}, nil
	}
	record, _, _, err := e.dispatcher.Admission.Reconsider(ctx, e.state)
	return capability.NewSet(record.Effective.Grants...), err
}

// again is a sending whose answer was lost. Where policy does not allow it any more, it is
// asked about in its place.
type again struct{ outbox.Sending }

func (a again) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	if a.Forbidden() != nil {
		return a.Resolve(ctx, p.Intent())
	}
	return a.Sending.Perform(ctx, p)
}

// prepare finds the effect of the proposal. What was accepted in the shadow namespace has
// another proof, which opens no effector but that of the namespace (C5).
func (e *sender) prepare(ctx context.Context, at kernel.Sending, try int, allowed capability.Set) (outbox.Sending, error) {
	raw, err := e.dispatcher.Admission.Artifacts.Read(ctx, at.Content, artifact.MaxDocument)
	if err != nil {
		return outbox.Sending{}, err
	}
	p, err := outbox.ParseProposal(raw)
	if err != nil {
		return outbox.Sending{}, err
	}
	isolated, err := outbox.Isolate(e.state)
	if err == nil {
		return e.dispatcher.Shadow.Prepare(ctx, isolated, p, try, allowed)
	}
	authoritative, also := outbox.Authorize(e.state)
	if also != nil {
		return outbox.Sending{}, errors.Join(also, err)
	}
	return e.dispatcher.Admission.Outbox.Prepare(ctx, authoritative, p, try, allowed)
}

// turn commits commands on the attempt.
func (e *sender) turn(ctx context.Context, blobs []journal.Blob, commands ...kernel.Command) (ledger.Opened, error) {
	opened, err := e.dispatcher.Ledger.Commit(context.WithoutCancel(ctx), ledger.Turn{
		Fence: e.state.Fence(), Commands: commands, Blobs: append(blobs, e.accepted.Blob),
		Actor: e.accepted.Receipt.Principal, Cause: e.accepted.Receipt.ID,
	})
	if err == nil {
		e.state = opened.State
	}
	return opened, err
}
