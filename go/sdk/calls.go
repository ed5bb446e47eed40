package sdk

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	executorv1 "github.com/writ-runtime/writ/go/api/executor/v1"
	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
)

func (s *server) Capabilities(context.Context, *executorv1.CapabilitiesRequest) (*executorv1.CapabilitiesResponse, error) {
	return &executorv1.CapabilitiesResponse{Capabilities: s.capabilities}, nil
}

func (s *server) Prepare(ctx context.Context, m *executorv1.PrepareRequest) (*executorv1.PrepareResponse, error) {
	var p protocol.PrepareParameters
	h, err := s.asked(ctx, operation.Prepare, m.GetCall(), m.GetRequest(), m.GetBundle(), &p)
	if err != nil {
		return nil, err
	}
	out, err := s.adapter.Prepare(ctx, h, Prepare{Call: h.call, Bundle: h.bundle, Parameters: p})
	a, err := answer(ctx, h, protocol.PrepareResult{Handle: out.Handle}, err)
	return &executorv1.PrepareResponse{Answer: a}, err
}

func (s *server) Start(ctx context.Context, m *executorv1.StartRequest) (*executorv1.StartResponse, error) {
	var p protocol.StartParameters
	h, err := s.asked(ctx, operation.Start, m.GetCall(), m.GetRequest(), nil, &p)
	if err != nil {
		return nil, err
	}
	_, err = s.adapter.Start(ctx, h, Start{Call: h.call, Bundle: h.bundle, Parameters: p, Handle: m.GetHandle()})
	a, err := answer(ctx, h, protocol.StartResult{Handle: m.GetHandle()}, err)
	return &executorv1.StartResponse{Answer: a}, err
}

func (s *server) Poll(ctx context.Context, m *executorv1.PollRequest) (*executorv1.PollResponse, error) {
	h, err := s.accept(m.GetCall())
	if err != nil {
		return nil, err
	}
	if err := s.learn(ctx, h, nil); err != nil {
		return nil, err
	}
	wait := min(time.Duration(max(m.GetWaitMs(), 0))*time.Millisecond, wire.MaxWait)
	found, err := s.adapter.Poll(ctx, h, Poll{Call: h.call, Bundle: h.bundle, Handle: m.GetHandle(), Wait: wait})
	if err == nil && !found.Completed {
		return &executorv1.PollResponse{Phase: executorv1.PollResponse_PHASE_RUNNING}, nil
	}
	report := protocol.CompletionReport{Handle: m.GetHandle(), Launches: []operation.Key{}, Ended: []protocol.LaunchResult{}}
	for _, l := range found.Launches {
		ended, rerr := l.Result()
		if rerr != nil && err == nil {
			err = rerr
		}
		report.Launches, report.Ended = append(report.Launches, l.Key), append(report.Ended, ended)
	}
	if err != nil {
		if ctx.Err() != nil || transport(err) {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		return &executorv1.PollResponse{Refusal: wire.FromRefusal(refusal(err))}, nil
	}
	raw, err := canonical.Marshal(report)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &executorv1.PollResponse{Phase: executorv1.PollResponse_PHASE_COMPLETED, Report: raw}, nil
}

func (s *server) Checkpoint(ctx context.Context, m *executorv1.CheckpointRequest) (*executorv1.CheckpointResponse, error) {
	var p protocol.CheckpointParameters
	h, err := s.asked(ctx, operation.Checkpoint, m.GetCall(), m.GetRequest(), nil, &p)
	if err != nil {
		return nil, err
	}
	out, err := s.adapter.Checkpoint(ctx, h, Checkpoint{Call: h.call, Bundle: h.bundle, Parameters: p, Handle: m.GetHandle()})
	a, err := answer(ctx, h, h.envelope(out), err)
	return &executorv1.CheckpointResponse{Answer: a}, err
}

func (s *server) Cancel(ctx context.Context, m *executorv1.CancelRequest) (*executorv1.CancelResponse, error) {
	var p protocol.CancelParameters
	h, err := s.asked(ctx, operation.Cancel, m.GetCall(), m.GetRequest(), nil, &p)
	if err != nil {
		return nil, err
	}
	err = s.adapter.Cancel(ctx, h, Cancel{Call: h.call, Bundle: h.bundle, Parameters: p, Handle: m.GetHandle()})
	a, err := answer(ctx, h, nil, err)
	return &executorv1.CancelResponse{Answer: a}, err
}

func (s *server) Collect(ctx context.Context, m *executorv1.CollectRequest) (*executorv1.CollectResponse, error) {
	var p protocol.CollectParameters
	h, err := s.asked(ctx, operation.Collect, m.GetCall(), m.GetRequest(), nil, &p)
	if err != nil {
		return nil, err
	}
	out, err := s.adapter.Collect(ctx, h, Collect{Call: h.call, Bundle: h.bundle, Parameters: p, Handle: m.GetHandle()})
	a, err := answer(ctx, h, struct {
		Result string `json:"result"`
	}{out.Result}, err)
	return &executorv1.CollectResponse{Answer: a}, err
}

func (s *server) Reconcile(ctx context.Context, m *executorv1.ReconcileRequest) (*executorv1.ReconcileResponse, error) {
	h, err := s.accept(m.GetCall())
	if err != nil {
		return nil, err
	}
	var l wire.Locator
	if err := canonical.DecodeCanonical(m.GetLocator(), &l); err != nil || l.Bundle != h.call.Bundle || l.Attempt != h.call.Fence.Attempt {
		return nil, statusOf(badLocator(h.call, err))
	}
	if err := s.learn(ctx, h, nil); err != nil {
		return nil, err
	}
	h.asking = true
	found, err := s.adapter.Reconcile(ctx, h, Reconcile{Call: h.call, Bundle: h.bundle, Resource: l.Resource, Handle: l.Handle})
	if err != nil {
		return nil, statusOf(err)
	}
	switch found.Knowledge {
	case operation.Applied:
		a, err := answer(ctx, h, s.lost(h.call.Operation.Kind(), l.Handle), nil)
		return &executorv1.ReconcileResponse{Knowledge: executorv1.ReconcileResponse_KNOWLEDGE_APPLIED, Answer: a}, err
	case operation.NotApplied:
		a, err := answer(ctx, h, nil, absent(h.call))
		return &executorv1.ReconcileResponse{Knowledge: executorv1.ReconcileResponse_KNOWLEDGE_NOT_APPLIED, Answer: a}, err
	}
	return &executorv1.ReconcileResponse{Knowledge: executorv1.ReconcileResponse_KNOWLEDGE_UNKNOWN}, nil
}

func (s *server) Cleanup(ctx context.Context, m *executorv1.CleanupRequest) (*executorv1.CleanupResponse, error) {
	var p protocol.RetentionParameters
	h, err := s.asked(ctx, operation.Cleanup, m.GetCall(), m.GetRequest(), nil, &p)
	if err != nil {
		return nil, err
	}
	err = s.adapter.Cleanup(ctx, h, Cleanup{Call: h.call, Bundle: h.bundle, Parameters: p, Handle: m.GetHandle()})
	a, err := answer(ctx, h, nil, err)
	return &executorv1.CleanupResponse{Answer: a}, err
}
