package peer

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Drive has the clients do n pieces of work and returns how long that took.
func Drive(b *testing.B, clients, n int, work func(i int) error) time.Duration {
	b.Helper()
	begun := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := work(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	if b.Failed() {
		b.FailNow()
	}
	return took
}
