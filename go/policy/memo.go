package policy

import (
	"sync"

	"github.com/writ-runtime/writ/go/canonical"
)

// memo keeps decisions by the digest of their input. The policies need not be part of the key: a memo belongs to
// one engine, and an engine never changes its policies.
type memo struct {
	most int

	mu    sync.Mutex
	byKey map[canonical.Digest]Decision
	order []canonical.Digest
}

func newMemo(most int) *memo { return &memo{most: most, byKey: map[canonical.Digest]Decision{}} }

func (m *memo) get(key canonical.Digest) (Decision, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.byKey[key]
	return d, ok
}

// put keeps d and forgets the oldest decision when there are too many.
func (m *memo) put(key canonical.Digest, d Decision) {
	if m.most <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.byKey[key]; known {
		return
	}
	if len(m.order) >= m.most {
		delete(m.byKey, m.order[0])
		m.order = m.order[1:]
	}
	m.byKey[key] = d
	m.order = append(m.order, key)
}
