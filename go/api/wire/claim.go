package wire

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// The registered kinds of this package's documents.
const (
	ClaimKind   = "writ.claim.v1"
	LocatorKind = "writ.execution_locator.v1"
)

// Claim is what an adapter says of its own effect. The host binds its digest into the receipt and keeps its own
// facts apart; where the two contradict each other, the adapter lied.
type Claim struct {
	Kind      string           `json:"kind"`
	Operation operation.Key    `json:"operation"`
	Digest    canonical.Digest `json:"digest"`
	// Knowledge is applied, or not_applied with the code of the refusal.
	Knowledge operation.Knowledge `json:"knowledge"`
	Code      reason.Code         `json:"code,omitempty"`
	// Result is the digest of the domain result.
	Result canonical.Digest `json:"result,omitempty"`
	// Effects are the sub-operations made through the host, in order.
	Effects []Effect `json:"effects"`
}

// Effect names one sub-operation of a claim.
type Effect struct {
	Key    operation.Key    `json:"key"`
	Digest canonical.Digest `json:"digest"`
}

// DecodeClaim reads a claim and holds it against the call that it is about, and against the result and refusal it
// came with (adapter.protocol).
func DecodeClaim(raw []byte, c protocol.Call, result []byte, refusal *reason.Refusal) (Claim, error) {
	var claim Claim
	if len(raw) > MaxBody {
		return Claim{}, badClaim(c, fmt.Sprintf("is larger than %d bytes", MaxBody))
	}
	if err := canonical.DecodeCanonical(raw, &claim); err != nil {
		return Claim{}, badClaim(c, "is not canonical JSON of its kind").Because(err)
	}
	digest, code := canonical.Digest(""), reason.Code("")
	knowledge := operation.Applied
	if refusal != nil {
		knowledge, code = operation.NotApplied, refusal.Code
	}
	if len(result) > 0 {
		digest = canonical.Sum(result)
	}
	switch {
	case claim.Kind != ClaimKind:
		return Claim{}, badClaim(c, "is of another kind than "+ClaimKind)
	case claim.Operation != c.Operation || claim.Digest != c.Digest:
		return Claim{}, badClaim(c, "is about another operation")
	case claim.Knowledge != knowledge || claim.Code != code || claim.Result != digest:
		return Claim{}, badClaim(c, "does not agree with the answer that it came with")
	case len(claim.Effects) > MaxEffects:
		return Claim{}, badClaim(c, fmt.Sprintf("lists more than %d effects", MaxEffects))
	}
	return claim, nil
}

func badClaim(c protocol.Call, what string) *reason.Refusal {
	return reason.New(reason.AdapterProtocol, "the adapter's claim "+what, string(c.Operation), "report it to the adapter's vendor")
}

// Locator tells an adapter which execution it is asked about. Holding it grants nothing.
type Locator struct {
	Kind    string              `json:"kind"`
	Bundle  canonical.Digest    `json:"bundle"`
	Attempt workorder.AttemptID `json:"attempt"`
	// Resource is the name under which the execution lives.
	Resource string `json:"resource"`
	// Handle is what prepare returned, empty when no answer came.
	Handle string `json:"handle"`
}
