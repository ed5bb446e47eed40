package protocol_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

func TestACallCarriesBundleAttemptAndFence(t *testing.T) {
	bundle, fence := canonical.Sum([]byte("bundle")), workorder.Fence{Attempt: "att_1", Generation: 2, Phase: workorder.Live}
	good := protocol.Call{Bundle: bundle, Fence: fence}
	if err := good.Expect(bundle, fence); err != nil {
		t.Fatal(err)
	}
	closing := good
	closing.Fence.Phase = workorder.Closing
	if err := closing.Expect(bundle, fence); err != nil {
		t.Errorf("the phase is no part of who calls: %v", err)
	}
	for name, tc := range map[string]struct {
		code   reason.Code
		change func(*protocol.Call)
	}{
		"no bundle":       {reason.BundleDigestMismatch, func(c *protocol.Call) { c.Bundle = "" }},
		"another bundle":  {reason.BundleDigestMismatch, func(c *protocol.Call) { c.Bundle = canonical.Sum(nil) }},
		"no fence":        {reason.KernelStaleFence, func(c *protocol.Call) { c.Fence = workorder.Fence{} }},
		"an older fence":  {reason.KernelStaleFence, func(c *protocol.Call) { c.Fence.Generation = 1 }},
		"another attempt": {reason.KernelStaleFence, func(c *protocol.Call) { c.Fence.Attempt = "att_2" }},
	} {
		c := good
		tc.change(&c)
		if err := c.Expect(bundle, fence); !reason.Is(err, tc.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The collision digest covers every semantic input of a request, and neither fence
// nor clock is one (O2).
func TestCollisionDigest(t *testing.T) {
	bundle := canonical.Sum([]byte("bundle"))
	intent := func(kind operation.Kind, b canonical.Digest, att workorder.AttemptID, actor, purpose string, p any) operation.Intent {
		t.Helper()
		r, err := protocol.NewRequest(kind, b, att, actor, purpose, p)
		if err != nil {
			t.Fatal(err)
		}
		in, err := r.Intent("writ", "", operation.Reconcilable, "resource")
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	launch := protocol.LaunchParameters{Tool: bundle, Arguments: []string{"a"}, Seed: bundle}
	base := intent(operation.Launch, bundle, "att_1", "x", "main", launch)
	if again := intent(operation.Launch, bundle, "att_1", "x", "main", launch); again != base {
		t.Error("the same request has another intent")
	}
	other := launch
	other.Arguments = []string{"b"}
	for name, changed := range map[string]operation.Intent{
		"bundle":     intent(operation.Launch, canonical.Sum([]byte("other")), "att_1", "x", "main", launch),
		"attempt":    intent(operation.Launch, bundle, "att_2", "x", "main", launch),
		"actor":      intent(operation.Launch, bundle, "att_1", "y", "main", launch),
		"purpose":    intent(operation.Launch, bundle, "att_1", "x", "second", launch),
		"parameters": intent(operation.Launch, bundle, "att_1", "x", "main", other),
		"kind":       intent(operation.Start, bundle, "att_1", "x", "main", launch),
	} {
		if changed.Digest == base.Digest {
			t.Errorf("%s is not covered by the collision digest", name)
		}
	}
}
