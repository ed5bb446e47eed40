package adapterhost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	executorv1 "github.com/writ-runtime/writ/go/api/executor/v1"
	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// Prepare hands over the attempt bundle.
func (s *Session) Prepare(ctx context.Context, c protocol.Call, r protocol.Request) (executor.Answer, error) {
	bundle := s.bundle.Bytes()
	if len(bundle) > wire.MaxInline {
		bundle = nil
	}
	return s.mutate(ctx, c, r, func(ctx context.Context, x executorv1.ExecutorClient, request []byte) (answered, error) {
		return x.Prepare(ctx, &executorv1.PrepareRequest{Call: wire.FromCall(c), Request: request, Bundle: bundle})
	})
}

// Start has the adapter launch its workload through the host.
func (s *Session) Start(ctx context.Context, c protocol.Call, r protocol.Request, handle string) (executor.Answer, error) {
	s.permit(c.Operation)
	return s.mutate(ctx, c, r, func(ctx context.Context, x executorv1.ExecutorClient, request []byte) (answered, error) {
		return x.Start(ctx, &executorv1.StartRequest{Call: wire.FromCall(c), Request: request, Handle: handle})
	})
}

// Checkpoint asks for a checkpoint of the running workload.
func (s *Session) Checkpoint(ctx context.Context, c protocol.Call, r protocol.Request, handle string) (executor.Answer, error) {
	return s.mutate(ctx, c, r, func(ctx context.Context, x executorv1.ExecutorClient, request []byte) (answered, error) {
		return x.Checkpoint(ctx, &executorv1.CheckpointRequest{Call: wire.FromCall(c), Request: request, Handle: handle})
	})
}

// Cancel tells the adapter that its workload is about to be stopped.
func (s *Session) Cancel(ctx context.Context, c protocol.Call, r protocol.Request, handle string) (executor.Answer, error) {
	return s.mutate(ctx, c, r, func(ctx context.Context, x executorv1.ExecutorClient, request []byte) (answered, error) {
		return x.Cancel(ctx, &executorv1.CancelRequest{Call: wire.FromCall(c), Request: request, Handle: handle})
	})
}

// Collect asks which declared path holds the structured result.
func (s *Session) Collect(ctx context.Context, c protocol.Call, r protocol.Request, handle string) (executor.Answer, error) {
	return s.mutate(ctx, c, r, func(ctx context.Context, x executorv1.ExecutorClient, request []byte) (answered, error) {
		return x.Collect(ctx, &executorv1.CollectRequest{Call: wire.FromCall(c), Request: request, Handle: handle})
	})
}

// Cleanup ends the adapter's part in the execution.
func (s *Session) Cleanup(ctx context.Context, c protocol.Call, r protocol.Request, handle string) (executor.Answer, error) {
	return s.mutate(ctx, c, r, func(ctx context.Context, x executorv1.ExecutorClient, request []byte) (answered, error) {
		return x.Cleanup(ctx, &executorv1.CleanupRequest{Call: wire.FromCall(c), Request: request, Handle: handle})
	})
}

// Poll asks after the workload. Asking has no effect, so a lost answer is asked for once more.
func (s *Session) Poll(ctx context.Context, c protocol.Call, handle string, wait time.Duration) (executor.Status, error) {
	wait = min(max(wait, 0), wire.MaxWait)
	var m *executorv1.PollResponse
	err := s.ask(ctx, c, wait, func(ctx context.Context, x executorv1.ExecutorClient) (err error) {
		m, err = x.Poll(ctx, &executorv1.PollRequest{Call: wire.FromCall(c), Handle: handle, WaitMs: wait.Milliseconds()})
		return err
	})
	if err != nil {
		return executor.Status{}, err
	}
	switch {
	case m.GetRefusal() != nil:
		r, ok := wire.ToRefusal(m.GetRefusal())
		if !ok {
			return executor.Status{}, s.broke(r)
		}
		return executor.Status{Refusal: r}, nil
	case m.GetPhase() == executorv1.PollResponse_PHASE_RUNNING:
		return executor.Status{}, nil
	case m.GetPhase() != executorv1.PollResponse_PHASE_COMPLETED || len(m.GetReport()) > wire.MaxBody:
		return executor.Status{}, s.broke(reason.New(reason.AdapterProtocol, "the poll's answer holds no phase", string(c.Operation), "report it to the adapter's vendor"))
	}
	out := executor.Status{Completed: true}
	if err := canonical.DecodeCanonical(m.GetReport(), &out.Report); err != nil {
		return executor.Status{}, s.broke(reason.New(reason.AdapterProtocol, "the completion report is not canonical JSON of its kind", string(c.Operation),
			"report it to the adapter's vendor").Because(err))
	}
	seen, err := s.settled(ctx, c)
	if err != nil {
		return executor.Status{}, err
	}
	if err := executor.CheckCompletion(c.Operation, handle, out.Report, seen); err != nil {
		return executor.Status{}, s.broke(err)
	}
	return out, nil
}

