package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// A cancellation that is not proven at the bundle's deadline is unknown, and what is left
// is found out by name: nobody waits for ever, and nobody assumes that it worked.
func TestACancellationThatCannotBeProven(t *testing.T) {
	r := newHost(t).newRig(t, func(b *attemptbundle.Bundle) { b.CancellationDeadlineMillis = 100 })
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	r.polled = func(func() (executor.Status, error)) (executor.Status, error) {
		cancel(errors.New("test"))
		<-ctx.Done()
		return executor.Status{}, ctx.Err()
	}
	stopped := 0
	r.stop = func(ctx context.Context) error {
		stopped++
		<-ctx.Done()
		return ctx.Err()
	}
	if _, err := r.attempt.Run(ctx, r.State); err != nil {
		t.Fatal(err)
	}
	s, err := ledger.Load(t.Context(), r.Store, r.Ledger.Kernel(), fixture.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	if out := ended(t, s, operation.Cancel, "main"); out.Knowledge != operation.Applied || stopped != 1 {
		t.Errorf("the cancellation was tried %d times and came to %+v", stopped, out)
	}
	if s.Result == nil || s.Result.Conclusion != workorder.Cancelled || s.Of(kernel.WorkOrderMachine).State != "cancelled" {
		t.Errorf("the attempt came to %+v, its order is %s", s.Result, s.Of(kernel.WorkOrderMachine).State)
	}
	// That it was applied was asked by name, after it had been unknown.
	var families []lifecycle.Family
	for _, o := range s.Operations() {
		if o.Intent.Kind != operation.Cancel {
			continue
		}
		events, err := r.Store.Events(t.Context(), lifecycle.Of(kernel.OperationMachine, string(o.Intent.Key)))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			families = append(families, e.Family)
		}
	}
	if want := []lifecycle.Family{"operation.intended", "operation.unknown", "operation.resolved_applied"}; !slices.Equal(families, want) {
		t.Errorf("the cancellation went %v, want %v", families, want)
	}
}
