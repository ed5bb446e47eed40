package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// Prober tells whether anything bears a resource name that was made from attempt and fence.
type Prober interface {
	// Gone reports that nothing of the execution lives under the name. It looks and changes nothing. An error means
	// that nothing is known.
	Gone(ctx context.Context, resource string) (bool, error)
}

// Stopper ends what bears a resource name.
type Stopper interface {
	Prober
	// Stop ends it and returns whether anything had to be killed. It is no error when nothing is there.
	Stop(ctx context.Context, resource string) (wasAlive bool, err error)
}

// made makes the call of an effect. A lost answer of a provider-idempotent operation is asked for once more with
// the same key; the adapter is relaunched for it.
func made(ctx context.Context, class operation.EffectClass, call func(context.Context) (Answer, error)) (Answer, error) {
	answer, err := call(ctx)
	if isDoubt(err) && class == operation.ProviderIdempotent && ctx.Err() == nil {
		return call(ctx)
	}
	return answer, err
}

func isDoubt(err error) bool {
	var d *Doubt
	return errors.As(err, &d)
}

// checkRequest refuses a request that is not the one which the permit's intent was recorded for.
func checkRequest(c protocol.Call, r protocol.Request) error {
	digest, err := canonical.DigestOf(r)
	if err != nil {
		return fmt.Errorf("request of %s: %w", c.Operation, err)
	}
	if digest != c.Digest {
		return reason.New(reason.OperationCollision,
			fmt.Sprintf("the request has digest %s, the intent was recorded with %s", digest, c.Digest), string(c.Operation),
			"this is a fault of the caller: report it; nothing was done")
	}
	return nil
}

// claimed binds what the adapter said into an outcome.
func claimed(out operation.Outcome, a Answer) operation.Outcome {
	if len(a.Claim) > 0 {
		out.Claim = canonical.Sum(a.Claim)
	}
	return out
}

// dissolved resolves an operation whose effect was a live execution under the intent's name: where nothing bears the
// name, nothing of the effect is left. The receipt says so by its code; it does not say that nothing ever ran.
func dissolved(ctx context.Context, p Prober, in operation.Intent) operation.Outcome {
	gone, err := p.Gone(ctx, in.Resource)
	switch {
	case err != nil:
		return operation.Outcome{Knowledge: operation.Unknown, Code: reason.OperationUnknownOutcome,
			Detail: fmt.Sprintf("whether anything bears the name %s could not be found out: %v", in.Resource, err)}
	case !gone:
		return operation.Outcome{Knowledge: operation.Unknown, Code: reason.OperationUnknownOutcome,
			Detail: "something still bears the name " + in.Resource + ", and the adapter that knew of it is gone"}
	}
	return operation.Outcome{Knowledge: operation.NotApplied, Code: reason.OperationDissolved,
		Detail: "nothing bears the name " + in.Resource + " any more: whatever the operation did died with it"}
}

// removed resolves an operation whose effect is that nothing bears the intent's name.
func removed(ctx context.Context, p Prober, in operation.Intent, wasAlive bool) operation.Outcome {
	gone, err := p.Gone(ctx, in.Resource)
	switch {
	case err != nil:
		return operation.Outcome{Knowledge: operation.Unknown, Code: reason.OperationUnknownOutcome,
			Detail: fmt.Sprintf("whether anything bears the name %s could not be found out: %v", in.Resource, err)}
	case !gone:
		return operation.Outcome{Knowledge: operation.NotApplied, Code: reason.EnvironmentStillAlive,
			Detail: "something still bears the name " + in.Resource}
	}
	return operation.Done(protocol.RemovalResult{Resource: in.Resource, WasAlive: wasAlive, Gone: true})
}