// settled returns the launches of a start with what the host itself knows of them now.
func (s *Session) settled(ctx context.Context, start protocol.Call) ([]executor.Launch, error) {
	for _, l := range s.Launches(start.Operation) {
		if l.Record != nil {
			continue
		}
		c := protocol.Call{Bundle: start.Bundle, Fence: start.Fence, Operation: l.Key, Digest: l.Digest}
		record, err := s.services.Observe(ctx, c, 0)
		if err != nil {
			return nil, fmt.Errorf("observe %s: %w", l.Key, err)
		}
		s.saw("", c, record)
	}
	return s.Launches(start.Operation), nil
}

// Reconcile asks what became of the operation of a call.
func (s *Session) Reconcile(ctx context.Context, c protocol.Call, l wire.Locator) (executor.Reconciliation, error) {
	locator, err := canonical.Marshal(l)
	if err != nil {
		return executor.Reconciliation{}, fmt.Errorf("locator of %s: %w", c.Operation, err)
	}
	var m *executorv1.ReconcileResponse
	err = s.ask(ctx, c, 0, func(ctx context.Context, x executorv1.ExecutorClient) (err error) {
		m, err = x.Reconcile(ctx, &executorv1.ReconcileRequest{Call: wire.FromCall(c), Locator: locator})
		return err
	})
	if err != nil {
		return executor.Reconciliation{}, err
	}
	out := executor.Reconciliation{Knowledge: operation.Unknown}
	switch m.GetKnowledge() {
	case executorv1.ReconcileResponse_KNOWLEDGE_UNKNOWN:
		return out, nil
	case executorv1.ReconcileResponse_KNOWLEDGE_APPLIED:
		out.Knowledge = operation.Applied
	case executorv1.ReconcileResponse_KNOWLEDGE_NOT_APPLIED:
		out.Knowledge = operation.NotApplied
	}
	if out.Answer, err = decode(c, m.GetAnswer()); err == nil && (out.Answer.Refusal == nil) != (out.Knowledge == operation.Applied) {
		err = reason.New(reason.AdapterProtocol, "the reconciliation contradicts the answer that it holds", string(c.Operation), "report it to the adapter's vendor")
	}
	if err != nil {
		return executor.Reconciliation{}, s.broke(err)
	}
	return out, nil
}

// answered is what the response of a mutating call holds.
type answered interface{ GetAnswer() *executorv1.Answer }

