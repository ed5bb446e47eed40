package broker

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// TokenKind is the kind of a token's record.
const TokenKind = "writ.action_grant.v1"

// Token is a grant that a broker issued. It is a record; its identity is its digest.
type Token struct {
	Kind   string `json:"kind"`
	Issuer string `json:"issuer"`
	// Attempt and Generation are those of the fence that the token is bound to.
	Attempt    workorder.AttemptID `json:"attempt"`
	Generation uint64              `json:"generation"`
	Grant      capability.Grant    `json:"grant"`
	// IssuedUnixMilli and ExpiresUnixMilli bound the token's life: from the first, until before the second.
	IssuedUnixMilli  int64 `json:"issued_unix_ms"`
	ExpiresUnixMilli int64 `json:"expires_unix_ms"`
	// Uses is how often the token may be used, at least once.
	Uses int64 `json:"uses"`
}

// Digest returns the digest of the token's canonical JSON.
func (t Token) Digest() (canonical.Digest, error) {
	d, err := canonical.DigestOf(t)
	if err != nil {
		return "", fmt.Errorf("broker's token: %w", err)
	}
	return d, nil
}

// Check refuses a use that the token does not allow: of another attempt, fence, action or scope
// (broker.grant_foreign), at another time (broker.grant_expired), once too often or too large (broker.grant_spent).
// It reads nothing but its arguments.
func (t Token) Check(u Use) error {
	if err := t.valid(); err != nil {
		return err
	}
	foreign := func(what string) error {
		return reason.New(reason.BrokerGrantForeign, what, u.Fence.ResourceName(), "ask the broker for a grant under the fence in force")
	}
	switch {
	case u.Fence.Attempt != t.Attempt:
		return foreign(fmt.Sprintf("the grant belongs to %s", t.Attempt))
	case u.Fence.Generation != t.Generation:
		return foreign(fmt.Sprintf("the grant belongs to generation %d of the fence, in force is %d", t.Generation, u.Fence.Generation))
	case u.Fence.Phase != workorder.Live:
		return reason.New(reason.KernelPhaseForbids, "the fence is closing, and grants are not used any more", u.Fence.ResourceName(), "")
	case u.NowUnixMilli < t.IssuedUnixMilli:
		return reason.New(reason.BrokerGrantExpired, "the clock stands before the grant was issued", u.Fence.ResourceName(), "set the clock right")
	case u.NowUnixMilli >= t.ExpiresUnixMilli:
		return reason.New(reason.BrokerGrantExpired, "the grant has expired", u.Fence.ResourceName(), "start a new attempt")
	}
	use := capability.Grant{Action: u.Action, Resource: u.Resource, Destination: u.Destination, Limits: t.Grant.Limits}
	if !capability.NewSet(t.Grant).Covers(use) {
		return foreign("the grant is for " + t.Grant.String() + ", not for " + use.String())
	}
	spent := func(what string) error {
		return reason.New(reason.BrokerGrantSpent, what, u.Fence.ResourceName(), "ask for a higher limit in the work order")
	}
	switch limit := t.Grant.Limits; {
	case u.Used < 0 || u.Bytes < 0:
		return spent("the recorded use is negative")
	case u.Used >= t.Uses:
		return spent(fmt.Sprintf("the grant allows %d uses, and all are spent", t.Uses))
	case limit.Calls > 0 && u.Used >= limit.Calls:
		return spent(fmt.Sprintf("%s is limited to %d calls", t.Grant.Action, limit.Calls))
	case limit.Bytes > 0 && u.Bytes > limit.Bytes:
		return spent(fmt.Sprintf("a use of %s is limited to %d bytes", t.Grant.Action, limit.Bytes))
	}
	return nil
}

func (t Token) valid() error {
	wrong := ""
	switch {
	case t.Kind != TokenKind:
		wrong = "its kind is not " + TokenKind
	case t.Attempt == "":
		wrong = "it names no attempt"
	case t.Grant.Action == "" || t.Grant.Resource.IsZero():
		wrong = "it grants nothing"
	case t.ExpiresUnixMilli <= t.IssuedUnixMilli:
		wrong = "it expires before it is issued"
	case t.Uses < 1:
		wrong = "it has no uses"
	}
	if wrong != "" {
		return reason.New(reason.BrokerGrantInvalid, "the broker's grant is malformed: "+wrong, string(t.Attempt), "")
	}
	return nil
}
