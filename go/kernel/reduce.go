package kernel

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Reduce applies one recorded event. It refuses an event that the pinned registry
// does not have, that lacks its guard, or that leaves a gap in its subject.
func (k Kernel) Reduce(s State, e lifecycle.Event) (State, error) {
	s = s.clone()
	if err := k.reduce(&s, e, nil); err != nil {
		return State{}, err
	}
	return s, nil
}

// Replay applies recorded events in order, as Reduce does each, and returns how many. On an
// error that is the place of the event that was refused, and the state is none.
func (k Kernel) Replay(s State, events ...lifecycle.Event) (State, int, error) {
	s = s.clone()
	n, err := k.Advance(&s, events...)
	if err != nil {
		return State{}, n, err
	}
	return s, n, nil
}

// Advance is Replay in place, for who carries many states turn by turn. It changes every copy of
// the state that was not made by Clone; on an error all of them must be thrown away.
func (k Kernel) Advance(s *State, events ...lifecycle.Event) (int, error) {
	for i, e := range events {
		if err := k.reduce(s, e, nil); err != nil {
			return i, err
		}
	}
	return len(events), nil
}

// Finished reports whether nothing of an attempt is left to do, and all that was to leave
// came to an end.
func (k Kernel) Finished(s State) bool {
	if !k.Closed(s) {
		return false
	}
	plan, err := k.Next(s)
	return err == nil && plan.Done && !k.unsent(s)
}

// OrderClosed reports whether a work order takes no further attempt.
func (k Kernel) OrderClosed(s State) bool { return k.terminal(WorkOrderMachine, s) }

// reduce applies e to s in place. body is what e's body was written from, nil for an event
// that is read back. On an error s must be thrown away.
func (k Kernel) reduce(s *State, e lifecycle.Event, body any) error {
	at := s.standings[e.Subject]
	if e.Version != at.Version+1 {
		return reason.New(reason.JournalChainBroken,
			fmt.Sprintf("%s has event %d after event %d", e.Subject, e.Version, at.Version), string(e.Subject),
			"run `writ verify` and keep the state folder as it is")
	}
	t, err := k.transitions.Apply(at.State, e, effects{s})
	if err != nil {
		return err
	}
	if err := t.Projected(projector); err != nil {
		return err
	}
	if err := k.unburdened(s, e, t); err != nil {
		return err
	}
	if err := k.absorb(s, e, body); err != nil {
		return fmt.Errorf("%s of %s: %w", e.Family, e.Subject, err)
	}
	s.standings[e.Subject] = Standing{State: t.To, Version: e.Version, Machine: e.Machine}
	for _, g := range e.Guards {
		s.evidence[g.Name] = g.Digest
	}
	return nil
}

// into puts the body of an event where it belongs: the very value that it was written from,
// if that is at hand, else what its bytes say. Both are the same.
func into[T any](body any, raw canonical.Raw, to *T) error {
	if v, ok := body.(T); ok {
		*to = v
		return nil
	}
	return canonical.Decode(raw, to)
}

