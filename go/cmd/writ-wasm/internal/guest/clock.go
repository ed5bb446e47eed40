package guest

import (
	"crypto/sha256"
	"io"
	"math/rand/v2"

	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/writ-runtime/writ/go/cmd/writ-wasm/internal/memfs"
)

// step is what the monotonic clock of a guest advances at each look, in nanoseconds. It has to advance, since
// programs wait for it; how much is part of "same input, same output bytes".
const step = 1000

// clock is the time of a guest: a wall clock that stands still, and a monotonic one that counts looks and sleeps.
// Sleeping takes no time. A guest is single-threaded, so there is no lock.
type clock struct{ nanos int64 }

func (c *clock) walltime() (sec int64, nsec int32) { return memfs.Epoch, 0 }

func (c *clock) nanotime() int64 {
	c.nanos += step
	return c.nanos
}

func (c *clock) sleep(ns int64) {
	if ns > 0 && c.nanos < 1<<62 {
		c.nanos += min(ns, 1<<61)
	}
}

func resolution(ns uint32) wsys.ClockResolution { return wsys.ClockResolution(ns) }

// random returns a source of bytes that depends on the seed alone.
func random(seed string) io.Reader { return rand.NewChaCha8(sha256.Sum256([]byte(seed))) }
