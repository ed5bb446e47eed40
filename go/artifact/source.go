package artifact

import (
	"context"
	"io"
	"iter"
)

// EntryType is what an entry of a workspace is. Only files are ever frozen.
type EntryType string

// The types of entry.
const (
	File    EntryType = "file"
	Dir     EntryType = "dir"
	Symlink EntryType = "symlink"
	Device  EntryType = "device"
	Socket  EntryType = "socket"
	FIFO    EntryType = "fifo"
	Other   EntryType = "other"
)

// Entry is one entry of a workspace, as its source measured it. Nothing in it is
// trusted: it comes from where a workload wrote.
type Entry struct {
	// Path is relative to the workspace, with slashes; it may be any bytes.
	Path string
	Type EntryType
	// Size is the number of bytes that Open will serve, for a file.
	Size int64
	// Links is the number of names that the same file has.
	Links      uint64
	Executable bool
}

// Source serves a workspace in which nothing runs any more.
type Source interface {
	// Entries lists every entry beneath the workspace, in any order, folders included
	// where they exist as such. It follows no link. It may yield an error and stops
	// after it.
	Entries(ctx context.Context) iter.Seq2[Entry, error]
	// Open serves the bytes of the file that Entries listed under the path. A source
	// that finds the file changed says so in an error of Read or Close.
	Open(ctx context.Context, path string) (io.ReadCloser, error)
}
