package sdk

import (
	"context"
	"fmt"
	"time"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
)

// Host is all that an adapter can reach. Every call is made on behalf of the call that the adapter answers; the host
// refuses what the attempt bundle does not order, with a *reason.Refusal.
type Host interface {
	// Launch has a tool started in the attested environment and returns once it runs. Launching the same again is
	// answered from the journal. It is possible within Start only.
	Launch(ctx context.Context, l Launch) (Launched, error)
	// Observe waits until the launch has ended, at most as long as it is told (30 s at most). A launch that was never
	// made is refused with id.unknown.
	Observe(ctx context.Context, l Launch, wait time.Duration) (Launched, error)
	// ReadArtifact reads at most limit bytes (1 MiB at most) of an artifact that the bundle names, from offset on, and
	// returns them with the size of the whole.
	ReadArtifact(ctx context.Context, digest canonical.Digest, offset, limit int64) ([]byte, int64, error)
	// Offered reads what the workload has offered as a checkpoint, 64 KiB at most. It is possible within Checkpoint only.
	Offered(ctx context.Context) ([]byte, error)
	// Log hands one line of at most 4 KiB to the operator. Too many are dropped.
	Log(ctx context.Context, level Level, message string)
}

// Level is how much a log line matters.
type Level string

// The levels.
const (
	LevelDebug Level = "debug"
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

// Launch says what is to run, and for what purpose: "main", or another one that the bundle orders.
type Launch struct {
	Purpose    string
	Parameters protocol.LaunchParameters
}

// Launched is a launch as the host has it.
type Launched struct {
	// Key and Digest identify the sub-operation.
	Key    operation.Key
	Digest canonical.Digest
	// Record is nil while it runs.
	Record *operation.Record
}

// Ended reports whether nothing of it runs any more.
func (l Launched) Ended() bool { return l.Record != nil }

// Result returns how it ended.
func (l Launched) Result() (protocol.LaunchResult, error) {
	var r protocol.LaunchResult
	if l.Record == nil {
		return r, fmt.Errorf("result of %s: it has not ended", l.Key)
	}
	if out := l.Record.Outcome; out.Knowledge != operation.Applied {
		return r, refused(l.Key, out)
	}
	if err := canonical.DecodeCanonical(l.Record.Outcome.Result, &r); err != nil {
		return r, fmt.Errorf("result of %s: %w", l.Key, err)
	}
	return r, nil
}
