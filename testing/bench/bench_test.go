// Package bench_test measures. It prints numbers and asserts none: what a machine does in
// a second depends on what else it does.
//
//	go test -run '^$' -bench . -benchtime 10x ./testing/bench     seconds: does it still run?
//	go test -run '^$' -bench . -benchtime 300x ./testing/bench    minutes: numbers worth comparing
package bench_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/testing/testdist"
	"github.com/writ-runtime/writ/testing/way"
)

// programs builds what the benchmarks start, each once; steps is printed at the end, so
// that the table does not stand within the lines that benchmarks are compared by.
var (
	programs *built.Builder
	steps    table
)

// TestMain begins as a host does.
func TestMain(m *testing.M) {
	if err := confine.CloseInherited(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := built.Run(m, func(b *built.Builder) { programs = b })
	steps.write(os.Stdout)
	os.Exit(code)
}

// BenchmarkAttempt is the whole way of an attempt with a tool that does nearly nothing,
// one at a time and four at once. p99-ms of fewer than a hundred attempts is the slowest.
func BenchmarkAttempt(b *testing.B) {
	dist := testdist.Make(b, programs, built.Root(b), b.TempDir())
	for _, atOnce := range []int{1, 4} {
		w, err := way.Open(b.Context(), dist, b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		// The first one compiles the tool into the cache, which is another measure.
		carry(b, w, 1, 1)
		name := fmt.Sprintf("at-once=%d", atOnce)
		b.Run(name, func(b *testing.B) {
			begun, before := time.Now(), processorTime(b)
			accounts := carry(b, w, b.N, atOnce)
			took, used := time.Since(begun), processorTime(b)-before
			var totals []time.Duration
			for _, a := range accounts {
				totals = append(totals, a.Total)
			}
			slices.Sort(totals)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(b.N)/took.Seconds(), "attempts/s")
			b.ReportMetric(millis(percentile(totals, 50)), "p50-ms")
			b.ReportMetric(millis(percentile(totals, 99)), "p99-ms")
			b.ReportMetric(millis(used)/float64(b.N), "cpu-ms/attempt")
			steps.set(name, accounts)
		})
		if err := w.Close(); err != nil {
			b.Error(err)
		}
	}
}

// carry takes n attempts all the way, atOnce at a time.
func carry(b *testing.B, w *way.Way, n, atOnce int) []way.Account {
	b.Helper()
	accounts := make([]way.Account, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < n; i = next.Add(1) - 1 {
				var err error
				if accounts[i], err = w.Carry(b.Context(), way.EmptyOrder(), b.TempDir()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return accounts
}

// processorTime is what this process and the children that have ended took so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var sum int64
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += u.Utime.Nano() + u.Stime.Nano()
	}
	return time.Duration(sum)
}

// percentile is the value that p of a hundred do not exceed. Preconditions: sorted is.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
