package sdk

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	executorv1 "github.com/writ-runtime/writ/go/api/executor/v1"
	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// server turns the protocol's messages into the calls of an Adapter. What it remembers only saves a question to the
// host: bundles by digest, and the newest fence of each attempt.
type server struct {
	executorv1.UnimplementedExecutorServer
	adapter      Adapter
	info         Info
	capabilities canonical.Raw
	host         func() (executorv1.HostServicesClient, error)

	// mu guards the maps.
	mu      sync.Mutex
	bundles map[canonical.Digest]*Bundle
	fences  map[workorder.AttemptID]uint64
}

// maxRemembered bounds the maps of a server. A long-lived process forgets rather than grows.
const maxRemembered = 256

func newServer(a Adapter, info Info, host func() (executorv1.HostServicesClient, error)) (*server, error) {
	raw, err := canonical.NewRaw(info.Capabilities)
	if err != nil {
		return nil, fmt.Errorf("capability manifest of %s: %w", info.Name, err)
	}
	return &server{
		adapter: a, info: info, capabilities: raw, host: host,
		bundles: map[canonical.Digest]*Bundle{}, fences: map[workorder.AttemptID]uint64{},
	}, nil
}

// accept reads a call, refuses one under a fence that is older than one it has seen, and makes its Host.
func (s *server) accept(m *executorv1.Call) (*link, error) {
	c, err := wire.ToCall(m)
	if err != nil {
		return nil, statusOf(err)
	}
	if c.Operation.Actor() != s.info.Name || c.Operation.Scope() != string(c.Fence.Attempt) {
		return nil, statusOf(reason.New(reason.AdapterProtocol, "the call is for another adapter or attempt", string(c.Operation), "call "+s.info.Name))
	}
	client, err := s.host()
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := s.fences[c.Fence.Attempt]
	if c.Fence.Generation < newest {
		return nil, statusOf(reason.New(reason.KernelStaleFence,
			fmt.Sprintf("the call carries generation %d, the fence is at generation %d", c.Fence.Generation, newest), string(c.Operation),
			"stop: a newer owner has the attempt"))
	}
	if len(s.fences) >= maxRemembered {
		clear(s.fences)
	}
	s.fences[c.Fence.Attempt] = c.Fence.Generation
	return &link{client: client, call: c}, nil
}

// learn puts the bundle of the call into its Host: the one that came along, a remembered one, or the host's.
func (s *server) learn(ctx context.Context, h *link, raw []byte) (err error) {
	s.mu.Lock()
	h.bundle = s.bundles[h.call.Bundle]
	s.mu.Unlock()
	if h.bundle != nil {
		return nil
	}
	if len(raw) > 0 {
		h.bundle, err = ParseBundle(raw, h.call.Bundle)
	} else {
		h.bundle, err = h.readBundle(ctx)
	}
	if err != nil {
		return statusOf(err)
	}
	if h.bundle.Attempt != h.call.Fence.Attempt {
		return statusOf(reason.New(reason.BundleDigestMismatch, "the attempt bundle is for another attempt", string(h.call.Operation), "call with the bundle of the activated attempt"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bundles) >= maxRemembered {
		clear(s.bundles)
	}
	s.bundles[h.call.Bundle] = h.bundle
	return nil
}

// asked accepts a mutating call whose request is of the given kind, and reads its parameters.
func (s *server) asked(ctx context.Context, kind operation.Kind, m *executorv1.Call, request, bundle []byte, parameters any) (*link, error) {
	h, err := s.accept(m)
	if err != nil {
		return nil, err
	}
	r, err := wire.DecodeRequest(request, kind, h.call)
	if err != nil {
		return nil, statusOf(err)
	}
	if parameters != nil {
		if err := canonical.DecodeCanonical(r.Parameters, parameters); err != nil {
			return nil, statusOf(reason.New(reason.AdapterProtocol, "the parameters are not those of "+string(kind), string(h.call.Operation),
				"send the parameters that the protocol describes").Because(err))
		}
	}
	return h, s.learn(ctx, h, bundle)
}

// answer makes the answer of a call from what the adapter returned. A context that ended is a lost answer.
func answer(ctx context.Context, h *link, result any, err error) (*executorv1.Answer, error) {
	claim := wire.Claim{
		Kind: wire.ClaimKind, Operation: h.call.Operation, Digest: h.call.Digest, Knowledge: operation.Applied, Effects: h.made(),
	}
	a := new(executorv1.Answer)
	if err != nil {
		if ctx.Err() != nil || transport(err) {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		r := refusal(err)
		a.Refusal = wire.FromRefusal(r)
		claim.Knowledge, claim.Code = operation.NotApplied, r.Code
	} else if result != nil {
		raw, merr := canonical.Marshal(result)
		if merr != nil {
			return nil, status.Error(codes.Internal, merr.Error())
		}
		a.Result, claim.Result = raw, canonical.Sum(raw)
	}
	raw, merr := canonical.Marshal(claim)
	if merr != nil {
		return nil, status.Error(codes.Internal, merr.Error())
	}
	a.Claim = raw
	return a, nil
}

// transport reports whether an error says that a host service could not be reached: then nothing is known.
func transport(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	if _, ok := reason.As(err); ok {
		return false
	}
	var s interface{ GRPCStatus() *status.Status }
	return errors.As(err, &s)
}

// refusal makes the refusal of an adapter's error.
func refusal(err error) *reason.Refusal {
	if r, ok := reason.As(err); ok && r.Code.Registered() && r.What != "" {
		return r
	}
	return reason.New(reason.AdapterFailed, "the adapter failed: "+err.Error(), "", "see the adapter's log lines")
}

func statusOf(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return wire.StatusOf(refusal(err))
}
