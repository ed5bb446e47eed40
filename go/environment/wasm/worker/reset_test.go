package worker_test

import (
	"context"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment/wasm/worker"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/reason"
)

// littered is a worker in which a guest has left as much as it could.
func littered(t *testing.T, resets bool) (*worker.Worker, worker.Expected) {
	t.Helper()
	ctx := context.Background()
	module := shared.badtools(t)
	w := begin(t, limits())
	_, err := w.Provision(ctx, module, worker.Provision{Digest: canonical.Sum(module), CacheDir: shared.cache, Resets: resets})
	must(t, err)
	must(t, w.Materialize(ctx, []worker.File{{Mount: "in", Path: "a/b", Digest: canonical.Sum([]byte("secret")), Bytes: []byte("secret")}}))
	exit, err := w.Run(ctx, worker.RunRequest{Args: []string{"badtools", "litter"}, Seed: "s", WallMillis: 60_000, MaxOffer: 1000, Offered: func([]byte) {}})
	must(t, err)
	must(t, exit.Err("badtools"))
	entries, err := w.List(ctx)
	must(t, err)
	if len(entries) != 6 {
		t.Fatalf("the guest left %+v", entries)
	}
	return w, worker.Expected{
		Name: w.Name(), Generation: w.Order().Generation, WorkerDigest: canonical.Sum(read(t, shared.workerPath(t))), ModuleDigest: canonical.Sum(module), Limits: limits(),
	}
}

// Reset, a worker has nothing left and measures what a fresh one measures, and it serves
// nothing more (E9).
func TestResetLeavesNothing(t *testing.T) {
	ctx := context.Background()
	w, x := littered(t, true)
	report, left, err := w.Reset(ctx)
	must(t, err)
	if left != (worker.Left{}) {
		t.Errorf("left %+v", left)
	}
	table, err := worker.Facts()
	must(t, err)
	e, err := worker.Expectation(x)
	must(t, err)
	for _, d := range table.Compare(e, report) {
		t.Errorf("%+v", d)
	}
	// It is measured anew and not repeated: entries that are left are a mismatch.
	counted := map[string]bool{}
	for _, f := range report.Facts {
		counted[f.Name] = true
	}
	if !counted[wire.FactInputs] || !counted[wire.FactWorkspace] {
		t.Errorf("the report counts nothing: %+v", report.Facts)
	}
	if _, err := w.List(ctx); !reason.Is(err, reason.EnvironmentProtocol) {
		t.Errorf("list after a reset: %v", err)
	}
	if _, _, err := w.Reset(ctx); !reason.Is(err, reason.EnvironmentProtocol) {
		t.Errorf("reset after a reset: %v", err)
	}
	// Neither is it filled, nor does it run again.
	if err := w.Materialize(ctx, []worker.File{{Mount: "in", Path: "c", Digest: canonical.Sum(nil)}}); err == nil {
		t.Error("a worker that was reset takes inputs")
	}
}

// A worker that was not provisioned for it is not reset, nor is one whose guest has not run.
func TestWhoIsReset(t *testing.T) {
	ctx := context.Background()
	w, _ := littered(t, false)
	if _, _, err := w.Reset(ctx); !reason.Is(err, reason.EnvironmentProtocol) || !strings.Contains(err.Error(), "not ready for reset") {
		t.Errorf("not provisioned for it: %v", err)
	}
	module := shared.badtools(t)
	w = begin(t, limits())
	_, err := w.Provision(ctx, module, worker.Provision{Digest: canonical.Sum(module), CacheDir: shared.cache, Resets: true})
	must(t, err)
	if _, _, err := w.Reset(ctx); !reason.Is(err, reason.EnvironmentProtocol) {
		t.Errorf("before its guest ran: %v", err)
	}
}
