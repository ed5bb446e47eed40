package sqlite_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/storetest"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/testing/bench/peer"
)

// BenchmarkAppend measures appends a second with one client and with 64, and against
// SQLite itself making the same rows durable in groups formed the same way, in turns
// of the same run. A batch has two events of one subject, about 1 KB in all.
func BenchmarkAppend(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			s := open(b, b.TempDir(), true)
			sample := batchOf(1, "sample")
			encoded, err := journal.Encode(sample)
			if err != nil {
				b.Fatal(err)
			}
			plain := peer.Open(b, journal.Entry{Batch: sample, Body: encoded.Body})
			var spent, spentPlain time.Duration
			for done := 0; done < b.N; {
				// Short turns, so that what else the machine does hits both alike.
				n := min(max(clients*8, 64), b.N-done)
				spent += peer.Drive(b, clients, n, func(i int) error {
					results, err := s.Append(b.Context(), batchOf(s.Epoch(), fmt.Sprint(done+i)))
					if err == nil {
						err = results[0].Err
					}
					return err
				})
				spentPlain += peer.Drive(b, clients, n, func(i int) error {
					name := fmt.Sprint(done + i)
					batchOf(1, name) // what a client has before it asks, here as there
					return plain.Store(name)
				})
				done += n
			}
			b.ReportMetric(float64(b.N)/spent.Seconds(), "appends/s")
			b.ReportMetric(float64(b.N)/spentPlain.Seconds(), "plain-appends/s")
			b.ReportMetric(100*spentPlain.Seconds()/spent.Seconds(), "%-of-plain")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func batchOf(epoch uint64, name string) journal.Batch {
	batch := storetest.NewBatch(name, epoch, lifecycle.Of("machine", name), 0, 2)
	for i := range batch.Events {
		batch.Events[i].Body = canonical.Raw(fmt.Sprintf(`{"digest":%q,"padding":"%0200d","result":%q}`, canonical.Sum([]byte(name)), i, name))
	}
	return batch
}

// BenchmarkVerify measures the walk of the whole journal, a batch.
func BenchmarkVerify(b *testing.B) {
	s := open(b, b.TempDir(), true)
	const batches = 2000
	for i := range batches {
		results, err := s.Append(b.Context(), batchOf(s.Epoch(), fmt.Sprint(i)))
		if err != nil || results[0].Err != nil {
			b.Fatal(err, results)
		}
	}
	for b.Loop() {
		if _, err := s.Verify(b.Context(), func(d journal.Damage) { b.Errorf("damage: %+v", d) }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/batches, "µs/batch")
}

// BenchmarkEncode measures what a caller's goroutine does for one batch.
func BenchmarkEncode(b *testing.B) {
	batch := batchOf(1, "1-1")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := journal.Encode(batch); err != nil {
			b.Fatal(err)
		}
	}
}
