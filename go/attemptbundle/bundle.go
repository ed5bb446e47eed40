// Package attemptbundle compiles and verifies the ExecutionAttemptBundle: the one
// immutable order that an attempt consumes. It is pure: what it compiles from is
// handed in, already read and digested.
package attemptbundle

import (
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
)

// Kind is the registered kind of a bundle; EnvironmentKind of its environment part.
const (
	Kind            = "writ.attempt_bundle.v1"
	EnvironmentKind = "writ.environment_manifest.v1"
	// CollisionDigest names the algorithm of every collision digest (B9).
	CollisionDigest = "sha-256 over RFC 8785"
)

// Bundle is an ExecutionAttemptBundle. Its canonical JSON is its only form, and the
// SHA-256 of that its name.
type Bundle struct {
	Kind        string          `json:"kind"`
	Reservation Reservation     `json:"reservation"`
	WorkOrder   Order           `json:"work_order"`
	Attempt     Attempt         `json:"attempt"`
	Cause       Cause           `json:"cause"`
	Fence       workorder.Fence `json:"fence"`

	Role    Role             `json:"role"`
	Prompt  canonical.Digest `json:"prompt"`
	Context canonical.Digest `json:"context"`
	// Deltas narrow or add to the context within the attempt; each by digest.
	Deltas []canonical.Digest `json:"context_deltas"`

	Mode      capability.Mode    `json:"mode"`
	CodeClass string             `json:"code_class"`
	Requested canonical.Digest   `json:"requested_grants"`
	Grants    []capability.Grant `json:"grants"`
	Policy    Policy             `json:"policy"`

	Environment EnvironmentManifest    `json:"environment"`
	Inputs      protocol.InputManifest `json:"inputs"`
	Outputs     Outputs                `json:"outputs"`
	Execution   Execution              `json:"execution"`
	// Proposals are the effects that leave once the result was accepted, sorted by purpose,
	// with everything filled in that the work order leaves open.
	Proposals []workorder.Proposal `json:"proposals,omitempty"`
	Pins      Pins                 `json:"pins"`
	Ceilings  Ceilings             `json:"ceilings"`

	Checkpoint CheckpointPolicy `json:"checkpoint_policy"`
	// StartsFrom is the validated checkpoint that the attempt starts from, nil for none.
	StartsFrom *StartingPoint `json:"starts_from"`

	// LeaseMillis is how long a lease of the attempt is, from its activation and from each
	// renewal.
	LeaseMillis                int64            `json:"lease_ms"`
	CancellationDeadlineMillis int64            `json:"cancellation_deadline_ms"`
	Reconciliation             Reconciliation   `json:"reconciliation"`
	Classification             string           `json:"result_classification"`
	Operations                 Operations       `json:"operations"`
	Transitions                canonical.Digest `json:"transition_registry"`
}

// Reservation names the reservation that the bundle was compiled for (B2).
type Reservation struct {
	ID               workorder.ReservationID `json:"id"`
	Digest           canonical.Digest        `json:"digest"`
	ExpiresUnixMilli int64                   `json:"expires_unix_ms"`
}

// Order names the work order.
type Order struct {
	ID      workorder.ID     `json:"id"`
	Version uint64           `json:"version"`
	Digest  canonical.Digest `json:"digest"`
}

// Attempt names the proposed attempt.
type Attempt struct {
	ID      workorder.AttemptID `json:"id"`
	Ordinal int64               `json:"ordinal"`
	Version uint64              `json:"version"`
}

// Cause names the event that led to the bundle, and the version that its stream must
// still have when the attempt is activated.
type Cause struct {
	Subject         lifecycle.Subject `json:"subject"`
	Family          lifecycle.Family  `json:"family"`
	ExpectedVersion uint64            `json:"expected_stream_version"`
}

// Role names the compiled role package and the accepted profile (B3).
type Role struct {
	Package canonical.Digest `json:"package"`
	Profile string           `json:"profile"`
}

// Policy names the decision that the grants follow from.
type Policy struct {
	Decision canonical.Digest `json:"decision"`
	Layers   []LayerDigest    `json:"layers"`
}

// LayerDigest names the exact policy of one layer.
type LayerDigest struct {
	Layer  string           `json:"layer"`
	Digest canonical.Digest `json:"digest"`
}

// EnvironmentManifest is the environment the attempt must get, as E2 lists it. The
// attestation is compared with it fact by fact.
type EnvironmentManifest struct {
	Kind     string `json:"kind"`
	Provider Pin    `json:"provider"`
	Platform string `json:"platform"`
	// Root is the digest of the root file system or image; for the wasm provider the
	// digest of the worker binary, which is all the guest can see of a system.
	Root      canonical.Digest `json:"root"`
	Isolation string           `json:"isolation_class"`
	Network   string           `json:"network"`
	Workspace string           `json:"workspace"`
	Limits    Limits           `json:"limits"`
	// Credentials are references, never values (B10).
	Credentials []string  `json:"credential_references"`
	Reset       string    `json:"reset_policy"`
	Cleanup     string    `json:"cleanup_policy"`
	Retention   Retention `json:"retention"`
}

