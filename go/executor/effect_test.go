package executor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// script is an adapter and witness that a test writes.
type script struct {
	executor.Adapter
	// answers are given in turn; the last one stays.
	answers []func() (executor.Answer, error)
	calls   int
	asked   int
	found   executor.Reconciliation
	findErr error
	seen    []executor.Launch
}

func (s *script) next() (executor.Answer, error) {
	f := s.answers[min(s.calls, len(s.answers)-1)]
	s.calls++
	return f()
}

func (s *script) Prepare(context.Context, protocol.Call, protocol.Request) (executor.Answer, error) {
	return s.next()
}

func (s *script) Start(context.Context, protocol.Call, protocol.Request, string) (executor.Answer, error) {
	return s.next()
}

func (s *script) Cancel(context.Context, protocol.Call, protocol.Request, string) (executor.Answer, error) {
	return s.next()
}

func (s *script) Collect(context.Context, protocol.Call, protocol.Request, string) (executor.Answer, error) {
	return s.next()
}

func (s *script) Cleanup(context.Context, protocol.Call, protocol.Request, string) (executor.Answer, error) {
	return s.next()
}

func (s *script) Reconcile(context.Context, protocol.Call, wire.Locator) (executor.Reconciliation, error) {
	s.asked++
	return s.found, s.findErr
}

func (s *script) Launches(operation.Key) []executor.Launch { return s.seen }

// stop is a prober and stopper: alive until stopped, if it can be.
type stop struct {
	alive, stuck bool
	err          error
	collected    string
}

func (s *stop) Gone(context.Context, string) (bool, error) { return !s.alive, s.err }

func (s *stop) Stop(context.Context, string) (bool, error) {
	was := s.alive
	s.alive = s.alive && s.stuck
	return was, s.err
}

func (s *stop) Collect(_ context.Context, path string) (protocol.CollectResult, error) {
	s.collected = path
	return protocol.CollectResult{Manifest: canonical.Sum([]byte("manifest"))}, s.err
}

var key = operation.Key("writ/att_1/a/launch/main")

func answer(result any, effects ...wire.Effect) func() (executor.Answer, error) {
	raw, _ := canonical.Marshal(result)
	return func() (executor.Answer, error) {
		return executor.Answer{Result: raw, Claim: canonical.Raw(`{"claim":1}`), Effects: effects}, nil
	}
}

func refusing(code reason.Code) func() (executor.Answer, error) {
	return func() (executor.Answer, error) {
		return executor.Answer{Claim: canonical.Raw(`{"claim":0}`), Refusal: reason.New(code, "no", "", "")}, nil
	}
}

func doubting() (executor.Answer, error) {
	return executor.Answer{}, &executor.Doubt{Refusal: reason.New(reason.AdapterUnavailable, "it died", "", "")}
}

func unmade() (executor.Answer, error) {
	return executor.Answer{}, reason.New(reason.KernelStaleFence, "stale", "", "")
}

func ask(t *testing.T, kind operation.Kind, class operation.EffectClass, parameters any) (protocol.Call, protocol.Request, operation.Intent) {
	t.Helper()
	r, err := protocol.NewRequest(kind, canonical.Sum([]byte("bundle")), "att_1", "a", "main", parameters)
	if err != nil {
		t.Fatal(err)
	}
	in, err := r.Intent("writ", "", class, "att_1.g1")
	if err != nil {
		t.Fatal(err)
	}
	return protocol.Call{Bundle: r.Bundle, Fence: workorder.Fence{Attempt: "att_1", Generation: 1, Phase: workorder.Live}, Operation: in.Key, Digest: in.Digest}, r, in
}

func TestPrepareEffect(t *testing.T) {
	good := answer(protocol.PrepareResult{Handle: "h"})
	for name, tt := range map[string]struct {
		answers []func() (executor.Answer, error)
		know    operation.Knowledge
		code    reason.Code
		calls   int
	}{
		"answered":            {[]func() (executor.Answer, error){good}, operation.Applied, "", 1},
		"lost, then answered": {[]func() (executor.Answer, error){doubting, good}, operation.Applied, "", 2},
		"lost twice":          {[]func() (executor.Answer, error){doubting}, operation.NotApplied, reason.AdapterUnavailable, 2},
		"never made":          {[]func() (executor.Answer, error){unmade}, operation.NotApplied, reason.KernelStaleFence, 1},
		"refused":             {[]func() (executor.Answer, error){refusing(reason.AdapterUnsupported)}, operation.NotApplied, reason.AdapterUnsupported, 1},
		"no handle":           {[]func() (executor.Answer, error){answer(protocol.PrepareResult{})}, operation.NotApplied, reason.AdapterProtocol, 1},
		"claims a launch":     {[]func() (executor.Answer, error){answer(protocol.PrepareResult{Handle: "h"}, wire.Effect{Key: key})}, operation.NotApplied, reason.AdapterLied, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := &script{answers: tt.answers}
			c, r, in := ask(t, operation.Prepare, operation.ProviderIdempotent, protocol.PrepareParameters{})
			out := executor.PerformUnder(t.Context(), executor.PrepareEffect{Adapter: a, Witness: a, Prober: &stop{}, Request: r}, c, in)
			if out.Knowledge != tt.know || out.Code != tt.code || a.calls != tt.calls {
				t.Errorf("got %+v after %d calls", out, a.calls)
			}
			if tt.know == operation.Applied && out.Claim != canonical.Sum([]byte(`{"claim":1}`)) {
				t.Errorf("the claim is not bound: %s", out.Claim)
			}
		})
	}
}

