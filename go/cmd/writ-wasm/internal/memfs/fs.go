// Package memfs is the whole file system that a guest sees: a tree in memory, bounded, without links, modes or
// times. /inputs is read-only, /work is the workspace, and there is nothing else; where the guest may offer checkpoints,
// one file below /checkpoint.
//
// It exists because a directory of the host given to a guest is no sandbox: a symbolic link made by the guest
// leads out of it. Here there is no host below, and making a link is not permitted.
package memfs

import (
	"io/fs"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	sys "github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
)

// The two directories of the root.
const (
	Inputs = "inputs"
	Work   = "work"
)

// Epoch is the one time that everything has: 2000-01-01T00:00:00Z in seconds since 1970.
const Epoch = 946684800

// errFull is what a guest sees at a quota. wazero knows no ENOSPC and turns every number it does not know into
// the guest's EIO, which no operation here returns otherwise.
const errFull = sys.EIO

// FS is a tree with its quotas. It is safe for use by several goroutines.
type FS struct {
	sys.UnimplementedFS
	limits wire.Limits

	// mu guards everything below and every node.
	mu      sync.Mutex
	root    *node
	lastIno uint64
	bytes   int64 // of the workspace
	files   int64 // of the workspace
	inBytes int64 // of the inputs
	inFiles int64 // of the inputs
	open    int64 // handles of the guest
	touched []wire.Limit
	offers  offers
}

// node is a file or a directory.
type node struct {
	ino      uint64
	dir      bool
	readonly bool
	children map[string]*node // of a directory
	data     []byte           // of a file
	linked   bool             // it has a name
	offer    bool             // it is the file by which checkpoints are offered
	handles  int              // open handles; the bytes of a file count until it has neither name nor handle
}

// New returns an empty tree. The limits have been checked.
func New(limits wire.Limits) *FS {
	f := &FS{limits: limits}
	f.root = f.newNode(true, true)
	f.root.children[Inputs] = f.newNode(true, true)
	f.root.children[Work] = f.newNode(true, false)
	return f
}

func (f *FS) newNode(dir, readonly bool) *node {
	f.lastIno++
	n := &node{ino: f.lastIno, dir: dir, readonly: readonly, linked: true}
	if dir {
		n.children = map[string]*node{}
	}
	return n
}

// Touched returns the limits that were run into, each once, in the order in which that happened first.
func (f *FS) Touched() []wire.Limit {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.touched)
}

func (f *FS) touch(l wire.Limit) sys.Errno {
	if !slices.Contains(f.touched, l) {
		f.touched = append(f.touched, l)
	}
	return errFull
}

// split returns the names of a path relative to the root. WASI has refused paths that lead out; here ".." is
// refused once more.
func split(path string) ([]string, sys.Errno) {
	var names []string
	for name := range strings.SplitSeq(path, "/") {
		switch name {
		case "", ".":
		case "..":
			return nil, sys.EPERM
		default:
			if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
				return nil, sys.EINVAL
			}
			names = append(names, name)
		}
	}
	return names, 0
}

// walk follows names from the root.
func (f *FS) walk(names []string) (*node, sys.Errno) {
	n := f.root
	for _, name := range names {
		if !n.dir {
			return nil, sys.ENOTDIR
		}
		next, ok := n.children[name]
		if !ok {
			return nil, sys.ENOENT
		}
		n = next
	}
	return n, 0
}

func (f *FS) lookup(path string) (*node, sys.Errno) {
	names, errno := split(path)
	if errno != 0 {
		return nil, errno
	}
	n, errno := f.walk(names)
	if errno == 0 && !n.dir && strings.HasSuffix(path, "/") {
		return nil, sys.ENOTDIR
	}
	return n, errno
}

// parent returns the directory in which the last name of the path stands or would stand, and that name.
func (f *FS) parent(path string) (*node, []string, sys.Errno) {
	names, errno := split(path)
	if errno != 0 {
		return nil, nil, errno
	}
	if len(names) == 0 {
		return nil, nil, sys.EPERM
	}
	dir, errno := f.walk(names[:len(names)-1])
	if errno != 0 {
		return nil, nil, errno
	}
	if !dir.dir {
		return nil, nil, sys.ENOTDIR
	}
	return dir, names, 0
}

// create adds a node to the workspace, within the quotas.
func (f *FS) create(dir *node, names []string, isDir bool) (*node, sys.Errno) {
	if dir.readonly {
		return nil, sys.EROFS
	}
	if errno := f.fits(names, 0, 0); errno != 0 {
		return nil, errno
	}
	if f.files >= f.limits.WorkspaceFiles {
		return nil, f.touch(wire.LimitWorkspaceFiles)
	}
	f.files++
	n := f.newNode(isDir, false)
	dir.children[names[len(names)-1]] = n
	return n, 0
}

// fits checks the depth and length of a path below /work, to which a subtree with further names is added.
func (f *FS) fits(names []string, moreDepth, moreBytes int) sys.Errno {
	rel := names[1:]
	if int64(len(rel)+moreDepth) > f.limits.Depth {
		return f.touch(wire.LimitDepth)
	}
	if int64(len(strings.Join(rel, "/"))+moreBytes) > f.limits.NameBytes {
		return f.touch(wire.LimitNameBytes)
	}
	return 0
}

// release forgets the bytes of a file that nothing leads to any more.
func (f *FS) release(n *node) {
	if !n.linked && n.handles == 0 && !n.dir && !n.readonly {
		f.bytes -= int64(len(n.data))
		n.data = nil
	}
}

// resize sets the length of a workspace file, within the quotas; new bytes are zero.
func (f *FS) resize(n *node, size int64) sys.Errno {
	if n.offer {
		return f.resizeOffer(n, size)
	}
	if size > f.limits.FileBytes {
		return f.touch(wire.LimitFileBytes)
	}
	delta := size - int64(len(n.data))
	if f.bytes+delta > f.limits.WorkspaceBytes {
		return f.touch(wire.LimitWorkspaceBytes)
	}
	f.bytes += delta
	if delta <= 0 {
		// Room that is kept must stay in proportion to what counts, or shrunken files would hoard memory.
		if size < int64(cap(n.data))/4 {
			n.data = append(make([]byte, 0, size), n.data[:size]...)
			return 0
		}
		clear(n.data[size:])
		n.data = n.data[:size]
		return 0
	}
	// Grow by doubling, but never beyond what the quotas allow this file to become.
	if size > int64(cap(n.data)) {
		room := min(f.limits.FileBytes, f.limits.WorkspaceBytes)
		grown := make([]byte, len(n.data), min(max(size, 2*int64(cap(n.data))), room))
		copy(grown, n.data)
		n.data = grown
	}
	n.data = n.data[:size]
	return 0
}

func (n *node) stat() wsys.Stat_t {
	mode := fs.FileMode(0o600)
	if n.dir {
		mode = fs.ModeDir | 0o700
	}
	if n.readonly {
		mode &^= 0o200
	}
	const t = Epoch * 1_000_000_000
	return wsys.Stat_t{Dev: 1, Ino: n.ino, Mode: mode, Nlink: 1, Size: int64(len(n.data)), Atim: t, Mtim: t, Ctim: t}
}
