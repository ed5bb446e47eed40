package broker

import (
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Local issues grants from deployment policy until another broker is configured. It is immutable.
type Local struct {
	registry *capability.Registry
	terms    Terms
}

// NewLocal returns a local broker with the given terms.
func NewLocal(registry *capability.Registry, terms Terms) *Local {
	return &Local{registry: registry, terms: terms.clone()}
}

// Offer is the answer of the broker layer: what the deployment allows, but for what a local broker never issues.
// When the deployment's layer failed, so does this one. The requests only say which refusals need an explanation.
func (b *Local) Offer(deployment capability.Answer, requests []capability.Request) capability.Answer {
	if deployment.Layer != capability.DeploymentLayer || deployment.Status != capability.OK {
		return capability.Failure(capability.BrokerLayer, reason.PolicyLayerFailed, "the deployment gave it nothing to issue from", "")
	}
	offer := capability.Answer{Layer: capability.BrokerLayer, Status: capability.OK, Allowed: deployment.Allowed.Filter(b.issues)}
	for _, r := range requests {
		if !b.issues(r.Grant) {
			offer.Reasons = append(offer.Reasons, capability.Reason{
				Effect: capability.Deny, Action: r.Action, Resource: r.Resource, Destination: r.Destination,
				Rule: "broker.never_issued", Text: "the local broker holds no credentials and issues nothing that only people do",
				Remedy: "leave it out, or configure a broker that holds the credential",
			})
		}
	}
	return offer
}

// issues reports whether a local broker ever issues the grant: never what people only do, never a credential.
func (b *Local) issues(g capability.Grant) bool {
	a, ok := b.registry.Action(g.Action)
	return ok && !a.HumanOnly && a.Resource != capability.CredentialScope
}

// Issue makes a token for g under the given fence. It refuses with capability.not_granted what the effective set
// does not cover, and with kernel.phase_forbids a fence that is closing. The time is an observation of the caller, in
// milliseconds since 1970.
func (b *Local) Issue(effective capability.Set, fence workorder.Fence, g capability.Grant, nowUnixMilli int64) (Token, error) {
	if err := b.registry.Check(g); err != nil {
		return Token{}, err
	}
	if !b.issues(g) || !effective.Covers(g) {
		return Token{}, reason.New(reason.CapabilityNotGranted, "the broker does not issue "+g.String(), string(fence.Attempt),
			"ask for it in the work order; `writ explain` shows which layer refuses")
	}
	if fence.Phase != workorder.Live {
		return Token{}, reason.New(reason.KernelPhaseForbids, "the fence is closing, and nothing is issued any more", fence.ResourceName(), "")
	}
	uses := b.terms.uses(g.Action)
	if g.Limits.Calls > 0 {
		uses = min(uses, g.Limits.Calls)
	}
	t := Token{
		Kind: TokenKind, Issuer: "local", Attempt: fence.Attempt, Generation: fence.Generation, Grant: g,
		IssuedUnixMilli: nowUnixMilli, ExpiresUnixMilli: nowUnixMilli + b.terms.LifeMillis, Uses: uses,
	}
	if err := t.valid(); err != nil {
		return Token{}, err
	}
	return t, nil
}