// mutate makes one mutating call. Where no usable answer comes, the process that got the call is dead when it
// returns.
func (s *Session) mutate(ctx context.Context, c protocol.Call, r protocol.Request,
	call func(context.Context, executorv1.ExecutorClient, []byte) (answered, error),
) (executor.Answer, error) {
	request, err := canonical.Marshal(r)
	if err != nil {
		return executor.Answer{}, fmt.Errorf("request of %s: %w", c.Operation, err)
	}
	// What is sent is checked as what is received: a call that the adapter would have to refuse is not made.
	if _, err := wire.DecodeRequest(request, r.Operation, c); err != nil {
		return executor.Answer{}, err
	}
	if err := s.expect(c); err != nil {
		return executor.Answer{}, err
	}
	p, err := s.host.process(ctx)
	if err != nil {
		return executor.Answer{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, s.host.config.Timeouts.Call)
	defer cancel()
	m, err := call(bounded, p.calls, request)
	if err != nil {
		return executor.Answer{}, s.failed(p, c, err)
	}
	a, err := decode(c, m.GetAnswer())
	if err == nil {
		err = s.remember(c, a)
	}
	if err != nil {
		s.host.condemn(p)
		return executor.Answer{}, doubt(err)
	}
	s.host.answered()
	return a, nil
}

// ask makes a call that has no effect, and makes it once more where the answer was lost.
func (s *Session) ask(ctx context.Context, c protocol.Call, wait time.Duration, call func(context.Context, executorv1.ExecutorClient) error) error {
	if err := s.expect(c); err != nil {
		return err
	}
	for try := 1; ; try++ {
		p, err := s.host.process(ctx)
		if err != nil {
			return err
		}
		bounded, cancel := context.WithTimeout(ctx, s.host.config.Timeouts.Call+wait)
		err = call(bounded, p.calls)
		cancel()
		switch {
		case err == nil:
			s.host.answered()
			return nil
		case ctx.Err() != nil:
			// The caller gave up; nothing is wrong with the adapter.
			return doubt(unavailable(s.host.config.Name, "the wait for its answer was ended", ctx.Err()))
		}
		if err = s.failed(p, c, err); try == 2 || !errors.As(err, new(*executor.Doubt)) {
			return err
		}
	}
}

// failed makes the error of a call. A refusal in the status is the adapter's own and leaves it alive; anything else
// is doubt, and the process is killed so that nothing can come of the call any more.
func (s *Session) failed(p *process, c protocol.Call, err error) error {
	if r, ok := wire.RefusalOf(err); ok {
		s.host.answered()
		return r
	}
	dead := !p.alive()
	s.host.condemn(p)
	name := s.host.config.Name
	switch code := status.Code(err); {
	case !dead && (code == codes.DeadlineExceeded || code == codes.Canceled):
		return doubt(unavailable(name, fmt.Sprintf("it did not answer %s in time and was ended", c.Operation.Kind()), err))
	case dead || code == codes.Unavailable:
		return doubt(unavailable(name, fmt.Sprintf("it died before it answered %s%s", c.Operation.Kind(), p.words()), err))
	}
	return doubt(reason.New(reason.AdapterProtocol, fmt.Sprintf("the adapter's answer to %s cannot be read", c.Operation.Kind()),
		name, "report it to the adapter's vendor").Because(err))
}

// broke ends the process of an adapter that broke the protocol or lied, and makes the error.
func (s *Session) broke(err error) error {
	s.host.mu.Lock()
	p := s.host.current
	s.host.mu.Unlock()
	if p != nil {
		s.host.condemn(p)
	}
	return doubt(err)
}

func doubt(err error) error {
	if r, ok := reason.As(err); ok {
		return &executor.Doubt{Refusal: r}
	}
	return &executor.Doubt{Refusal: reason.New(reason.InternalBug, err.Error(), "", "report it")}
}

// decode reads an answer and holds it against its call.
func decode(c protocol.Call, m *executorv1.Answer) (executor.Answer, error) {
	bad := func(what string) (executor.Answer, error) {
		return executor.Answer{}, reason.New(reason.AdapterProtocol, "the adapter's answer "+what, string(c.Operation), "report it to the adapter's vendor")
	}
	if m == nil {
		return bad("is missing")
	}
	if len(m.GetResult()) > wire.MaxBody {
		return bad(fmt.Sprintf("holds a result of more than %d bytes", wire.MaxBody))
	}
	a := executor.Answer{Result: m.GetResult(), Claim: m.GetClaim()}
	if m.GetRefusal() != nil {
		r, ok := wire.ToRefusal(m.GetRefusal())
		if !ok {
			return executor.Answer{}, r
		}
		if len(a.Result) > 0 {
			return bad("holds both a result and a refusal")
		}
		a.Refusal = r
	}
	claim, err := wire.DecodeClaim(a.Claim, c, a.Result, a.Refusal)
	if err != nil {
		return executor.Answer{}, err
	}
	a.Effects = claim.Effects
	return a, nil
}
