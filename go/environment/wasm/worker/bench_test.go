package worker_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment/wasm/worker"
)

// BenchmarkFreshWorker does a whole job with the empty tool: a fresh worker from sealed bytes, its report, one input,
// one run, one output, the end of the worker and of its directory. Compiled code is shared, as in the product.
func BenchmarkFreshWorker(b *testing.B) {
	sealed := pinned(b, shared.workerPath(b))
	module := shared.empty(b)
	digest := canonical.Sum(module)
	dir := b.TempDir()
	input := make([]byte, 64<<10)
	ctx := context.Background()
	job := func(name string) {
		w, err := worker.Start(ctx, worker.StartRequest{Binary: sealed, Starter: shared.starter, Dir: dir, Name: name, Limits: limits(), Order: ordered()})
		must(b, err)
		_, err = w.Provision(ctx, module, worker.Provision{Digest: digest, CacheDir: shared.cache})
		must(b, err)
		must(b, w.Materialize(ctx, []worker.File{{Mount: "in", Path: "a", Digest: canonical.Sum(input), Bytes: input}}))
		exit, err := w.Run(ctx, worker.RunRequest{Args: []string{"empty"}, Seed: "s", WallMillis: 30_000})
		must(b, err)
		must(b, exit.Err("empty"))
		_, err = w.List(ctx)
		must(b, err)
		_, err = io.ReadAll(w.Open(ctx, "ok"))
		must(b, err)
		must(b, w.Close(ctx))
	}
	job("warm") // fills the cache of compiled code
	before := processorTime(b)
	b.ResetTimer()
	for i := range b.N {
		job(fmt.Sprintf("job-%d", i))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	// On a shared machine this says more than the rate.
	b.ReportMetric(float64((processorTime(b)-before).Milliseconds())/float64(b.N), "cpu-ms/job")
}

// processorTime returns what this process and its ended children have used.
func processorTime(b *testing.B) time.Duration {
	var total time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var r unix.Rusage
		must(b, unix.Getrusage(who, &r))
		total += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return total
}

// BenchmarkStartOnly starts a worker and ends it.
func BenchmarkStartOnly(b *testing.B) {
	sealed := pinned(b, shared.workerPath(b))
	dir := b.TempDir()
	for i := range b.N {
		w, err := worker.Start(context.Background(), worker.StartRequest{Binary: sealed, Starter: shared.starter, Dir: dir, Name: fmt.Sprintf("s-%d", i), Limits: limits(), Order: ordered()})
		must(b, err)
		must(b, w.Close(context.Background()))
	}
}
