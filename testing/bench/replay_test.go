package bench_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/evidence"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/testing/bench/peer"
	"github.com/writ-runtime/writ/testing/fixture"
)

// BenchmarkWalk is what reading a whole journal takes: verify walks it, replay builds every
// projection. The journal holds whole attempts of six turns; two sizes show
// whether memory grows with it.
func BenchmarkWalk(b *testing.B) {
	for _, attempts := range []int{300, 3000} {
		k := fixture.Kernel(b)
		store, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{Write: true})
		if err != nil {
			b.Fatal(err)
		}
		f := &factory{b: b, kernel: k}
		l := ledger.New(store, k, still{})
		for done := 0; done < attempts; done += 100 {
			lives := f.make(l, 100)
			peer.Drive(b, 64, 100, func(i int) error { return lives[i].live(b.Context()) })
		}
		extent, err := store.Verify(b.Context(), func(journal.Damage) {})
		if err != nil {
			b.Fatal(err)
		}
		events := float64(extent.Events)
		for name, walk := range map[string]func() error{
			"verify": func() error {
				_, err := store.Verify(b.Context(), func(d journal.Damage) { b.Errorf("damage: %+v", d) })
				return err
			},
			"replay": func() error {
				out, err := evidence.Replay(b.Context(), store, k, 0, evidence.Watch{})
				if err == nil && (out.Refused != nil || out.Attempts != attempts) {
					b.Errorf("replayed %d attempts, refused %v", out.Attempts, out.Refused)
				}
				return err
			},
			"index": func() error {
				_, err := projection.Build(b.Context(), store, k.Transitions())
				return err
			},
		} {
			b.Run(fmt.Sprintf("%s/events=%d", name, extent.Events), func(b *testing.B) {
				peak, before := watchHeap(), processorTime(b)
				for b.Loop() {
					if err := walk(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(events*float64(b.N)/b.Elapsed().Seconds(), "events/s")
				// Of this process, also what the collector uses: what a machine that is busy
				// with something else does not show.
				b.ReportMetric(events*float64(b.N)/(processorTime(b)-before).Seconds(), "events/cpu-s")
				b.ReportMetric(float64(peak())/(1<<20), "heap-MiB")
				b.ReportMetric(0, "ns/op")
			})
		}
		_ = store.Close()
	}
}

// watchHeap samples how large the heap gets until the answer is asked for.
func watchHeap() (peak func() uint64) {
	runtime.GC()
	var highest atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				highest.Store(max(highest.Load(), m.HeapInuse))
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return highest.Load()
	}
}
