package policy

import (
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
)

// Input is the whole of what policies see. Its canonical JSON is what input digests are taken over; it holds no
// clock, no host fact that is not named here, and no secret.
type Input struct {
	WorkOrder  InputWorkOrder       `json:"work_order"`
	Requested  []capability.Request `json:"requested"`
	Deployment InputDeployment      `json:"deployment"`
	Facts      Facts                `json:"facts"`
}

// InputWorkOrder is what policies see of a work order, with every default filled in. What
// names an order and decides nothing, id and title, is left out: equal orders have equal
// inputs, and one evaluation.
type InputWorkOrder struct {
	Mode capability.Mode `json:"mode"`
	Role string          `json:"role"`
	// CodeClass is how far the code is trusted, as admission found it and not as the order claims: reviewed, candidate, community, self_modifying or hidden_evaluation.
	CodeClass   string           `json:"code_class"`
	Executor    string           `json:"executor"`
	Tool        InputTool        `json:"tool"`
	Environment InputEnvironment `json:"environment"`
	Inputs      []InputMount     `json:"inputs"`
	Outputs     InputOutputs     `json:"outputs"`
	// Limits are the ceilings of the attempt: calls, retries, repairs, tokens (counts), wall_ms (milliseconds).
	Limits map[string]int64 `json:"limits"`
	// Account is the account of the deployment that the attempts draw on; left out for none.
	Account string `json:"account,omitempty"`
	// Retention is what is kept of the environment afterwards; left out where nothing is.
	Retention *InputRetention `json:"retention,omitempty"`
}

// InputRetention says that the workspace is kept, and for how many days.
type InputRetention struct {
	Keep bool  `json:"keep"`
	Days int64 `json:"days"`
}

// InputTool is the tool that the order names, with its digest from the lock.
type InputTool struct {
	Name   string           `json:"name"`
	Digest canonical.Digest `json:"digest"`
}

// InputEnvironment is the environment that the order asks for.
type InputEnvironment struct {
	Provider string `json:"provider"`
	// Class is that of the provider's own manifest, not a claim: ephemeral_isolated or trusted_local.
	Class string `json:"class"`
	// Limits are memory_bytes, disk_bytes (bytes), wall_ms, cpu_ms (milliseconds), processes, files (counts).
	Limits map[string]int64 `json:"limits"`
}

// InputMount is one input that the order declares, or the checkpoint that the attempt starts from: that one is named
// checkpoint, and no order that takes checkpoints can declare it.
type InputMount struct {
	Name string `json:"name"`
}

// InputOutputs are the outputs that the order declares.
type InputOutputs struct {
	Paths    []InputPath `json:"paths"`
	MaxBytes int64       `json:"max_bytes"`
	MaxCount int64       `json:"max_count"`
}

// InputPath is one declared output.
type InputPath struct {
	Path string `json:"path"`
}

// InputDeployment names the deployment whose policy applies.
type InputDeployment struct {
	Name string `json:"name"`
}

// Facts are established by Writ itself; no work order can state one.
type Facts struct {
	// ToolReviewed says that the allowlist of reviewed code holds the tool's digest.
	ToolReviewed bool `json:"tool_reviewed"`
	// AdapterDigest is that of the pinned adapter.
	AdapterDigest canonical.Digest `json:"adapter_digest"`
	// Supervised says that an authenticated person supervises this one attempt.
	Supervised bool `json:"supervised"`
	// ModeEvidence is the digest of what a person approved the order for its mode by, or "".
	ModeEvidence canonical.Digest `json:"mode_evidence"`
	// ModeEvidenceCurrent says that what was shown there ran the very tool and adapter that are
	// pinned now.
	ModeEvidenceCurrent bool `json:"mode_evidence_current"`
}

// Bytes returns the canonical JSON of the input.
func (in Input) Bytes() ([]byte, error) { return canonical.Marshal(in) }
