package admission

import (
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/protocol"
)

// classification names the rules by which a result is classified: what an attempt's
// conclusion may be, and which follow from which outcome.
const classification = "writ.classification.v1"

// compile puts together the attempt bundle of a reserved order.
func (a *Admission) compile(o *order, s kernel.State, r policy.Record, decision canonical.Digest) attemptbundle.Bundle {
	k, reserved := a.Ledger.Kernel(), s.Reserved
	// A reservation that cannot be digested could not have been recorded either.
	reservation, _ := canonical.DigestOf(reserved)
	order := s.Of(kernel.WorkOrderMachine)
	b := attemptbundle.Bundle{
		Reservation: attemptbundle.Reservation{ID: reserved.ID, Digest: reservation, ExpiresUnixMilli: reserved.ExpiresUnixMilli},
		WorkOrder:   attemptbundle.Order{ID: s.WorkOrder, Version: order.Version, Digest: o.document.Digest},
		Attempt:     attemptbundle.Attempt{ID: s.Attempt, Ordinal: reserved.Ordinal, Version: s.Of(kernel.AttemptMachine).Version},
		Cause:       attemptbundle.Cause{Subject: s.OrderSubject(), Family: "work_order.reserved", ExpectedVersion: order.Version},
		Fence:       reserved.Fence,
		Role:        attemptbundle.Role{Package: o.role, Profile: "default"},
		Prompt:      o.prompt, Context: o.context, Requested: o.requested,
		Mode: capability.Mode(o.order.Mode), CodeClass: o.order.CodeClass, Grants: r.Effective.Grants,
		Policy:      attemptbundle.Policy{Decision: decision},
		Environment: o.manifest, Inputs: o.inputs,
		Outputs: attemptbundle.Outputs{
			Schema: o.schemaDigest, Result: o.order.Outputs.Result, Policy: o.outputs, Retention: o.manifest.Retention,
		},
		Execution: attemptbundle.Execution{
			Tool: o.tool.Name, Arguments: o.order.Tool.Arguments,
			// The same order and tool give the same bytes, whichever attempt it is.
			Seed: canonical.Sum([]byte(o.document.Digest + o.tool.Digest)),
		},
		Proposals:                  o.proposals,
		Pins:                       attemptbundle.Pins{Adapter: pinned(o.adapter), Tools: []attemptbundle.Pin{pinned(o.tool)}},
		Ceilings:                   o.ceilings(),
		Checkpoint:                 o.checkpoint,
		StartsFrom:                 o.from,
		LeaseMillis:                leaseMillis(o.manifest.Limits, o.inputs),
		CancellationDeadlineMillis: o.order.CancellationDeadlineMillis,
		Reconciliation:             attemptbundle.Reconciliation{Tries: defaultTries, DeadlineMillis: 3 * defaultCancelMillis},
		Classification:             classification,
		Operations: attemptbundle.Operations{
			Namespace: ledger.Namespace, CollisionDigest: attemptbundle.CollisionDigest, EffectClasses: k.Classes().Digest(),
		},
		Transitions: k.Transitions().Digest(),
	}
	for _, l := range a.Policies.Digests() {
		b.Policy.Layers = append(b.Policy.Layers, attemptbundle.LayerDigest{Layer: string(l.Layer), Digest: l.Digest})
	}
	if rec := o.order.Reconciliation; rec != nil {
		b.Reconciliation = attemptbundle.Reconciliation{Tries: rec.Tries, DeadlineMillis: rec.DeadlineMillis}
	}
	return b
}

// The length of a lease, in milliseconds: what an adapter may take that has to be started anew,
// and a pace for the bytes that are copied in and out; and the longest that there is.
const (
	leaseBase    = 2 * 60 * 1000
	leasePerMiB  = 1000
	leaseLongest = 24 * 60 * 60 * 1000
)

// leaseMillis is how long a lease is: longer than any step takes that a supervisor cannot look
// into. What the tool takes does not count: it is asked after all the while.
func leaseMillis(l attemptbundle.Limits, inputs protocol.InputManifest) int64 {
	_, in := inputs.Totals()
	mib := (in>>20 + l.DiskBytes>>20) + 2
	return min(leaseBase+min(mib, leaseLongest/leasePerMiB)*leasePerMiB, leaseLongest)
}

func pinned(e pin.Entry) attemptbundle.Pin {
	return attemptbundle.Pin{Name: e.Name, Version: e.Version, Digest: e.Digest}
}
