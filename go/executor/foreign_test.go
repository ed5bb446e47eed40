package executor_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// An effect whose request is of another bundle or attempt than its permit's call asks the adapter for nothing, and
// neither does one with no permit (B13, B14).
func TestAnotherCallsPermitAsksNothing(t *testing.T) {
	c, r, in := ask(t, operation.Prepare, operation.ProviderIdempotent, protocol.PrepareParameters{})
	for name, change := range map[string]func(*protocol.Request){
		"another bundle":  func(r *protocol.Request) { r.Bundle = c.Digest },
		"no bundle":       func(r *protocol.Request) { r.Bundle = "" },
		"another attempt": func(r *protocol.Request) { r.Attempt = "att_2" },
		"no attempt":      func(r *protocol.Request) { r.Attempt = "" },
	} {
		other, a := r, &script{answers: []func() (executor.Answer, error){answer(protocol.PrepareResult{Handle: "h"})}}
		change(&other)
		e := executor.PrepareEffect{Adapter: a, Witness: a, Prober: &stop{}, Request: other}
		if out := executor.PerformUnder(t.Context(), e, c, in); out.Knowledge != operation.NotApplied || out.Code != reason.OperationCollision || a.calls != 0 {
			t.Errorf("%s: got %+v after %d calls", name, out, a.calls)
		}
		e.Request = r
		if out := e.Perform(t.Context(), ledger.Permit{}); out.Knowledge != operation.NotApplied || a.calls != 0 {
			t.Errorf("no permit: got %+v after %d calls", out, a.calls)
		}
	}
}
