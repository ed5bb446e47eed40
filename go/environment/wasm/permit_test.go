package wasm_test

import (
	"os"
	"slices"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
	"github.com/writ-runtime/writ/testing/parts"
)

// An environment does what it is permitted for the bundle, the attempt and the fence that
// it was opened for, and nothing for any other permit, although that is one of a ledger
// and bears the same resource's name (B13, B14).
func TestAnotherCallsPermitDoesNothing(t *testing.T) {
	set := parts.Pin(t, parts.Worker(t, programs), parts.Empty(t, programs))
	r := newRig(t, set, set, "empty")
	order := func(change func(*environment.Order)) environment.Order {
		o := environment.Order{Bundle: r.Bundle, Fence: r.State.Fence(), Resource: r.State.Resource}
		change(&o)
		return o
	}
	others := map[string]struct {
		order environment.Order
		code  reason.Code
		// closing says that what closes an attempt is refused as well.
		closing bool
	}{
		"another bundle": {order(func(o *environment.Order) {
			o.Bundle = fixture.Admit(t, func(b *attemptbundle.Bundle) { parts.Order(t, b, r.provider, set, "empty", "more") }).Bundle
		}), reason.BundleDigestMismatch, true},
		"another attempt":  {order(func(o *environment.Order) { o.Fence.Attempt = "att_01939a3c-7c1e-7000-8000-00000000000f" }), reason.KernelStaleFence, true},
		"no attempt":       {order(func(o *environment.Order) { o.Fence.Attempt = "" }), reason.KernelStaleFence, true},
		"a newer fence":    {order(func(o *environment.Order) { o.Fence.Generation++ }), reason.KernelStaleFence, true},
		"an older fence":   {order(func(o *environment.Order) { o.Fence.Generation-- }), reason.KernelStaleFence, false},
		"another resource": {order(func(o *environment.Order) { o.Resource += "x" }), reason.OperationPermitInvalid, true},
	}
	refused := func(name string, what operation.Kind, e ledger.Effect, p ledger.Permit, code reason.Code) {
		t.Helper()
		if out := e.Perform(t.Context(), p); out.Knowledge != operation.NotApplied || out.Code != code {
			t.Errorf("%s, %s: ended %s, %s: %s", name, what, out.Knowledge, out.Code, out.Detail)
		}
	}
	each := func(kind operation.Kind, p ledger.Permit, effect func(environment.Environment) ledger.Effect) {
		t.Helper()
		for name, other := range others {
			env, err := r.provider.Open(other.order)
			if err != nil {
				t.Fatal(err)
			}
			if closes := slices.Contains([]operation.Kind{operation.Freeze, operation.Destroy}, kind); other.closing || !closes {
				refused(name, kind, effect(env), p, other.code)
			}
		}
		refused("no permit", kind, effect(r.env), ledger.Permit{}, reason.OperationPermitInvalid)
	}
	provision := func(e environment.Environment) ledger.Effect { return e.Provision() }
	each(operation.Provision, r.permits[0], provision)
	// What works by the name alone finds nothing and makes nothing either.
	if found, err := r.provider.Reconcile(t.Context(), r.State.Resource); err != nil || found.WasAlive || !found.Gone {
		t.Errorf("reconciled %+v, %v", found, err)
	}
	refused("by name", operation.Provision, environment.ByName{Provider: r.provider}, r.permits[0], reason.OperationPermitInvalid)
	if left, err := os.ReadDir(r.workspaces); err != nil || len(left) != 0 {
		t.Fatalf("something was started: %v, %v", left, err)
	}
	materialize := r.permits[1]
	r.launching()
	each(operation.Materialize, materialize, func(e environment.Environment) ledger.Effect { return e.Materialize(r.accepted, inputs{}) })
	launch, freeze := r.claimed()
	each(operation.Launch, launch, func(e environment.Environment) ledger.Effect { return e.Launch(r.accepted, nil) })
	each(operation.Freeze, freeze, func(e environment.Environment) ledger.Effect { return e.FreezeOutputs(r.artifacts()) })
	// The environment of the permits is as it was: it can still do what is its own.
	if out := r.env.Launch(r.accepted, nil).Perform(t.Context(), launch); out.Knowledge != operation.Applied || out.Code != "" {
		t.Errorf("the launch ended %s, %s: %s", out.Knowledge, out.Code, out.Detail)
	}
}
