// Package faultfs stands between a process and its file system. A test sees each system call
// that changes a file, and decides which of them fail; from what it saw it makes the files
// that a power loss would have left at any moment.
//
// The kernel asks for each call, by seccomp's user notification: it is the real process over
// the real file system, and nothing of it is built differently. The process must be one
// that calls Trap first thing.
package faultfs

import "golang.org/x/sys/unix"

// Kind is what a call does.
type Kind string

// The kinds of calls that are seen.
const (
	Create   Kind = "create" // of a file that was not there
	MakeDir  Kind = "mkdir"
	Write    Kind = "write"
	Truncate Kind = "truncate"
	Sync     Kind = "sync"
	Remove   Kind = "remove"
	// Say is a write to the process' standard output.
	Say Kind = "say"
)

// Op is one call.
type Op struct {
	Kind Kind
	// Path is below the folder that is watched, "." for itself.
	Path string
	// Offset is where a write begins, or the size that a truncation leaves.
	Offset int64
	Data   []byte
	// Failed says that the call failed, so that nothing of it happened.
	Failed bool
}

// Fault is how a call fails; the zero value lets it succeed.
type Fault struct {
	Errno unix.Errno
	// Bytes, of a write, is how many of it are written; the call succeeds with that number.
	// Errno is then not looked at.
	Bytes int
}

// Layer decides and sees. Its methods are called one after the other.
type Layer interface {
	// Decide is asked before a call below the watched folder.
	Decide(op Op) Fault
	// Done is told of every call, in order.
	Done(op Op)
}
