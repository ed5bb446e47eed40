package memfs

import (
	"io"
	"slices"

	sys "github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
)

// seekOffset is int64 under another name: go vet takes a Seek with an int64 for io.Seeker's and wants an error from
// it, while sys.File wants an Errno.
type seekOffset = int64

// fileHandle is an open file.
type fileHandle struct {
	sys.UnimplementedFile
	fs                   *FS
	node                 *node
	pos                  int64
	read, write, appends bool
	closed               bool
	failed               bool // a write to it failed
}

func (h *fileHandle) Dev() (uint64, sys.Errno)       { return 1, 0 }
func (h *fileHandle) Ino() (wsys.Inode, sys.Errno)   { return h.node.ino, 0 }
func (h *fileHandle) IsDir() (bool, sys.Errno)       { return false, 0 }
func (h *fileHandle) IsAppend() bool                 { return h.appends }
func (h *fileHandle) SetAppend(on bool) sys.Errno    { h.appends = on; return 0 }
func (h *fileHandle) Sync() sys.Errno                { return 0 }
func (h *fileHandle) Datasync() sys.Errno            { return 0 }
func (h *fileHandle) Utimens(_, _ int64) sys.Errno   { return 0 }
func (h *fileHandle) Stat() (wsys.Stat_t, sys.Errno) { return h.fs.statNode(h.node) }

// Close implements sys.File.
func (h *fileHandle) Close() sys.Errno {
	payload := h.offer()
	errno := h.fs.close(h.node, &h.closed)
	if payload != nil {
		h.fs.offers.take(payload)
	}
	return errno
}

// Read implements sys.File.
func (h *fileHandle) Read(b []byte) (int, sys.Errno) {
	n, errno := h.Pread(b, h.pos)
	h.pos += int64(n)
	return n, errno
}

// Pread implements sys.File.
func (h *fileHandle) Pread(b []byte, off int64) (int, sys.Errno) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	switch {
	case h.closed || !h.read:
		return 0, sys.EBADF
	case off < 0:
		return 0, sys.EINVAL
	case off >= int64(len(h.node.data)):
		return 0, 0
	}
	return copy(b, h.node.data[off:]), 0
}

// Write implements sys.File.
func (h *fileHandle) Write(b []byte) (int, sys.Errno) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.appends {
		h.pos = int64(len(h.node.data))
	}
	n, errno := h.writeAt(b, h.pos)
	h.pos += int64(n)
	return n, errno
}

// Pwrite implements sys.File.
func (h *fileHandle) Pwrite(b []byte, off int64) (int, sys.Errno) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	return h.writeAt(b, off)
}

func (h *fileHandle) writeAt(b []byte, off int64) (n int, errno sys.Errno) {
	defer func() { h.failed = h.failed || errno != 0 }()
	switch {
	case h.closed || !h.write:
		return 0, sys.EBADF
	case off < 0:
		return 0, sys.EINVAL
	case len(b) == 0:
		return 0, 0
	case off > h.fs.limits.FileBytes: // off+len(b) cannot overflow below
		return 0, h.fs.touch(wire.LimitFileBytes)
	}
	if end := off + int64(len(b)); end > int64(len(h.node.data)) {
		if errno := h.fs.resize(h.node, end); errno != 0 {
			return 0, errno
		}
	}
	return copy(h.node.data[off:], b), 0
}

// Truncate implements sys.File.
func (h *fileHandle) Truncate(size int64) sys.Errno {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	switch {
	case h.closed || !h.write:
		return sys.EBADF
	case size < 0:
		return sys.EINVAL
	}
	return h.fs.resize(h.node, size)
}

// Seek implements sys.File.
func (h *fileHandle) Seek(offset seekOffset, whence int) (int64, sys.Errno) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	base := int64(0)
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		base = h.pos
	case io.SeekEnd:
		base = int64(len(h.node.data))
	default:
		return 0, sys.EINVAL
	}
	pos := base + offset
	if h.closed {
		return 0, sys.EBADF
	}
	if pos < 0 || offset > 0 && pos < base {
		return 0, sys.EINVAL
	}
	h.pos = pos
	return pos, 0
}

// dirHandle is an open directory. Its listing is taken at the first Readdir after opening or rewinding, sorted by
// name, so that equal runs see equal orders.
type dirHandle struct {
	sys.DirFile
	fs      *FS
	node    *node
	listing []sys.Dirent
	taken   bool
	closed  bool
}

func (h *dirHandle) Dev() (uint64, sys.Errno)       { return 1, 0 }
func (h *dirHandle) Ino() (wsys.Inode, sys.Errno)   { return h.node.ino, 0 }
func (h *dirHandle) Sync() sys.Errno                { return 0 }
func (h *dirHandle) Datasync() sys.Errno            { return 0 }
func (h *dirHandle) Utimens(_, _ int64) sys.Errno   { return 0 }
func (h *dirHandle) Close() sys.Errno               { return h.fs.close(h.node, &h.closed) }
func (h *dirHandle) Stat() (wsys.Stat_t, sys.Errno) { return h.fs.statNode(h.node) }

// Seek implements sys.File: a directory can only be rewound.
func (h *dirHandle) Seek(offset seekOffset, whence int) (int64, sys.Errno) {
	if offset != 0 || whence != io.SeekStart {
		return 0, sys.EINVAL
	}
	h.taken, h.listing = false, nil
	return 0, 0
}

// Readdir implements sys.File.
func (h *dirHandle) Readdir(n int) ([]sys.Dirent, sys.Errno) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.closed {
		return nil, sys.EBADF
	}
	if !h.taken {
		h.listing, h.taken = h.node.dirents(), true
	}
	if n <= 0 || n > len(h.listing) {
		n = len(h.listing)
	}
	out := h.listing[:n:n]
	h.listing = h.listing[n:]
	return out, 0
}

func (n *node) dirents() []sys.Dirent {
	out := make([]sys.Dirent, 0, len(n.children))
	for _, name := range n.names() {
		c := n.children[name]
		out = append(out, sys.Dirent{Ino: c.ino, Name: name, Type: c.stat().Mode.Type()})
	}
	return out
}

func (n *node) names() []string {
	names := make([]string, 0, len(n.children))
	for name := range n.children {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (f *FS) close(n *node, closed *bool) sys.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *closed {
		return 0
	}
	*closed = true
	f.open--
	n.handles--
	f.release(n)
	return 0
}

func (f *FS) statNode(n *node) (wsys.Stat_t, sys.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return n.stat(), 0
}
