package supervisor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// Services is what an adapter may ask of its host. Every call carries the bundle and
// fence of the attempt; whoever serves it has compared them before.
type Services interface {
	Launch(ctx context.Context, c protocol.Call, parent operation.Key, r protocol.Request) (*operation.Record, error)
	Observe(ctx context.Context, c protocol.Call, wait time.Duration) (*operation.Record, error)
	ReadArtifact(ctx context.Context, c protocol.Call, digest canonical.Digest, offset, limit int64) ([]byte, int64, error)
	Offered(ctx context.Context, c protocol.Call) ([]byte, error)
	Log(ctx context.Context, c protocol.Call, level, message string)
}

// services serves the adapter of one attempt, and witnesses what it did.
type services struct {
	attempt *Attempt
	bundle  *attemptbundle.Bundle
	// offers hold what the workload has offered as a checkpoint.
	offers *offers

	mu     sync.Mutex
	launch *Launch
	// asked says that the adapter asked for the launch.
	asked bool
}

// offer makes the launch of the next start available.
func (s *services) offer(l *Launch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.launch, s.asked = l, false
}

// offered returns the launch of a key and digest, or why the adapter cannot have it.
// What was ordered and recorded is the only thing it can have.
func (s *services) offered(key operation.Key, digest canonical.Digest) (*Launch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.launch == nil || s.launch.Intent().Key != key {
		return nil, reason.New(reason.CapabilityNotGranted, "the attempt bundle orders no such launch", string(key),
			"launch what the bundle orders, as a sub-operation of start")
	}
	if in := s.launch.Intent(); digest != "" && in.Digest != digest {
		return nil, reason.New(reason.OperationCollision,
			fmt.Sprintf("the launch was recorded with digest %s and is asked for with %s", in.Digest, digest), string(key),
			"ask with exactly what the bundle orders; nothing was done")
	}
	return s.launch, nil
}

// Launch implements Services.
func (s *services) Launch(_ context.Context, c protocol.Call, parent operation.Key, r protocol.Request) (*operation.Record, error) {
	digest, err := canonical.DigestOf(r)
	if err != nil {
		return nil, err
	}
	l, err := s.offered(c.Operation, digest)
	if err != nil {
		return nil, err
	}
	if l.Intent().Parent != parent {
		return nil, reason.New(reason.CapabilityNotGranted, "the launch belongs to another call", string(c.Operation), "launch under the start that ordered it")
	}
	s.mu.Lock()
	s.asked = true
	s.mu.Unlock()
	l.Start()
	return ended(l), nil
}

// Observe implements Services.
func (s *services) Observe(ctx context.Context, c protocol.Call, wait time.Duration) (*operation.Record, error) {
	l, err := s.offered(c.Operation, "")
	if err != nil {
		return nil, reason.New(reason.IDUnknown, "no such launch was begun", string(c.Operation), "launch before observing")
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-l.Ended():
	case <-timer.C:
	case <-ctx.Done():
	}
	return ended(l), nil
}

// ended returns the record of a launch that has ended, nil of one that runs.
func ended(l *Launch) *operation.Record {
	select {
	case <-l.Ended():
		r := l.Record()
		return &r
	default:
		return nil
	}
}

// ReadArtifact implements Services. An adapter reads the input documents that the
// bundle names by digest, and nothing else.
func (s *services) ReadArtifact(ctx context.Context, c protocol.Call, digest canonical.Digest, offset, limit int64) ([]byte, int64, error) {
	b := s.bundle
	from := b.StartsFrom != nil && digest == b.StartsFrom.Payload
	if digest != b.Prompt && digest != b.Context && digest != b.Role.Package && digest != b.Outputs.Schema && !from {
		return nil, 0, reason.New(reason.ArtifactMissing, "the attempt bundle names no such artifact", string(digest), "ask for one that it names")
	}
	const most = 1 << 20
	raw, err := s.attempt.Artifacts.Read(ctx, digest, most)
	if err != nil {
		return nil, 0, err
	}
	size := int64(len(raw))
	at := min(max(offset, 0), size)
	return raw[at:min(at+max(limit, 0), size)], size, nil
}

// Log implements Services. What an adapter says is for a person to see while the
// attempt runs; it is never a record.
func (s *services) Log(_ context.Context, _ protocol.Call, level, message string) {
	if s.attempt.Log != nil {
		s.attempt.Log(level, message)
	}
}

// Launches implements executor.Witness.
func (s *services) Launches(parent operation.Key) []executor.Launch {
	s.mu.Lock()
	l, asked := s.launch, s.asked
	s.mu.Unlock()
	if l == nil || !asked || l.Intent().Parent != parent {
		return nil
	}
	return []executor.Launch{{Key: l.Intent().Key, Digest: l.Intent().Digest, Record: ended(l)}}
}
