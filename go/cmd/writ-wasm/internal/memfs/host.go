package memfs

import (
	"path"
	"strings"
	"unicode/utf8"

	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/reason"
)

// AddInput adds a read-only file as /inputs/mount/name and keeps data. It fails with
// materialize.unsupported_entry for a name that is not clean, relative and UTF-8, or that stands there already, and
// with materialize.too_large beyond the limits of inputs.
func (f *FS) AddInput(mount, name string, data []byte) error {
	where := mount + "/" + name
	if !validName(mount) || strings.Contains(mount, "/") || !validName(name) {
		return reason.New(reason.MaterializeUnsupportedEntry, "an input has a name that is not clean, relative and UTF-8", where, "rename it")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inFiles+1 > f.limits.InputFiles || f.inBytes+int64(len(data)) > f.limits.InputBytes {
		return reason.New(reason.MaterializeTooLarge, "the inputs exceed their limit of files or bytes", where, "give fewer or smaller inputs, or raise the limit")
	}
	dir := f.root.children[Inputs]
	names := strings.Split(where, "/")
	for _, n := range names[:len(names)-1] {
		next, ok := dir.children[n]
		if !ok {
			next = f.newNode(true, true)
			dir.children[n] = next
		}
		if !next.dir {
			return reason.New(reason.MaterializeUnsupportedEntry, "an input is a file and a directory at once", where, "rename one of them")
		}
		dir = next
	}
	last := names[len(names)-1]
	if _, ok := dir.children[last]; ok {
		return reason.New(reason.MaterializeUnsupportedEntry, "an input of that name was given before", where, "give each input once")
	}
	n := f.newNode(false, true)
	n.data = data
	dir.children[last] = n
	f.inFiles++
	f.inBytes += int64(len(data))
	return nil
}

func validName(name string) bool {
	return name != "" && name != "." && name != ".." && !path.IsAbs(name) && path.Clean(name) == name &&
		!strings.HasPrefix(name, "../") && utf8.ValidString(name) && !strings.ContainsRune(name, 0) && len(name) <= 4096
}

// Counts returns how many entries the inputs and the workspace hold.
func (f *FS) Counts() (inputs, workspace int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inFiles + int64(len(f.root.children[Inputs].children)), f.files
}

// List returns every entry of the workspace, by path.
func (f *FS) List() []wire.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []wire.Entry{}
	var walk func(prefix string, n *node)
	walk = func(prefix string, n *node) {
		for _, name := range n.names() {
			c := n.children[name]
			out = append(out, wire.Entry{Path: prefix + name, Dir: c.dir, Size: int64(len(c.data))})
			if c.dir {
				walk(prefix+name+"/", c)
			}
		}
	}
	walk("", f.root.children[Work])
	return out
}

// ReadAt returns at most length bytes of a workspace file from offset on; none at its end or beyond.
func (f *FS) ReadAt(name string, offset, length int64) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !validName(name) {
		return nil, reason.New(reason.FreezeBadName, "an output has a name that is not clean, relative and UTF-8", name, "have the tool choose another name")
	}
	n, errno := f.lookup(Work + "/" + name)
	if errno != 0 || n.dir {
		return nil, reason.New(reason.FreezeMissing, "the workspace holds no such file", name, "see what it holds")
	}
	if offset < 0 || length < 0 || offset >= int64(len(n.data)) {
		return nil, nil
	}
	return n.data[offset:min(int64(len(n.data)), offset+length)], nil
}

// Bytes returns how many bytes the files of the workspace hold, deleted ones that are still open included.
func (f *FS) Bytes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes
}
