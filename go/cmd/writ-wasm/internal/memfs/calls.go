package memfs

import (
	"io/fs"
	"strings"

	sys "github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
)

// The two halves of an open flag.
const (
	accessMode = sys.O_RDONLY | sys.O_RDWR | sys.O_WRONLY
	changes    = sys.O_CREAT | sys.O_TRUNC
)

// OpenFile implements sys.FS.
func (f *FS) OpenFile(path string, flag sys.Oflag, _ fs.FileMode) (sys.File, sys.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open >= f.limits.OpenFiles {
		return nil, f.touch(wire.LimitOpenFiles)
	}
	n, errno := f.lookup(path)
	write := flag&accessMode != sys.O_RDONLY
	switch {
	case errno == sys.ENOENT && flag&sys.O_CREAT != 0 && flag&sys.O_DIRECTORY == 0 && !strings.HasSuffix(path, "/"):
		dir, names, errno := f.parent(path)
		if errno != 0 {
			return nil, errno
		}
		if n, errno = f.create(dir, names, false); errno != 0 {
			return nil, errno
		}
	case errno != 0:
		return nil, errno
	case flag&sys.O_CREAT != 0 && flag&sys.O_EXCL != 0:
		return nil, sys.EEXIST
	case n.dir && (write || flag&changes != 0):
		return nil, sys.EISDIR
	case !n.dir && flag&sys.O_DIRECTORY != 0:
		return nil, sys.ENOTDIR
	case n.readonly && !n.dir && (write || flag&sys.O_TRUNC != 0):
		return nil, sys.EROFS
	case !n.dir && flag&sys.O_TRUNC != 0:
		if errno := f.resize(n, 0); errno != 0 {
			return nil, errno
		}
	}
	f.open++
	n.handles++
	if n.dir {
		return &dirHandle{fs: f, node: n}, 0
	}
	return &fileHandle{fs: f, node: n, read: flag&accessMode != sys.O_WRONLY, write: write, appends: flag&sys.O_APPEND != 0}, 0
}

// Stat implements sys.FS.
func (f *FS) Stat(path string) (wsys.Stat_t, sys.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, errno := f.lookup(path)
	if errno != 0 {
		return wsys.Stat_t{}, errno
	}
	return n.stat(), 0
}

// Lstat implements sys.FS. There are no links, so it is Stat.
func (f *FS) Lstat(path string) (wsys.Stat_t, sys.Errno) { return f.Stat(path) }

// Mkdir implements sys.FS.
func (f *FS) Mkdir(path string, _ fs.FileMode) sys.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, names, errno := f.parent(path)
	if errno != 0 {
		return errno
	}
	if _, there := dir.children[names[len(names)-1]]; there {
		return sys.EEXIST
	}
	_, errno = f.create(dir, names, true)
	return errno
}

// Rmdir implements sys.FS.
func (f *FS) Rmdir(path string) sys.Errno { return f.remove(path, true) }

// Unlink implements sys.FS.
func (f *FS) Unlink(path string) sys.Errno { return f.remove(path, false) }

func (f *FS) remove(path string, wantDir bool) sys.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, names, errno := f.parent(path)
	if errno != 0 {
		return errno
	}
	name := names[len(names)-1]
	n, ok := dir.children[name]
	switch {
	case !ok:
		return sys.ENOENT
	case dir.readonly:
		return sys.EROFS
	case wantDir && !n.dir:
		return sys.ENOTDIR
	case !wantDir && n.dir:
		return sys.EISDIR
	case len(n.children) > 0:
		return sys.ENOTEMPTY
	}
	f.unlink(dir, name, n)
	return 0
}

func (f *FS) unlink(dir *node, name string, n *node) {
	delete(dir.children, name)
	n.linked = false
	f.files--
	f.release(n)
}

// Rename implements sys.FS.
func (f *FS) Rename(from, to string) sys.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	fromDir, fromNames, errno := f.parent(from)
	if errno != 0 {
		return errno
	}
	n, ok := fromDir.children[fromNames[len(fromNames)-1]]
	if !ok {
		return sys.ENOENT
	}
	toDir, toNames, errno := f.parent(to)
	if errno != 0 {
		return errno
	}
	if fromDir.readonly || toDir.readonly {
		return sys.EROFS
	}
	if n.contains(toDir) {
		return sys.EINVAL
	}
	depth, bytes := n.extent()
	if errno := f.fits(toNames, depth, bytes); errno != 0 {
		return errno
	}
	name := toNames[len(toNames)-1]
	old, there := toDir.children[name]
	switch {
	case there && old == n:
		return 0
	case there && n.dir && !old.dir:
		return sys.ENOTDIR
	case there && !n.dir && old.dir:
		return sys.EISDIR
	case there && len(old.children) > 0:
		return sys.ENOTEMPTY
	case there:
		f.unlink(toDir, name, old)
	}
	delete(fromDir.children, fromNames[len(fromNames)-1])
	toDir.children[name] = n
	return 0
}

// contains reports whether other is n or stands below it.
func (n *node) contains(other *node) bool {
	if n == other {
		return true
	}
	for _, c := range n.children {
		if c.contains(other) {
			return true
		}
	}
	return false
}

// extent returns how many names deep a tree is below its root, and how many bytes its longest path adds.
func (n *node) extent() (depth, bytes int) {
	for name, c := range n.children {
		d, b := c.extent()
		depth, bytes = max(depth, d+1), max(bytes, b+len(name)+1)
	}
	return depth, bytes
}

// Link implements sys.FS: two names for one file would be two outputs with one body.
func (f *FS) Link(_, _ string) sys.Errno { return sys.EPERM }

// Symlink implements sys.FS.
func (f *FS) Symlink(_, _ string) sys.Errno { return sys.EPERM }

// Readlink implements sys.FS. There are no links; what exists is none.
func (f *FS) Readlink(path string) (string, sys.Errno) {
	if _, errno := f.Stat(path); errno != 0 {
		return "", errno
	}
	return "", sys.EINVAL
}

// Chmod implements sys.FS. Modes are fixed; wishing for another is no error, since runtimes do it in passing.
func (f *FS) Chmod(path string, _ fs.FileMode) sys.Errno {
	_, errno := f.Stat(path)
	return errno
}

// Utimens implements sys.FS. Times are fixed; wishing for others is no error.
func (f *FS) Utimens(path string, _, _ int64) sys.Errno {
	_, errno := f.Stat(path)
	return errno
}
