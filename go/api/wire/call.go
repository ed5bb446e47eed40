package wire

import (
	"fmt"

	executorv1 "github.com/writ-runtime/writ/go/api/executor/v1"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// FromCall writes a call into its message.
func FromCall(c protocol.Call) *executorv1.Call {
	return &executorv1.Call{
		BundleDigest: string(c.Bundle), Attempt: string(c.Fence.Attempt), FenceGeneration: c.Fence.Generation,
		FencePhase: string(c.Fence.Phase), OperationKey: string(c.Operation), CollisionDigest: string(c.Digest),
	}
}

// ToCall reads a call from its message and refuses one that lacks a part (adapter.protocol): a call without bundle,
// attempt, fence and operation is never made (B14).
func ToCall(m *executorv1.Call) (protocol.Call, error) {
	c := protocol.Call{
		Bundle: canonical.Digest(m.GetBundleDigest()),
		Fence: workorder.Fence{
			Attempt: workorder.AttemptID(m.GetAttempt()), Generation: m.GetFenceGeneration(), Phase: workorder.Phase(m.GetFencePhase()),
		},
		Operation: operation.Key(m.GetOperationKey()), Digest: canonical.Digest(m.GetCollisionDigest()),
	}
	bad := func(what string) (protocol.Call, error) {
		return protocol.Call{}, reason.New(reason.AdapterProtocol, "the call "+what, Clip(m.GetOperationKey()),
			"send the call as the protocol describes it")
	}
	switch {
	case m == nil:
		return bad("is missing")
	case !c.Bundle.Valid() || !c.Digest.Valid():
		return bad("lacks a bundle digest or a collision digest")
	case c.Fence.Attempt == "" || c.Fence.Generation == 0 || (c.Fence.Phase != workorder.Live && c.Fence.Phase != workorder.Closing):
		return bad("lacks an attempt or a fence")
	}
	if _, err := operation.ParseKey(string(c.Operation)); err != nil {
		return bad("has a malformed operation key")
	}
	return c, nil
}

// DecodeRequest reads a request and holds it against the call that carries it: same bundle, attempt, kind, actor and
// purpose, and the digest of exactly these bytes (adapter.protocol).
func DecodeRequest(raw []byte, kind operation.Kind, c protocol.Call) (protocol.Request, error) {
	bad := func(what string) (protocol.Request, error) {
		return protocol.Request{}, reason.New(reason.AdapterProtocol, "the request "+what, string(c.Operation),
			"send the request that the call's digest is over")
	}
	if len(raw) > MaxBody {
		return bad(fmt.Sprintf("is larger than %d bytes", MaxBody))
	}
	var r protocol.Request
	if err := canonical.DecodeCanonical(raw, &r); err != nil {
		return protocol.Request{}, reason.New(reason.AdapterProtocol, "the request is not canonical JSON of its kind",
			string(c.Operation), "send the request that the call's digest is over").Because(err)
	}
	switch {
	case r.Kind != protocol.RequestKind:
		return bad("is of another kind than " + protocol.RequestKind)
	case canonical.Sum(raw) != c.Digest:
		return bad("does not have the collision digest that the call carries")
	case r.Operation != kind || c.Operation.Kind() != kind:
		return bad(fmt.Sprintf("is for %q, not for %s", r.Operation, kind))
	case r.Bundle != c.Bundle || r.Attempt != c.Fence.Attempt || c.Operation.Scope() != string(r.Attempt):
		return bad("names another bundle or attempt than its call")
	case r.Actor != c.Operation.Actor() || r.Purpose != c.Operation.Purpose():
		return bad("names another actor or purpose than its key")
	}
	return r, nil
}

// Clip shortens a text that somebody else wrote, before it is quoted.
func Clip(s string) string {
	const shown = 200
	if len(s) > shown {
		s = s[:shown] + "…"
	}
	return fmt.Sprintf("%q", s)
}
