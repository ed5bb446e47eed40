package memfs

import (
	"slices"

	sys "github.com/tetratelabs/wazero/experimental/sys"

	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
)

// Checkpoint is the directory in which a guest finds Next, the file by which it offers checkpoints.
const (
	Checkpoint = "checkpoint"
	Next       = "next.json"
)

// offers is where checkpoints of the guest go.
type offers struct {
	most int64 // bytes of one
	take func(payload []byte)
}

// Offers gives the guest the file /checkpoint/next.json. Whenever a descriptor that was opened for writing it is closed,
// what the file holds is offered: take is called with it, on the guest's own thread. A file that a write failed on, or
// that is empty, is no offer. What is offered is no output: it counts towards no limit of the workspace but has one of
// its own, and the guest never learns what becomes of it.
func (f *FS) Offers(most int64, take func(payload []byte)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offers = offers{most, take}
	dir, next := f.newNode(true, true), f.newNode(false, false)
	next.offer = true
	dir.children[Next] = next
	f.root.children[Checkpoint] = dir
}

// resizeOffer sets the length of the file of offers.
func (f *FS) resizeOffer(n *node, size int64) sys.Errno {
	if size > f.offers.most {
		return f.touch(wire.LimitOffer)
	}
	if size < int64(len(n.data)) {
		n.data = n.data[:size:size]
		return 0
	}
	n.data = append(n.data, make([]byte, size-int64(len(n.data)))...)
	return 0
}

// offer returns what the closing of the handle offers, nil for nothing.
func (h *fileHandle) offer() []byte {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.closed || !h.write || h.failed || !h.node.offer || len(h.node.data) == 0 {
		return nil
	}
	return slices.Clone(h.node.data)
}