// The knowledge of a start is the host's: something was launched, or nothing was.
func TestStartEffect(t *testing.T) {
	effect := wire.Effect{Key: key, Digest: canonical.Sum(nil)}
	seen := []executor.Launch{{Key: key, Digest: canonical.Sum(nil)}}
	good := answer(protocol.StartResult{Handle: "h"}, effect)
	goodAnswer, _ := good()
	for name, tt := range map[string]struct {
		answer  func() (executor.Answer, error)
		seen    []executor.Launch
		found   executor.Reconciliation
		findErr error
		know    operation.Knowledge
		code    reason.Code
		asked   int
	}{
		"launched":                 {answer: good, seen: seen, know: operation.Applied},
		"refused":                  {answer: refusing(reason.AdapterUnsupported), know: operation.NotApplied, code: reason.AdapterUnsupported},
		"claims without a launch":  {answer: answer(protocol.StartResult{Handle: "h"}), know: operation.NotApplied, code: reason.AdapterLied},
		"claims another launch":    {answer: good, know: operation.NotApplied, code: reason.AdapterLied},
		"hides a launch":           {answer: answer(protocol.StartResult{Handle: "h"}), seen: seen, know: operation.Applied, code: reason.AdapterLied},
		"denies its launch":        {answer: refusing(reason.AdapterUnsupported), seen: seen, know: operation.Applied, code: reason.AdapterLied},
		"refuses after its launch": {answer: unmade, seen: seen, know: operation.Applied, code: reason.AdapterLied},
		"another handle":           {answer: answer(protocol.StartResult{Handle: "x"}, effect), seen: seen, know: operation.Applied, code: reason.AdapterLied},
		"lost before its launch":   {answer: doubting, know: operation.NotApplied, code: reason.AdapterUnavailable},
		"lost, and found": {answer: doubting, seen: seen, know: operation.Applied, asked: 1,
			found: executor.Reconciliation{Knowledge: operation.Applied, Answer: goodAnswer}},
		"lost, and denied": {answer: doubting, seen: seen, know: operation.Applied, code: reason.AdapterLied, asked: 1,
			found: executor.Reconciliation{Knowledge: operation.NotApplied}},
		"lost, and unsure": {answer: doubting, seen: seen, know: operation.Unknown, code: reason.OperationUnknownOutcome, asked: 1,
			found: executor.Reconciliation{Knowledge: operation.Unknown}},
		"lost for good": {answer: doubting, seen: seen, know: operation.Unknown, code: reason.AdapterUnavailable, asked: 1, findErr: errors.New("x")},
	} {
		t.Run(name, func(t *testing.T) {
			a := &script{answers: []func() (executor.Answer, error){tt.answer}, seen: tt.seen, found: tt.found, findErr: tt.findErr}
			c, r, in := ask(t, operation.Start, operation.Reconcilable, protocol.StartParameters{})
			out := executor.PerformUnder(t.Context(), executor.StartEffect{Adapter: a, Witness: a, Prober: &stop{}, Request: r, Handle: "h"}, c, in)
			if out.Knowledge != tt.know || out.Code != tt.code || a.calls != 1 || a.asked != tt.asked {
				t.Errorf("got %+v after %d calls and %d questions", out, a.calls, a.asked)
			}
		})
	}
}

