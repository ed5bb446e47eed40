package workorder

import (
	"fmt"
	"unicode/utf8"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// The registered kinds of checkpoint documents: the envelope, and what it may hold.
const (
	CheckpointKind   = "writ.checkpoint_envelope.v1"
	ToolProgressKind = "writ.checkpoint.tool_progress.v1"
)

// The policies by which checkpoints are taken.
const (
	// NoCheckpoints takes none.
	NoCheckpoints = "none"
	// OfferedCheckpoints takes the newest that the workload has offered, at most once an
	// interval.
	OfferedCheckpoints = "offered"
)

// Checkpoint says whether checkpoints of the work are taken.
type Checkpoint struct {
	Policy string `json:"policy"`
	// PayloadKind is what the tool offers; empty takes ToolProgressKind.
	PayloadKind string `json:"payload_kind,omitempty"`
	// IntervalMillis is the least time between two checkpoints, 0 takes the deployment's.
	IntervalMillis int64 `json:"interval_ms,omitempty"`
}

// CheckpointInput is the name of the input, and CheckpointFile that of its one file, in which
// an attempt finds the checkpoint that it starts from.
const (
	CheckpointInput = "checkpoint"
	CheckpointFile  = "last.json"
)

// CheckpointEnvelope is an immutable checkpoint of a running attempt, as an executor proposes
// it. Its payload is of a registered kind and named by digest; a reducer validates both
// before anything may start from it.
type CheckpointEnvelope struct {
	Kind    string    `json:"kind"`
	Attempt AttemptID `json:"attempt"`
	Fence   Fence     `json:"fence"`
	// Operation is the key of the checkpoint operation that proposed it.
	Operation    string           `json:"operation"`
	PayloadKind  string           `json:"payload_kind"`
	Payload      canonical.Digest `json:"payload"`
	PayloadBytes int64            `json:"payload_bytes"`
	// Artifacts are what the payload refers to. A tool's progress refers to none.
	Artifacts []canonical.Digest `json:"artifacts"`
	// Policy is the digest of the policy decision that the attempt ran under.
	Policy canonical.Digest `json:"policy"`
}

// ToolProgress is how far a deterministic tool has come: what it needs to go on, and what it
// would do next. It is the payload kind writ.checkpoint.tool_progress.v1.
type ToolProgress struct {
	Kind string `json:"kind"`
	// Position is how much of the work is covered, in the tool's own units, from 1 on. A later
	// checkpoint of the same work stands at a later position.
	Position int64 `json:"position"`
	// State is whatever the tool needs to go on from there: an object that only it understands.
	State canonical.Raw `json:"state"`
	// NextAction says what the tool does next, StopCondition when it is done; both for people.
	NextAction    string `json:"next_action"`
	StopCondition string `json:"stop_condition"`
}

// MaxProgressText bounds each text of a ToolProgress, in bytes.
const MaxProgressText = 1024

// PayloadKinds returns the registered kinds of checkpoint payloads.
func PayloadKinds() []string { return []string{ToolProgressKind} }

// CheckPayload holds the bytes of a payload against the registered kind, and returns the
// position at which the work stands. The error is a *reason.Refusal:
// checkpoint.unregistered_kind or checkpoint.malformed.
func CheckPayload(kind string, payload []byte) (position int64, err error) {
	if kind != ToolProgressKind {
		return 0, reason.New(reason.CheckpointUnregisteredKind, fmt.Sprintf("no payload kind %q is registered", kind), kind,
			"have the tool offer "+ToolProgressKind)
	}
	bad := func(what string, cause error) (int64, error) {
		r := reason.New(reason.CheckpointMalformed, "the checkpoint's payload "+what, kind, "have the tool write canonical JSON of its kind")
		if cause != nil {
			return 0, r.Because(cause)
		}
		return 0, r
	}
	var p ToolProgress
	if err := canonical.DecodeCanonical(payload, &p); err != nil {
		return bad("is no canonical JSON of its kind", err)
	}
	// Decoding lets members be absent; none of them can be empty.
	switch state, err := canonical.Parse(p.State, canonical.DefaultLimits()); {
	case p.Kind != kind:
		return bad(fmt.Sprintf("is of kind %q", p.Kind), nil)
	case p.Position < 1:
		return bad("stands at no position: it has to be 1 or more", nil)
	case err != nil || state.Kind() != canonical.KindObject:
		return bad("has a state that is no object", err)
	case !text(p.NextAction) || !text(p.StopCondition):
		return bad(fmt.Sprintf("has a text that is empty, not UTF-8 or longer than %d bytes", MaxProgressText), nil)
	}
	return p.Position, nil
}

func text(s string) bool { return s != "" && len(s) <= MaxProgressText && utf8.ValidString(s) }
