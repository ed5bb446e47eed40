package adapterhost

import (
	"context"
	"time"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
)

// Services is what stands behind the host services of one attempt. It is called only with calls that carry the
// bundle, attempt and fence the session was activated with, and that are the adapter's own. Errors that are a
// *reason.Refusal reach the adapter as such; anything else reaches it as adapter.unavailable, without its words.
type Services interface {
	// Launch has what the request asks for started in the attested environment, as a sub-operation of parent, and
	// returns once it runs. It returns the record at once when the key is settled, and nil while it runs. The same
	// key and digest again start nothing; the same key with another digest is refused (operation.collision). An error
	// means that nothing was started; what is in doubt is begun, and Observe will tell. The death of the adapter does
	// not end the context.
	Launch(ctx context.Context, c protocol.Call, parent operation.Key, r protocol.Request) (*operation.Record, error)
	// Observe waits until the launch of that key is settled, at most as long as it is told, and returns its record, or
	// nil while it runs. A key that was never begun is refused (id.unknown).
	Observe(ctx context.Context, c protocol.Call, wait time.Duration) (*operation.Record, error)
	// ReadArtifact returns at most limit bytes of an artifact from offset on, and the size of the whole. It refuses
	// what the attempt bundle does not name (artifact.missing). The bundle itself is served without it.
	ReadArtifact(ctx context.Context, c protocol.Call, digest canonical.Digest, offset, limit int64) ([]byte, int64, error)
	// Offered returns what the workload has offered as a checkpoint, for a checkpoint that the host asked for: the same
	// bytes each time. Any other call is refused (checkpoint.foreign).
	Offered(ctx context.Context, c protocol.Call) ([]byte, error)
	// Log takes one line of the adapter, bounded and printable; level is debug, info, warn or error.
	Log(ctx context.Context, c protocol.Call, level, message string)
}
