package executor

import (
	"context"

	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// PrepareEffect prepares the execution. Its domain result is a protocol.PrepareResult.
type PrepareEffect struct {
	Adapter Adapter
	Witness Witness
	Prober  Prober
	// Request is what the permit's intent was recorded for, here and in the other effects.
	Request protocol.Request
}

// Perform hands the bundle to the adapter.
func (e PrepareEffect) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	return e.perform(ctx, p.Call(), p.Intent())
}

func (e PrepareEffect) perform(ctx context.Context, c protocol.Call, in operation.Intent) operation.Outcome {
	if err := checkRequest(c, e.Request); err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	answer, err := made(ctx, in.Class, func(ctx context.Context) (Answer, error) { return e.Adapter.Prepare(ctx, c, e.Request) })
	if err != nil {
		// Nothing was launched under a prepare, and what the adapter remembered of it died with its process.
		return operation.Refused(operation.NotApplied, err)
	}
	if l := contradiction(c, answer.Effects, e.Witness.Launches(c.Operation)); l != nil {
		return claimed(operation.Refused(operation.NotApplied, l), answer)
	}
	if answer.Refusal != nil {
		return claimed(operation.Refused(operation.NotApplied, answer.Refusal), answer)
	}
	var result protocol.PrepareResult
	if err := canonical.DecodeCanonical(answer.Result, &result); err != nil || !validHandle(result.Handle) {
		return claimed(operation.Refused(operation.NotApplied, noResult(c, err)), answer)
	}
	return claimed(operation.Outcome{Knowledge: operation.Applied, Result: answer.Result}, answer)
}

// Resolve asks whether anything bears the name: the adapter that was prepared is gone with its host.
func (e PrepareEffect) Resolve(ctx context.Context, in operation.Intent) operation.Outcome {
	return dissolved(ctx, e.Prober, in)
}

// validHandle reports whether a handle is 1 to 256 printable ASCII characters.
func validHandle(h string) bool {
	if h == "" || len(h) > wire.MaxHandle {
		return false
	}
	for i := range len(h) {
		if h[i] <= ' ' || h[i] > '~' {
			return false
		}
	}
	return true
}

func noResult(c protocol.Call, cause error) error {
	r := reason.New(reason.AdapterProtocol, "the adapter's answer holds no result of its kind", string(c.Operation), "report it to the adapter's vendor")
	if cause != nil {
		return r.Because(cause)
	}
	return r
}
