package guest

import (
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// pageSize is WebAssembly's.
const pageSize = 64 << 10

// allocator gives a guest its memory: address space for all that the guest may ever have, taken once, so that
// growing neither copies nor moves. It refuses to grow beyond the limit, and notes that it did.
type allocator struct {
	limit   uint64 // bytes of one memory
	largest uint64 // bytes
	refused bool
	// failed is set when the host gave no address space; the guest sees it as memory that cannot grow.
	failed error
}

// Allocate implements experimental.MemoryAllocator. A guest has one memory (the multi-memory proposal is off).
func (a *allocator) Allocate(_, most uint64) experimental.LinearMemory {
	size := min(most, a.limit)
	if size == 0 {
		return &memory{owner: a}
	}
	space, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		a.failed = fmt.Errorf("reserve %d bytes of guest memory: %w", size, err)
		return &memory{owner: a}
	}
	return &memory{owner: a, space: space}
}

type memory struct {
	owner *allocator
	space []byte
}

// Reallocate implements experimental.LinearMemory.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.space)) {
		m.owner.refused = true
		return nil
	}
	m.owner.largest = max(m.owner.largest, size)
	return m.space[:size:len(m.space)]
}

// Free implements experimental.LinearMemory.
func (m *memory) Free() {
	if m.space != nil {
		m.owner.failed = errors.Join(m.owner.failed, unix.Munmap(m.space))
		m.space = nil
	}
}
