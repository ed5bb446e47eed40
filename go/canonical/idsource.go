package canonical

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// IDSource mints ids that rise strictly, whatever its clock does: within a millisecond, or after a backward step,
// it counts in rand_a (RFC 9562, 6.2, method 1), and when the counter is full it runs one millisecond ahead. It is
// built where the process begins and handed down; it is safe for concurrent use.
type IDSource struct {
	now  func() int64
	rand io.Reader

	mu      sync.Mutex
	milli   int64
	counter uint16
}

// NewIDSource returns a source over a clock in milliseconds since 1970 UTC and a random source, normally
// crypto/rand.Reader.
func NewIDSource(now func() int64, rand io.Reader) *IDSource {
	return &IDSource{now: now, rand: rand, milli: -1}
}

// Mint returns the next id. Errors are those of MintID.
func (s *IDSource) Mint(prefix string) (ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var entropy [10]byte
	if _, err := io.ReadFull(s.rand, entropy[:]); err != nil {
		return "", fmt.Errorf("mint %s id: read random bytes: %w", prefix, err)
	}
	milli, counter := s.milli, s.counter+1
	if now := s.now(); now > milli {
		milli, counter = now, seed(entropy)
	} else if counter > 0xfff {
		milli, counter = milli+1, seed(entropy)
	}
	id, err := mint(prefix, milli, counter, entropy[2:])
	if err != nil {
		return "", err
	}
	s.milli, s.counter = milli, counter
	return id, nil
}

// seed starts a millisecond's counter in its lower half, so that at least 2,048 ids fit before it is full.
func seed(entropy [10]byte) uint16 { return binary.BigEndian.Uint16(entropy[:2]) & 0x7ff }
