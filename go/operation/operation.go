package operation

import (
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// EffectClass says how a lost answer of an operation is treated (O6). What a mode
// limits is something else: the capability.EffectCeiling.
type EffectClass string

// The three effect classes.
const (
	// ProviderIdempotent: the same key again has no second effect.
	ProviderIdempotent EffectClass = "provider_idempotent"
	// Reconcilable: whether the effect took place can be asked, by name.
	Reconcilable EffectClass = "reconcilable"
	// NonReconcilable: nobody can tell afterwards; a lost answer is terminal and
	// never retried by itself.
	NonReconcilable EffectClass = "non_reconcilable"
)

// Valid reports whether c is one of the three classes.
func (c EffectClass) Valid() bool {
	return c == ProviderIdempotent || c == Reconcilable || c == NonReconcilable
}

// Knowledge is what is known of an effect after it was attempted.
type Knowledge string

// The three states of knowledge. There is no fourth: a cancelled context or a lost
// connection is not an outcome, it is Unknown.
const (
	Applied    Knowledge = "applied"
	NotApplied Knowledge = "not_applied"
	Unknown    Knowledge = "unknown"
)

// Valid reports whether k is one of the three states.
func (k Knowledge) Valid() bool { return k == Applied || k == NotApplied || k == Unknown }

// Intent is what is known before an effect, and durable before it (O3). Key and
// Digest never depend on fence, deadline, trace or clock.
type Intent struct {
	Key Key `json:"key"`
	// Parent is the call that this is a sub-operation of, empty for a call itself.
	Parent Key `json:"parent,omitempty"`
	// Digest is the collision digest: over every semantic input of the request,
	// policy included, and nothing else (O2).
	Digest canonical.Digest `json:"digest"`
	Kind   Kind             `json:"kind"`
	Class  EffectClass      `json:"effect_class"`
	// Resource is the name, made from attempt and fence, under which the effect can
	// be found and ended after a crash. No handle is needed.
	Resource string `json:"resource"`
}

// Check refuses an intent that could not be told apart, found again or judged later.
func (i Intent) Check() error {
	if _, err := ParseKey(string(i.Key)); err != nil {
		return err
	}
	bad := func(what string) error {
		return reason.New(reason.OperationIntentMalformed, what, string(i.Key), "this is a fault of the caller: report it")
	}
	switch {
	case !i.Kind.Known():
		return bad("the intent has the unregistered kind " + string(i.Kind))
	case i.Key.Kind() != i.Kind:
		return bad("the intent's kind is not the kind in its key")
	case !i.Class.Valid():
		return bad("the intent has the unregistered effect class " + string(i.Class))
	case !i.Digest.Valid():
		return bad("the intent has no collision digest")
	case i.Resource == "":
		return bad("the intent names no resource")
	}
	return nil
}

// Record is what exact replay answers, byte for byte (O4).
type Record struct {
	Intent  Intent  `json:"intent"`
	Outcome Outcome `json:"outcome"`
	// Receipt is the canonical receipt; its digest is the guard of transitions.
	Receipt canonical.Raw `json:"receipt"`
}
