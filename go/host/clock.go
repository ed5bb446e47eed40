package host

import (
	"math/rand/v2"
	"time"

	"github.com/writ-runtime/writ/go/journal"
)

// clock reads the host's clock.
type clock struct {
	begun time.Time
}

// Now implements ledger.Clock.
func (c clock) Now() journal.Observation {
	return journal.Observation{Domain: "host", UnixMilli: time.Now().UnixMilli()}
}

// Micros implements ledger.Clock by the monotonic clock.
func (c clock) Micros() int64 { return time.Since(c.begun).Microseconds() }

// Lot implements ledger.Clock.
func (c clock) Lot() uint32 { return rand.Uint32() }
