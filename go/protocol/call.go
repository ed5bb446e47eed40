// Package protocol holds the requests and results of the executor and provider
// calls: what collision digests are taken over, and what receipts bind. It is pure;
// how the bytes travel is the business of api.
package protocol

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// The registered kinds of this package's documents.
const (
	RequestKind = "writ.request.v1"
	ReceiptKind = "writ.receipt.v1"
	InputsKind  = "writ.input_manifest.v1"
)

// Call stands before every call to an executor, provider or host service (B14). It
// says on whose behalf the call is made; none of it is part of the collision digest
// but the bundle.
type Call struct {
	Bundle    canonical.Digest `json:"bundle"`
	Fence     workorder.Fence  `json:"fence"`
	Operation operation.Key    `json:"operation"`
	Digest    canonical.Digest `json:"digest"`
}

// Expect refuses a call that does not carry exactly what the receiver was activated
// with.
func (c Call) Expect(bundle canonical.Digest, fence workorder.Fence) error {
	switch {
	case c.Bundle != bundle:
		return reason.New(reason.BundleDigestMismatch,
			fmt.Sprintf("the call carries bundle %s, this attempt runs under %s", c.Bundle, bundle), string(c.Operation),
			"call with the bundle of the activated attempt")
	case c.Fence.Attempt != fence.Attempt || c.Fence.Generation != fence.Generation:
		return reason.New(reason.KernelStaleFence,
			fmt.Sprintf("the call carries fence %s generation %d, the fence is at generation %d",
				c.Fence.Attempt, c.Fence.Generation, fence.Generation), string(c.Operation),
			"stop: a newer owner has the attempt")
	}
	return nil
}

// Request is what a collision digest covers: every semantic input of an operation,
// policy included through the bundle, and no clock, trace or fence (O2).
type Request struct {
	Kind      string              `json:"kind"`
	Operation operation.Kind      `json:"operation"`
	Bundle    canonical.Digest    `json:"bundle"`
	Attempt   workorder.AttemptID `json:"attempt"`
	Actor     string              `json:"actor"`
	Purpose   string              `json:"purpose"`
	// Parameters is the operation kind's own parameters in canonical JSON.
	Parameters canonical.Raw `json:"parameters"`
}

// NewRequest makes the request of an operation with the given parameters, one of the
// …Parameters types of this package.
func NewRequest(kind operation.Kind, bundle canonical.Digest, attempt workorder.AttemptID, actor, purpose string, parameters any) (Request, error) {
	raw, err := canonical.Marshal(parameters)
	if err != nil {
		return Request{}, fmt.Errorf("parameters of %s: %w", kind, err)
	}
	return Request{
		Kind: RequestKind, Operation: kind, Bundle: bundle, Attempt: attempt,
		Actor: actor, Purpose: purpose, Parameters: raw,
	}, nil
}

// Intent makes the intent of the request: its key in the given namespace and its
// collision digest.
func (r Request) Intent(namespace string, parent operation.Key, class operation.EffectClass, resource string) (operation.Intent, error) {
	key, err := operation.NewKey(namespace, string(r.Attempt), r.Actor, r.Operation, r.Purpose)
	if err != nil {
		return operation.Intent{}, err
	}
	digest, err := canonical.DigestOf(r)
	if err != nil {
		return operation.Intent{}, fmt.Errorf("request of %s: %w", key, err)
	}
	return operation.Intent{Key: key, Parent: parent, Digest: digest, Kind: r.Operation, Class: class, Resource: resource}, nil
}

// ProvisionParameters are the parameters of provision.
type ProvisionParameters struct {
	Manifest canonical.Digest `json:"manifest"`
}

// MaterializeParameters are the parameters of materialize.
type MaterializeParameters struct {
	Inputs canonical.Digest `json:"inputs"`
}

// PrepareParameters are the parameters of prepare.
type PrepareParameters struct {
	Adapter canonical.Digest `json:"adapter"`
}

// StartParameters are the parameters of start.
type StartParameters struct {
	Prompt canonical.Digest `json:"prompt"`
}

// LaunchParameters are the parameters of the host service launch: what an adapter
// wants to have running in the environment.
type LaunchParameters struct {
	Tool      canonical.Digest `json:"tool"`
	Arguments []string         `json:"arguments"`
	// Seed feeds the guest's random source, so that the same input gives the same bytes.
	Seed canonical.Digest `json:"seed"`
}

// CheckpointParameters are the parameters of checkpoint: what may be taken.
type CheckpointParameters struct {
	PayloadKind string `json:"payload_kind"`
	MaxBytes    int64  `json:"max_bytes"`
}

// FreezeParameters are the parameters of freeze_outputs.
type FreezeParameters struct {
	Policy OutputPolicy `json:"policy"`
	// Attestation is the digest of what the environment measured of itself before
	// anything ran in it; the manifest binds it (F4).
	Attestation canonical.Digest `json:"attestation"`
}

// CollectParameters are the parameters of collect.
type CollectParameters struct {
	Result string           `json:"result"`
	Schema canonical.Digest `json:"schema,omitempty"`
}

// ResetParameters are the parameters of reset.
type ResetParameters struct {
	Policy string `json:"policy"`
	// Attestation is the digest of what the environment measured of itself before anything
	// ran in it: what it is reset to.
	Attestation canonical.Digest `json:"attestation"`
}

// RetentionParameters are the parameters of cleanup and destroy: whether what the
// environment holds is to be kept, and for how many days.
type RetentionParameters struct {
	Keep bool  `json:"keep"`
	Days int64 `json:"days"`
}

// Until is the reading of a clock at which the time of what was kept at a reading is over.
func (p RetentionParameters) Until(at lifecycle.Observation) lifecycle.Observation {
	const day = 24 * 60 * 60 * 1000
	return lifecycle.Observation{Domain: at.Domain, UnixMilli: at.UnixMilli + p.Days*day}
}

// RetentionPurpose is the purpose of the destroy that removes what was kept once its time
// is over.
const RetentionPurpose = "retention"

// CancelParameters are the parameters of cancel.
type CancelParameters struct {
	Reason string `json:"reason"`
}

// SendingParameters are the parameters of what leaves through the outbox.
type SendingParameters struct {
	// Proposal is the accepted effect proposal; it names everything that is sent.
	Proposal canonical.Digest `json:"proposal"`
	// Place is taken over where the deployment has the destination, so that an effect is
	// never asked about elsewhere than it was made.
	Place canonical.Digest `json:"place"`
}