func TestCollectEffect(t *testing.T) {
	for name, tt := range map[string]struct {
		said string
		err  error
		know operation.Knowledge
		code reason.Code
	}{
		"declared":        {"report.json", nil, operation.Applied, ""},
		"another path":    {"../../etc/passwd", nil, operation.NotApplied, reason.AdapterLied},
		"invalid outputs": {"report.json", reason.New(reason.FreezeMissing, "missing", "", ""), operation.NotApplied, reason.FreezeMissing},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := &script{answers: []func() (executor.Answer, error){answer(executor.Collected{Result: tt.said})}}, &stop{err: tt.err}
			c, r, in := ask(t, operation.Collect, operation.ProviderIdempotent, protocol.CollectParameters{Result: "report.json"})
			out := executor.PerformUnder(t.Context(), executor.CollectEffect{Adapter: a, Witness: a, Collector: s, Request: r}, c, in)
			if out.Knowledge != tt.know || out.Code != tt.code || (tt.code == reason.AdapterLied && s.collected != "") {
				t.Errorf("got %+v, collected %q", out, s.collected)
			}
		})
	}
}

// No adapter can hold up a cancellation or a cleanup: what counts is what the host finds.
func TestCancelAndCleanupEffects(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func() (executor.Answer, error)
		stop   stop
		know   operation.Knowledge
		code   reason.Code
	}{
		"alive, stopped":        {answer(struct{}{}), stop{alive: true}, operation.Applied, ""},
		"gone already":          {answer(struct{}{}), stop{}, operation.Applied, ""},
		"adapter silent":        {doubting, stop{alive: true}, operation.Applied, ""},
		"adapter refuses":       {refusing(reason.AdapterFailed), stop{alive: true}, operation.Applied, ""},
		"adapter lies":          {answer(struct{}{}, wire.Effect{Key: key}), stop{alive: true}, operation.Applied, reason.AdapterLied},
		"cannot be killed":      {answer(struct{}{}), stop{alive: true, stuck: true}, operation.NotApplied, reason.EnvironmentStillAlive},
		"cannot be looked into": {answer(struct{}{}), stop{err: errors.New("x")}, operation.Unknown, reason.OperationUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := &script{answers: []func() (executor.Answer, error){tt.answer}}, tt.stop
			c, r, in := ask(t, operation.Cancel, operation.ProviderIdempotent, protocol.CancelParameters{})
			out := executor.PerformUnder(t.Context(), executor.CancelEffect{Adapter: a, Witness: a, Stopper: &s, Request: r, Handle: "h", Patience: time.Second}, c, in)
			if out.Knowledge != tt.know || out.Code != tt.code {
				t.Errorf("cancel: %+v", out)
			}
			c, r, in = ask(t, operation.Cleanup, operation.ProviderIdempotent, protocol.RetentionParameters{})
			out = executor.PerformUnder(t.Context(), executor.CleanupEffect{Adapter: a, Witness: a, Prober: &s, Request: r, Handle: "h"}, c, in)
			if out.Knowledge != tt.know || out.Code != tt.code {
				t.Errorf("cleanup: %+v", out)
			}
		})
	}
}

// After a crash of the host nothing is performed; the name is asked for.
func TestResolve(t *testing.T) {
	_, _, in := ask(t, operation.Start, operation.Reconcilable, protocol.StartParameters{})
	for name, tt := range map[string]struct {
		stop          stop
		start, cancel operation.Knowledge
	}{
		"gone":    {stop{}, operation.NotApplied, operation.Applied},
		"alive":   {stop{alive: true}, operation.Unknown, operation.NotApplied},
		"unknown": {stop{err: errors.New("x")}, operation.Unknown, operation.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := tt.stop
			for _, e := range []interface {
				Resolve(context.Context, operation.Intent) operation.Outcome
			}{executor.PrepareEffect{Prober: &s}, executor.StartEffect{Prober: &s}} {
				if out := e.Resolve(t.Context(), in); out.Knowledge != tt.start {
					t.Errorf("%T: %+v", e, out)
				}
			}
			for _, e := range []interface {
				Resolve(context.Context, operation.Intent) operation.Outcome
			}{executor.CancelEffect{Stopper: &s}, executor.CleanupEffect{Prober: &s}} {
				if out := e.Resolve(t.Context(), in); out.Knowledge != tt.cancel {
					t.Errorf("%T: %+v", e, out)
				}
			}
			if s.alive != tt.stop.alive {
				t.Error("resolving changed something")
			}
		})
	}
}

// A request that is not the intended one never reaches an adapter.
func TestOtherRequestIsACollision(t *testing.T) {
	a := &script{answers: []func() (executor.Answer, error){doubting}}
	c, r, in := ask(t, operation.Start, operation.Reconcilable, protocol.StartParameters{})
	r.Purpose = "another"
	out := executor.PerformUnder(t.Context(), executor.StartEffect{Adapter: a, Witness: a, Prober: &stop{}, Request: r}, c, in)
	if out.Knowledge != operation.NotApplied || out.Code != reason.OperationCollision || a.calls != 0 {
		t.Errorf("got %+v after %d calls", out, a.calls)
	}
}
