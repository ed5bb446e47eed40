package protocol

import (
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// ProvisionResult is the domain result of provision: the environment handle.
type ProvisionResult struct {
	Provider string `json:"provider"`
	Resource string `json:"resource"`
}

// MaterializeResult is the domain result of materialize.
type MaterializeResult struct {
	Inputs canonical.Digest `json:"inputs"`
	Files  int64            `json:"files"`
	Bytes  int64            `json:"bytes"`
}

// PrepareResult is the domain result of prepare: the execution handle, which grants
// nothing.
type PrepareResult struct {
	Handle string `json:"handle"`
}

// StartResult is the domain result of start.
type StartResult struct {
	Handle string `json:"handle"`
}

// LaunchResult is the domain result of launch: how the process ended, as the host
// saw it. Exactly one of the ways to end is set.
type LaunchResult struct {
	Tool canonical.Digest `json:"tool"`
	// Ended is "exited", "trapped", "limit" or "killed".
	Ended string `json:"ended"`
	// Status is the exit status of "exited".
	Status int64 `json:"status"`
	// Limit is the provider's name of the limit that it ran into: for wasm memory, wall,
	// cpu, stdio, workspace_bytes, workspace_files and the others of its worker.
	Limit string `json:"limit,omitempty"`
	// Stdout and Stderr are the digests of what it printed, cut at the bound.
	Stdout canonical.Digest `json:"stdout,omitempty"`
	Stderr canonical.Digest `json:"stderr,omitempty"`
}

// The ways a launched process can end.
const (
	EndedExited  = "exited"
	EndedTrapped = "trapped"
	EndedLimit   = "limit"
	EndedKilled  = "killed"
)

// CompletionReport is what poll says once nothing runs any more. It guards the
// transition to completion_reported and to freezing.
type CompletionReport struct {
	Handle   string          `json:"handle"`
	Launches []operation.Key `json:"launches"`
	Ended    []LaunchResult  `json:"ended"`
}

// FreezeResult is the domain result of freeze_outputs.
type FreezeResult struct {
	Manifest canonical.Digest `json:"manifest"`
	Files    int64            `json:"files"`
	Bytes    int64            `json:"bytes"`
	Omitted  int64            `json:"omitted"`
}

// CollectResult is the domain result of collect: it binds the manifest and, where a
// structured result is declared, its digest and the schema that it satisfies.
type CollectResult struct {
	Manifest   canonical.Digest `json:"manifest"`
	Structured canonical.Digest `json:"structured,omitempty"`
	Schema     canonical.Digest `json:"schema,omitempty"`
}

// ResetResult is the domain result of reset. There is none unless nothing is left and what
// the environment measured is what is expected of it.
type ResetResult struct {
	Resource string `json:"resource"`
	// Report is the digest of what the environment measured of itself after it was emptied.
	Report canonical.Digest `json:"report"`
	// FilesLeft and BytesLeft are what was counted from inside, inputs and workspace
	// together; a directory counts as a file.
	FilesLeft int64 `json:"files_left"`
	BytesLeft int64 `json:"bytes_left"`
}

// RemovalResult is the domain result of cleanup, destroy and cancel: what was still
// there and is gone now.
type RemovalResult struct {
	Resource string `json:"resource"`
	// WasAlive says that a process bearing the name had to be killed.
	WasAlive bool `json:"was_alive"`
	// Gone says that nothing bears the name any more; it was looked at, not assumed.
	Gone bool `json:"gone"`
	// Kept says how many bytes the retention policy keeps.
	Kept int64 `json:"kept"`
	// Retention says what is kept, and until when; nil where nothing is.
	Retention *Retention `json:"retention,omitempty"`
}

// Retention is what the retention policy keeps of an environment that is gone: under
// which policy, until when, and how much.
type Retention struct {
	Policy RetentionParameters `json:"policy"`
	// At is the reading of the host's clock at which it was kept, Until the one at which
	// its time is over.
	At    lifecycle.Observation `json:"at"`
	Until lifecycle.Observation `json:"until"`
	Files int64                 `json:"files"`
	// Bytes is the sum of the files' sizes.
	Bytes int64 `json:"bytes"`
	// Manifest is the digest of the manifest.json that stands beside the files, and names
	// each with its digest.
	Manifest canonical.Digest `json:"manifest"`
}

// Kept returns what the outcome of a destroy says is kept, nil for nothing.
func Kept(out operation.Outcome) *Retention {
	var r RemovalResult
	if out.Knowledge != operation.Applied || canonical.Decode(out.Result, &r) != nil {
		return nil
	}
	return r.Retention
}

// ReceiptName is the name of the receipt of an operation: that of its kind, but for a
// destroy that kept something, whose receipt is the retention receipt.
func ReceiptName(kind operation.Kind, out operation.Outcome) string {
	if kind == operation.Destroy && Kept(out) != nil {
		return lifecycle.RetentionReceipt
	}
	return kind.ReceiptName()
}

// PublicationResult is the domain result of publish, review_packet and shadow_publish: a
// folder that stands complete at a destination.
type PublicationResult struct {
	// Destination is the name that the proposal gave; where that is, the deployment says.
	Destination capability.Scope `json:"destination"`
	// Name is the folder's name there, made from attempt and purpose.
	Name string `json:"name"`
	// Content is the digest of the folder's manifest.json, which names every other file.
	Content canonical.Digest `json:"content"`
	Files   int64            `json:"files"`
	Bytes   int64            `json:"bytes"`
}

// BranchResult is the domain result of branch.
type BranchResult struct {
	Destination capability.Scope `json:"destination"`
	Branch      string           `json:"branch"`
	// Commit and Tree are git's own names of objects, in hexadecimal.
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
}

// Receipt is the host's receipt of one operation. Its canonical bytes are what exact
// replay returns, and its digest guards transitions. It carries no time: that stands
// in the batch that recorded it.
type Receipt struct {
	Kind      string                `json:"kind"`
	Name      string                `json:"name"`
	Operation operation.Key         `json:"operation"`
	Parent    operation.Key         `json:"parent,omitempty"`
	Digest    canonical.Digest      `json:"digest"`
	Class     operation.EffectClass `json:"effect_class"`
	Bundle    canonical.Digest      `json:"bundle"`
	Attempt   workorder.AttemptID   `json:"attempt"`
	// Generation is the fence under which the effect was permitted.
	Generation uint64              `json:"fence_generation"`
	Resource   string              `json:"resource"`
	Knowledge  operation.Knowledge `json:"knowledge"`
	Result     canonical.Digest    `json:"result,omitempty"`
	Claim      canonical.Digest    `json:"claim,omitempty"`
	Code       reason.Code         `json:"code,omitempty"`
}

// InputManifest lists what is materialized, by digest. Where the bytes come from is
// not in it: a bundle is portable.
type InputManifest struct {
	Kind   string       `json:"kind"`
	Inputs []InputMount `json:"inputs"`
}

// InputMount is one named input.
type InputMount struct {
	Name  string      `json:"name"`
	Files []InputFile `json:"files"`
}

// InputFile is one file of an input, its path relative to the mount.
type InputFile struct {
	Path   string           `json:"path"`
	Size   int64            `json:"size"`
	Digest canonical.Digest `json:"digest"`
}

// Totals returns the number of files and bytes of the manifest.
func (m InputManifest) Totals() (files, bytes int64) {
	for _, in := range m.Inputs {
		for _, f := range in.Files {
			files++
			bytes += f.Size
		}
	}
	return files, bytes
}

// EnvironmentReconciliation is what a provider found under an environment's name.
type EnvironmentReconciliation struct {
	Resource string `json:"resource"`
	WasAlive bool   `json:"was_alive"`
	Gone     bool   `json:"gone"`
	// Why says what stood in the way of knowing that it is gone.
	Why string `json:"why,omitempty"`
}
