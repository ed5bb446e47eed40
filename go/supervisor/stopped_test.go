package supervisor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/supervisor"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// Who stops a host wants no work to stop: wherever the attempt stands, nothing of it is left, and another one
// follows. What had its result keeps it.
func TestAStoppedHostCancelsNothing(t *testing.T) {
	h := newHost(t)
	for _, at := range []operation.Kind{
		operation.Provision, operation.Materialize, operation.Prepare, operation.Start, operation.Launch, operation.Freeze, operation.Collect, operation.Destroy,
	} {
		t.Run(string(at), func(t *testing.T) {
			r := h.newRig(t, nil)
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			r.attempt.Observe = func(s supervisor.Step) {
				if s.Operation == at && !s.Done {
					stop(supervisor.ErrStopped)
				}
			}
			if _, err := r.attempt.Run(ctx, r.State); err != nil {
				t.Fatal(err)
			}
			s, err := ledger.Load(t.Context(), r.Store, r.Ledger.Kernel(), fixture.Attempt)
			if err != nil {
				t.Fatal(err)
			}
			res, order := s.Result, s.Of(kernel.WorkOrderMachine).State
			switch {
			case res == nil || ctx.Err() == nil:
				t.Fatalf("the attempt came to %+v, and the host was stopped: %v", res, ctx.Err())
			case at == operation.Destroy:
				if res.Conclusion != workorder.Succeeded || order != "applied" {
					t.Errorf("the attempt came to %+v, its order is %s", res, order)
				}
			case res.Conclusion != workorder.Lost || res.Code != reason.AttemptLost || s.Retry == nil || order != "retry_wait" || !strings.Contains(res.Detail, "its host was stopped"):
				t.Errorf("the attempt came to %+v, its order is %s", res, order)
			}
			if env := s.Of(kernel.EnvironmentMachine).State; env != "destroyed" && env != "failed" {
				t.Errorf("the environment is %s", env)
			}
			r.empty()
		})
	}
}
