package executor

import (
	"context"
	"errors"

	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// StartEffect starts the execution. Its domain result is a protocol.StartResult. What runs is launched by the host,
// as a sub-operation with a record of its own, so whether anything was started is a fact of the host; the adapter's
// word is compared with it. An outcome with code adapter.lied ends the attempt, whatever its knowledge.
type StartEffect struct {
	Adapter Adapter
	Witness Witness
	Prober  Prober
	Request protocol.Request
	Handle  string
}

// Perform has the adapter launch the workload and returns once it runs.
func (e StartEffect) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	return e.perform(ctx, p.Call(), p.Intent())
}

func (e StartEffect) perform(ctx context.Context, c protocol.Call, in operation.Intent) operation.Outcome {
	if err := checkRequest(c, e.Request); err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	answer, err := made(ctx, in.Class, func(ctx context.Context) (Answer, error) { return e.Adapter.Start(ctx, c, e.Request, e.Handle) })
	var doubt *Doubt
	switch {
	case errors.As(err, &doubt):
		return e.ask(ctx, c, in, doubt)
	case err != nil && len(e.Witness.Launches(c.Operation)) > 0:
		return operation.Refused(operation.Applied, lied(c.Operation, "the adapter refused a start that it had launched"))
	case err != nil:
		return operation.Refused(operation.NotApplied, err)
	}
	return e.judge(c, answer)
}

// judge makes the outcome of an answer. The knowledge is the host's: something was launched, or nothing was.
func (e StartEffect) judge(c protocol.Call, answer Answer) operation.Outcome {
	seen := e.Witness.Launches(c.Operation)
	fact := operation.NotApplied
	if len(seen) > 0 {
		fact = operation.Applied
	}
	if l := contradiction(c, answer.Effects, seen); l != nil {
		return claimed(operation.Refused(fact, l), answer)
	}
	switch {
	case answer.Refusal != nil && fact == operation.Applied:
		return claimed(operation.Refused(fact, lied(c.Operation, "the adapter refused a start that it had launched")), answer)
	case answer.Refusal != nil:
		return claimed(operation.Refused(fact, answer.Refusal), answer)
	case fact == operation.NotApplied:
		return claimed(operation.Refused(fact, lied(c.Operation, "the adapter claims a start and launched nothing")), answer)
	}
	var result protocol.StartResult
	if err := canonical.DecodeCanonical(answer.Result, &result); err != nil {
		return claimed(operation.Refused(fact, noResult(c, err)), answer)
	}
	if result.Handle != e.Handle {
		return claimed(operation.Refused(fact, lied(c.Operation, "the adapter claims the start of another execution")), answer)
	}
	return claimed(operation.Outcome{Knowledge: fact, Result: answer.Result}, answer)
}

// ask finds out what became of a start whose answer was lost. The process that got the call is dead: where the host
// launched nothing, nothing was started and nothing will be. Otherwise the relaunched adapter is asked, and only a
// second silence leaves it unknown.
func (e StartEffect) ask(ctx context.Context, c protocol.Call, in operation.Intent, lost *Doubt) operation.Outcome {
	launched := len(e.Witness.Launches(c.Operation)) > 0
	if !launched {
		return operation.Refused(operation.NotApplied, lost.Refusal)
	}
	found, err := e.Adapter.Reconcile(ctx, c, wire.Locator{
		Kind: wire.LocatorKind, Bundle: c.Bundle, Attempt: c.Fence.Attempt, Resource: in.Resource, Handle: e.Handle,
	})
	switch {
	case err != nil:
		return operation.Refused(operation.Unknown, lost.Refusal)
	case found.Knowledge == operation.Applied:
		// The sub-operations were made before the process died; the one that answers now made none, and lists those
		// that it finds.
		return e.judge(c, found.Answer)
	case found.Knowledge == operation.NotApplied:
		return claimed(operation.Refused(operation.Applied, lied(c.Operation, "the adapter denies a start that the host launched")), found.Answer)
	}
	return operation.Outcome{Knowledge: operation.Unknown, Code: reason.OperationUnknownOutcome,
		Detail: "the adapter died while it started, and cannot say what became of it"}
}

// Resolve asks, after a crash of the host, whether anything bears the name.
func (e StartEffect) Resolve(ctx context.Context, in operation.Intent) operation.Outcome {
	return dissolved(ctx, e.Prober, in)
}