// The reset policies of an environment.
const (
	// NoReset destroys an environment as it is.
	NoReset = "none"
	// ResetBeforeDestroy empties it first, and has it measure that nothing is left.
	ResetBeforeDestroy = "before_destroy"
)

// Retention says what of the environment is kept, and for how many days.
type Retention struct {
	Keep bool  `json:"keep"`
	Days int64 `json:"days"`
}

// Limits are the limits of an environment; each is positive.
type Limits struct {
	MemoryBytes int64 `json:"memory_bytes"`
	WallMillis  int64 `json:"wall_ms"`
	CPUMillis   int64 `json:"cpu_ms"`
	Processes   int64 `json:"processes"`
	Files       int64 `json:"files"`
	DiskBytes   int64 `json:"disk_bytes"`
	StdoutBytes int64 `json:"stdout_bytes"`
}

// Outputs declares what may leave and what the result must satisfy (B6).
type Outputs struct {
	Schema    canonical.Digest      `json:"schema,omitempty"`
	Result    string                `json:"result"`
	Policy    protocol.OutputPolicy `json:"policy"`
	Retention Retention             `json:"retention"`
}

// Execution says what the executor is to run.
type Execution struct {
	Tool      string   `json:"tool"`
	Arguments []string `json:"arguments"`
	// Seed feeds the guest's random source.
	Seed canonical.Digest `json:"seed"`
}

// Pin names exact bytes by version and digest.
type Pin struct {
	Name    string           `json:"name"`
	Version string           `json:"version"`
	Digest  canonical.Digest `json:"digest"`
}

// Model pins a model. A remote one that cannot be pinned by bytes says so in so many
// words in Unpinnable (B7).
type Model struct {
	Provider   string           `json:"provider"`
	Endpoint   string           `json:"endpoint"`
	Name       string           `json:"name"`
	Revision   string           `json:"revision"`
	Digest     canonical.Digest `json:"digest,omitempty"`
	Unpinnable string           `json:"unpinnable,omitempty"`
}

// Pins hold every byte that can run or steer the attempt. What is not used is nil or
// empty, never absent: an attempt without a model says so.
type Pins struct {
	Model       *Model `json:"model"`
	Tokenizer   *Pin   `json:"tokenizer"`
	Harness     *Pin   `json:"harness"`
	Adapter     Pin    `json:"adapter"`
	Tools       []Pin  `json:"tools"`
	Plugins     []Pin  `json:"plugins"`
	Skills      []Pin  `json:"skills"`
	ToolSchemas []Pin  `json:"tool_schemas"`
}

// Ceilings bound the attempt (B8). Zero allows none.
type Ceilings struct {
	Network     string           `json:"network"`
	Processes   int64            `json:"processes"`
	Filesystem  int64            `json:"filesystem_bytes"`
	Credentials []string         `json:"credential_references"`
	Calls       int64            `json:"calls"`
	Retries     int64            `json:"retries"`
	Repairs     int64            `json:"repairs"`
	Tokens      int64            `json:"tokens"`
	WallMillis  int64            `json:"wall_ms"`
	Money       *workorder.Money `json:"money"`
}

// Reconciliation bounds how an unknown is asked about.
type Reconciliation struct {
	Tries          int64 `json:"tries"`
	DeadlineMillis int64 `json:"deadline_ms"`
}

// Operations fixes how the attempt's operations are named and judged (B9).
type Operations struct {
	Namespace       string           `json:"namespace"`
	CollisionDigest string           `json:"collision_digest"`
	EffectClasses   canonical.Digest `json:"effect_class_registry"`
}

// Digests returns the parts that the reservation fixed, computed from the bundle.
func (b *Bundle) Digests() (workorder.Digests, error) {
	var (
		d   = workorder.Digests{Role: b.Role.Package, Context: b.Context, Prompt: b.Prompt, Grant: b.Requested}
		err error
	)
	if d.Environment, err = canonical.DigestOf(b.Environment); err != nil {
		return workorder.Digests{}, err
	}
	if d.Fence, err = canonical.DigestOf(b.Fence); err != nil {
		return workorder.Digests{}, err
	}
	if d.Budget, err = canonical.DigestOf(b.Budget()); err != nil {
		return workorder.Digests{}, err
	}
	return d, nil
}

// Budget is the budget that the ceilings draw on.
func (b *Bundle) Budget() workorder.Budget {
	c := b.Ceilings
	return workorder.Budget{
		Calls: c.Calls, Retries: c.Retries, Repairs: c.Repairs, Tokens: c.Tokens,
		WallMillis: c.WallMillis, Money: c.Money,
	}
}