// absorb takes from an event's body what later decisions need. Families that carry
// nothing of the kind are not listed.
func (k Kernel) absorb(s *State, e lifecycle.Event, body any) error {
	if isOperation(e.Subject) {
		return absorbOperation(s, e, body)
	}
	if e.Subject.Machine() == BudgetMachine {
		return absorbBudget(s, e, body)
	}
	switch e.Family {
	case "work_order.submitted":
		s.WorkOrder = workorder.ID(e.Subject.ID())
		return into(body, e.Body, &s.Order)
	case "work_order.blocked_policy":
		var b Blocked
		if err := into(body, e.Body, &b); err != nil {
			return err
		}
		s.Blocked = b.Why
	case "work_order.blocked_budget", "work_order.budget_exhausted":
		var b BudgetBlock
		if err := into(body, e.Body, &b); err != nil {
			return err
		}
		s.Blocked = b.Why
	case "work_order.mode_raised":
		if s.Of(WorkOrderMachine).State == "blocked_policy" {
			s.Blocked = "" // It is decided anew.
		}
		s.Raised = new(ModeRaised)
		return into(body, e.Body, s.Raised)
	case "work_order.ready":
		s.Blocked = ""
	case "work_order.reserved":
		var r OrderReserved
		if err := into(body, e.Body, &r); err != nil {
			return err
		}
		s.Attempts, s.Last = s.Attempts+1, r.Attempt
	case "work_order.retry_wait":
		s.Retry = new(RetryWait)
		return into(body, e.Body, s.Retry)
	case "work_order.retry_ready":
		s.Retry = nil
	case "reservation.created":
		if err := into(body, e.Body, &s.Reserved); err != nil {
			return err
		}
		s.Reservation, s.Attempt = s.Reserved.ID, s.Reserved.Attempt
		s.Generation = s.Reserved.Fence.Generation
	case "attempt.leased":
		var a Activated
		if err := into(body, e.Body, &a); err != nil {
			return err
		}
		bundle := s.Bundle
		if bundle == nil || !bytes.Equal(bundle.Bytes(), a.Bundle) {
			var err error
			if bundle, err = attemptbundle.Parse(a.Bundle); err != nil {
				return err
			}
		}
		if bundle.Digest() != a.Descriptor.Bundle {
			return reason.New(reason.BundleDigestMismatch,
				fmt.Sprintf("the descriptor names bundle %s, the bundle is %s", a.Descriptor.Bundle, bundle.Digest()),
				string(e.Subject), "run `writ verify` and keep the state folder as it is")
		}
		s.Bundle, s.Lease = bundle, a.Lease
	case "attempt.lease_renewed":
		return into(body, e.Body, &s.Lease)
	case "environment.requested":
		var r Requested
		if err := into(body, e.Body, &r); err != nil {
			return err
		}
		s.Resource = r.Resource
	case "execution.failed", "execution.lost", "execution.unknown", "execution.lost_closing", "execution.cancel_lost",
		"execution.cancel_unknown", "environment.failed", "environment.unknown":
		if s.Failure != nil {
			break
		}
		f := new(Failure)
		if err := into(body, e.Body, f); err != nil {
			return err
		}
		s.Failure = f
	case "environment.unknown_terminal":
		s.Doubted = true
	case "environment.retained":
		s.Retained = new(Retained)
		return into(body, e.Body, &s.Retained.Retention)
	case "environment.retention_expired":
		var at lifecycle.Observation
		if err := into(body, e.Body, &at); err != nil {
			return err
		}
		s.Retained = &Retained{Retention: s.Retained.Retention, Expired: &at}
	case "environment.retention_ended":
		s.Retained = &Retained{Retention: s.Retained.Retention, Expired: s.Retained.Expired, Ended: true}
	case "outbox.proposed":
		var p Proposed
		if err := into(body, e.Body, &p); err != nil {
			return err
		}
		if s.proposed == nil {
			s.proposed = map[lifecycle.Subject]proposed{}
		}
		s.proposed[e.Subject] = proposed{Proposed: p}
	case "outbox.denied":
		var b Blocked
		if err := into(body, e.Body, &b); err != nil {
			return err
		}
		p := s.proposed[e.Subject]
		p.code, p.why = b.Code, b.Why
		s.proposed[e.Subject] = p
	case "outbox.sending":
		var b Begun
		if err := into(body, e.Body, &b); err != nil {
			return err
		}
		p := s.proposed[e.Subject]
		p.places = append(slices.Clip(p.places), b.Place)
		s.proposed[e.Subject] = p
	case "outbox.withdrawn":
		var c CancelRequested
		if err := into(body, e.Body, &c); err != nil {
			return err
		}
		p := s.proposed[e.Subject]
		p.code, p.why = reason.AttemptCancelled, c.Reason
		s.proposed[e.Subject] = p
	case "execution.checkpoint_proposed":
		return absorbCheckpoint(s, e, body)
	case "work_order.checkpointed":
		s.Checkpoint = new(Checkpoint)
		return into(body, e.Body, s.Checkpoint)
	case "attempt.disposed":
		var c Disposition
		if err := into(body, e.Body, &c); err != nil {
			return err
		}
		s.Dispositions = append(s.Dispositions, c)
	case "attempt.fenced":
		var f Fenced
		if err := into(body, e.Body, &f); err != nil {
			return err
		}
		s.Generation, s.FencedBy = f.Generation, f.Why
	case "attempt.cancellation_requested":
		var c CancelRequested
		if err := into(body, e.Body, &c); err != nil {
			return err
		}
		s.CancelReason = c.Reason
	}
	if Concludes(e.Family) {
		r := new(workorder.Result)
		if err := into(body, e.Body, r); err != nil {
			return err
		}
		s.Result = r
	}
	return nil
}

// Concludes reports whether the body of an event is the workorder.Result that its
// attempt came to.
func Concludes(family lifecycle.Family) bool {
	switch family {
	case "attempt.result_reported", "attempt.reconciled_result", "attempt.closed_no_effect", "attempt.reconciled_retryable",
		"attempt.reconciled_failed", "attempt.reconciled_cancelled", "attempt.unknown_terminal",
		"attempt.expired_no_effect", "attempt.cancelled_no_effect", "attempt.denied", "attempt.abandoned":
		return true
	}
	return false
}

// absorbOperation keeps the intent and, once, the record that replay answers.
func absorbOperation(s *State, e lifecycle.Event, body any) error {
	key := operation.Key(e.Subject.ID())
	o := s.operations[key]
	if e.Family == "operation.intended" {
		if err := into(body, e.Body, &o.Intent); err != nil {
			return err
		}
		o.State = "intended"
		s.operations[key] = o
		return nil
	}
	_, what := e.Family.Split()
	switch what {
	case "refused":
		o.Judged = true
		s.operations[key] = o
		return nil
	case ConfirmedApplied, ConfirmedAbsent, AbandonedUnknown:
		// A person's word settles the operation; its record stays what it was.
		o.State = map[string]lifecycle.State{ConfirmedApplied: "applied", ConfirmedAbsent: "not_applied", AbandonedUnknown: AbandonedUnknown}[what]
		s.operations[key] = o
		return nil
	}
	var answer Answer
	if err := into(body, e.Body, &answer); err != nil {
		return err
	}
	switch what {
	case "applied", "resolved_applied":
		o.State = "applied"
	case "not_applied", "resolved_not_applied":
		o.State = "not_applied"
	case "unknown":
		o.State = "unknown"
	default:
		o.Late++
		s.operations[key] = o
		return nil
	}
	o.ElapsedMicros = answer.Elapsed
	o.Record = operation.Record{Intent: o.Intent, Outcome: answer.Outcome, Receipt: answer.Receipt}
	o.receipt = e.Guards[0].Digest // The registry demands exactly this one.
	s.operations[key] = o
	return nil
}
