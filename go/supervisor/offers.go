package supervisor

import (
	"context"
	"slices"
	"sync"

	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// offers is the channel by which a workload offers checkpoints to its host. It holds the
// newest offer and no other: a workload that offers faster than checkpoints are taken neither
// waits nor fills anything.
type offers struct {
	// news has room for one: there is an offer that was not pinned.
	news chan struct{}

	mu     sync.Mutex
	newest []byte
	// pinned is the offer that the operation of the key is about.
	pinned []byte
	key    operation.Key
}

func newOffers() *offers { return &offers{news: make(chan struct{}, 1)} }

// put takes an offer of the workload, in the place of one that nobody has taken. It never
// waits. Preconditions: the environment has bounded it.
func (o *offers) put(payload []byte) {
	o.mu.Lock()
	o.newest = payload
	o.mu.Unlock()
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// pin makes the newest offer the one that a checkpoint operation is about, and returns it.
func (o *offers) pin(key operation.Key) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.key, o.pinned, o.newest = key, o.newest, nil
	return o.pinned
}

// waiting reports whether there is an offer that was not pinned.
func (o *offers) waiting() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest != nil
}

// Offered implements Services: however often it is asked under one checkpoint operation, the
// answer is the same.
func (s *services) Offered(_ context.Context, c protocol.Call) ([]byte, error) {
	o := s.offers
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.key == "" || c.Operation != o.key {
		return nil, reason.New(reason.CheckpointForeign, "the host has asked for no such checkpoint", string(c.Operation), "propose a checkpoint when the host asks for it")
	}
	return slices.Clone(o.pinned), nil
}
