package adapterhost

import (
	"context"
	"strings"
	"sync"
	"time"

	executorv1 "github.com/writ-runtime/writ/go/api/executor/v1"
	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// services is what one process of an adapter reaches. It finds the session of each call by its attempt, and lets
// nothing through that is not the adapter's own.
type services struct {
	executorv1.UnimplementedHostServicesServer
	host *Host

	// mu guards shut and the beginning of launching.
	mu   sync.Mutex
	shut bool
	// launching counts the launches that are being made.
	launching sync.WaitGroup
}

// close refuses every later call, and returns when the launches that were being made are made. A process that died
// may have left calls behind that are read only after its death; what it had launched must be known from here on.
func (s *services) close() {
	s.mu.Lock()
	s.shut = true
	s.mu.Unlock()
	s.launching.Wait()
}

// begin reports whether a launch may be made, and counts it.
func (s *services) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return false
	}
	s.launching.Add(1)
	return true
}

// admit reads a call and finds the session that it belongs to.
func (s *services) admit(ctx context.Context, m *executorv1.Call) (*Session, protocol.Call, context.Context, context.CancelFunc, error) {
	c, err := wire.ToCall(m)
	if err != nil {
		return nil, c, nil, nil, refuse(err)
	}
	session := s.host.session(c.Fence.Attempt)
	if session == nil {
		return nil, c, nil, nil, refuse(reason.New(reason.AdapterForeignCall, "the attempt is not active on this adapter", wire.Clip(string(c.Fence.Attempt)),
			"an adapter acts under its own calls only"))
	}
	if err := session.expect(c); err != nil {
		return nil, c, nil, nil, refuse(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(session.ended, cancel)
	return session, c, ctx, func() { stop(); cancel() }, nil
}

// Launch lets a launch through whose key, digest and request agree, under a start that the host asked for.
func (s *services) Launch(ctx context.Context, m *executorv1.LaunchRequest) (*executorv1.LaunchResponse, error) {
	session, c, ctx, done, err := s.admit(ctx, m.GetCall())
	if err != nil {
		return nil, err
	}
	defer done()
	r, err := wire.DecodeRequest(m.GetRequest(), operation.Launch, c)
	if err != nil {
		return nil, refuse(err)
	}
	parent := operation.Key(m.GetParentKey())
	if err := session.mayLaunch(c, parent); err != nil {
		return nil, refuse(err)
	}
	if !s.begin() {
		return nil, refuse(foreign(c, "comes from a process that was ended"))
	}
	defer s.launching.Done()
	// The death of the adapter does not stop a launch halfway.
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(session.ended, cancel)()
	record, err := session.services.Launch(whole, c, parent, r)
	if err != nil {
		return nil, refuse(err)
	}
	session.saw(parent, c, record)
	raw, err := encode(record)
	return &executorv1.LaunchResponse{Record: raw}, err
}

// Observe waits for news of a launch.
func (s *services) Observe(ctx context.Context, m *executorv1.ObserveRequest) (*executorv1.ObserveResponse, error) {
	session, c, ctx, done, err := s.admit(ctx, m.GetCall())
	if err != nil {
		return nil, err
	}
	defer done()
	if c.Operation.Kind() != operation.Launch {
		return nil, refuse(foreign(c, "is no launch"))
	}
	wait := min(time.Duration(max(m.GetWaitMs(), 0))*time.Millisecond, wire.MaxWait)
	record, err := session.services.Observe(ctx, c, wait)
	if err != nil {
		return nil, refuse(err)
	}
	session.saw("", c, record)
	raw, err := encode(record)
	return &executorv1.ObserveResponse{Record: raw}, err
}

// ReadArtifact serves the bundle itself, and what the services let through.
func (s *services) ReadArtifact(ctx context.Context, m *executorv1.ReadArtifactRequest) (*executorv1.ReadArtifactResponse, error) {
	session, c, ctx, done, err := s.admit(ctx, m.GetCall())
	if err != nil {
		return nil, err
	}
	defer done()
	digest, err := canonical.ParseDigest(m.GetDigest())
	if err != nil {
		return nil, refuse(err)
	}
	offset, limit := m.GetOffset(), min(m.GetLimit(), wire.MaxRead)
	if offset < 0 || limit <= 0 {
		return nil, refuse(reason.New(reason.AdapterProtocol, "the part to read is empty or negative", string(digest), "read from 0 on, at least one byte"))
	}
	if digest == session.bundle.Digest() {
		whole := session.bundle.Bytes()
		from := min(offset, int64(len(whole)))
		return &executorv1.ReadArtifactResponse{Data: whole[from:min(from+limit, int64(len(whole)))], Size: int64(len(whole))}, nil
	}
	data, size, err := session.services.ReadArtifact(ctx, c, digest, offset, limit)
	if err != nil {
		return nil, refuse(err)
	}
	return &executorv1.ReadArtifactResponse{Data: data[:min(int64(len(data)), limit)], Size: size}, nil
}

// Offered serves what the workload has offered, to the checkpoint call that it is pinned for.
func (s *services) Offered(ctx context.Context, m *executorv1.OfferedRequest) (*executorv1.OfferedResponse, error) {
	session, c, ctx, done, err := s.admit(ctx, m.GetCall())
	if err != nil {
		return nil, err
	}
	defer done()
	if c.Operation.Kind() != operation.Checkpoint {
		return nil, refuse(foreign(c, "is no checkpoint"))
	}
	payload, err := session.services.Offered(ctx, c)
	if err != nil {
		return nil, refuse(err)
	}
	if len(payload) > wire.MaxCheckpoint {
		return nil, refuse(reason.New(reason.CheckpointTooLarge, "the workload has offered more than a checkpoint may hold", string(c.Operation), "have the tool offer less"))
	}
	return &executorv1.OfferedResponse{Payload: payload}, nil
}

// Log passes on a bounded number of bounded lines.
func (s *services) Log(ctx context.Context, m *executorv1.LogRequest) (*executorv1.LogResponse, error) {
	session, c, ctx, done, err := s.admit(ctx, m.GetCall())
	if err != nil {
		return nil, err
	}
	defer done()
	level, message := m.GetLevel(), m.GetMessage()
	switch level {
	case "debug", "info", "warn", "error":
	default:
		return nil, refuse(reason.New(reason.AdapterProtocol, "the level "+wire.Clip(level)+" is unknown", string(c.Operation), "use debug, info, warn or error"))
	}
	if len(message) > wire.MaxLog {
		message = message[:wire.MaxLog]
	}
	if ok, last := session.mayLog(); ok {
		if last {
			level, message = "warn", "the adapter has used up its log lines; what follows is dropped"
		}
		session.services.Log(ctx, c, level, wire.Printable(strings.ToValidUTF8(message, "�")))
	}
	return &executorv1.LogResponse{}, nil
}

func encode(record *operation.Record) ([]byte, error) {
	if record == nil {
		return nil, nil
	}
	raw, err := canonical.Marshal(*record)
	if err != nil {
		return nil, refuse(err)
	}
	return raw, nil
}

// refuse makes the status of an error. The words of an error that is no refusal stay here: they are for nobody's
// eyes outside the host.
func refuse(err error) error {
	if r, ok := reason.As(err); ok {
		return wire.StatusOf(r)
	}
	return wire.StatusOf(reason.New(reason.AdapterUnavailable, "the host service failed", "", "try again, or end"))
}
