// Package workorder holds what an order for a piece of work consists of, and what
// is allocated to an attempt at it: reservation, fence, budget, descriptor. It is
// pure.
package workorder

import (
	"github.com/writ-runtime/writ/go/canonical"
)

// The registered kinds of this package's documents.
const (
	Kind            = "writ.workorder.v1"
	RolePackageKind = "writ.role_package.v1"
	ContextKind     = "writ.context_package.v1"
	PromptKind      = "writ.prompt_payload.v1"
	ReservationKind = "writ.attempt_reservation.v1"
	DescriptorKind  = "writ.attempt_descriptor.v1"
	ResultKind      = "writ.attempt_result.v1"
)

// ID names a work order: "wo_" and a UUIDv7.
type ID string

// AttemptID names an attempt: "att_" and a UUIDv7.
type AttemptID string

// ReservationID names an attempt reservation: "res_" and a UUIDv7.
type ReservationID string

// The prefixes of the typed ids.
const (
	IDPrefix            = "wo_"
	AttemptIDPrefix     = "att_"
	ReservationIDPrefix = "res_"
)

// WorkOrder is an order as a person writes it (schema workorder.v1). It is
// immutable: a change makes a new one.
type WorkOrder struct {
	Kind      string `json:"kind"`
	Title     string `json:"title"`
	Objective string `json:"objective,omitempty"`
	// Mode is the ceiling of what effects may do, never a grant.
	Mode string `json:"mode"`
	Role string `json:"role"`
	// CodeClass is how far the code that runs is trusted; missing counts as candidate.
	CodeClass   string      `json:"code_class,omitempty"`
	Executor    string      `json:"executor,omitempty"`
	Environment Environment `json:"environment"`
	Tool        Tool        `json:"tool"`
	Inputs      []Input     `json:"inputs,omitempty"`
	Outputs     Outputs     `json:"outputs"`
	Actions     []Action    `json:"actions,omitempty"`
	// Proposals are the effects that are to leave once the result was accepted.
	Proposals []Proposal `json:"proposals,omitempty"`
	Retention *Retention `json:"retention,omitempty"`
	Limits    *Limits    `json:"limits,omitempty"`
	// Account names the account of the deployment that its attempts draw on together with
	// those of other orders; empty for none.
	Account    string      `json:"account,omitempty"`
	DependsOn  []ID        `json:"depends_on,omitempty"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	// CancellationDeadlineMillis bounds how long a requested cancellation may stay
	// unproven.
	CancellationDeadlineMillis int64           `json:"cancellation_deadline_ms,omitempty"`
	Reconciliation             *Reconciliation `json:"reconciliation,omitempty"`
}

// Environment asks for a provider and for limits below the deployment's own.
type Environment struct {
	Provider string            `json:"provider"`
	Limits   EnvironmentLimits `json:"limits,omitempty"`
	// Reset is a reset policy of package attemptbundle; missing counts as none.
	Reset string `json:"reset,omitempty"`
}

// EnvironmentLimits bound what runs; zero takes the deployment's default.
type EnvironmentLimits struct {
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	WallMillis  int64 `json:"wall_ms,omitempty"`
	CPUMillis   int64 `json:"cpu_ms,omitempty"`
	Processes   int64 `json:"processes,omitempty"`
	Files       int64 `json:"files,omitempty"`
	DiskBytes   int64 `json:"disk_bytes,omitempty"`
}

// Tool names a tool of the lock and the arguments it starts with.
type Tool struct {
	Name      string   `json:"name"`
	Arguments []string `json:"arguments,omitempty"`
}

// Input is a file or folder that the attempt may read, mounted under its name.
type Input struct {
	Name string `json:"name"`
	// Source is a path, relative to the folder of the work order's own file.
	Source   string `json:"source"`
	MaxBytes int64  `json:"max_bytes,omitempty"`
	MaxFiles int64  `json:"max_files,omitempty"`
}

// Outputs declares all that may leave the environment.
type Outputs struct {
	// Schema is the path of the JSON Schema that Result must satisfy.
	Schema string `json:"schema,omitempty"`
	// Result is the declared path that holds the structured result.
	Result   string         `json:"result,omitempty"`
	Paths    []DeclaredPath `json:"paths"`
	MaxCount int64          `json:"max_count"`
	MaxBytes int64          `json:"max_bytes"`
}

// DeclaredPath is one path that may leave; nil Required means required.
type DeclaredPath struct {
	Path      string `json:"path"`
	MediaType string `json:"media_type"`
	Required  *bool  `json:"required,omitempty"`
}

// Action is one action that the work asks for.
type Action struct {
	Action      string `json:"action"`
	Resource    string `json:"resource"`
	Destination string `json:"destination,omitempty"`
}

// Retention says whether the environment's bytes are kept after the attempt.
type Retention struct {
	Keep bool  `json:"keep"`
	Days int64 `json:"days,omitempty"`
}

// Limits are the ceilings of one attempt.
type Limits struct {
	Calls int64 `json:"calls,omitempty"`
	// Retries are further attempts after a loss or a declared transient failure; nil takes
	// the deployment's default.
	Retries    *int64 `json:"retries,omitempty"`
	Repairs    int64  `json:"repairs,omitempty"`
	Tokens     int64  `json:"tokens,omitempty"`
	WallMillis int64  `json:"wall_ms,omitempty"`
	Money      *Money `json:"money,omitempty"`
}

// Money is Amount × 10^-Scale of an ISO 4217 currency.
type Money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Scale    int64  `json:"scale"`
}

// Reconciliation bounds how often and how long an unknown is asked about.
type Reconciliation struct {
	Tries          int64 `json:"tries"`
	DeadlineMillis int64 `json:"deadline_ms"`
}

// RolePackage is the compiled role: what the work may be done as. It grants nothing.
type RolePackage struct {
	Kind    string `json:"kind"`
	Role    string `json:"role"`
	Profile string `json:"profile"`
	// Policy is the digest of the role layer that knows the role.
	Policy canonical.Digest `json:"policy"`
}

// ContextPackage is the ordered list of what the work is given to read, beyond its
// input mounts. Deterministic tools are given none.
type ContextPackage struct {
	Kind      string             `json:"kind"`
	Artifacts []canonical.Digest `json:"artifacts"`
}

// PromptPayload is what the executor is told: the objective, and for a tool its
// arguments.
type PromptPayload struct {
	Kind      string   `json:"kind"`
	Objective string   `json:"objective"`
	Tool      string   `json:"tool"`
	Arguments []string `json:"arguments"`
}
