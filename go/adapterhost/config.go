package adapterhost

import (
	"time"

	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/pin"
)

// Config says which adapter a Host runs, and how.
type Config struct {
	// Name is the adapter's name in the lock file: the actor in the keys of its operations.
	Name string
	// Sealed are the pinned bytes, Capabilities the manifest that is pinned beside them.
	Sealed       *pin.Sealed
	Capabilities executor.Capabilities
	// Denied, if not nil, is told of each effect that the process tried to have by itself and was denied; see
	// confine.NewContained. It is told by one goroutine a process, and must not wait long.
	Denied func(what string)
	// Folder is where the private folder of the sockets is made; empty for the system's folder for temporary files. A
	// socket's whole path has to fit into 107 bytes, so this is at most 48 bytes long.
	Folder string
	// Timeouts bound every wait; zero fields take their defaults.
	Timeouts Timeouts
}

// Timeouts bound how long an adapter may take. What takes longer counts as hung: the process is killed.
type Timeouts struct {
	// Start bounds a start up to the first answer, 10 s by default.
	Start time.Duration
	// Call bounds one call, 30 s by default. A poll gets what it may wait on top.
	Call time.Duration
}

func (t Timeouts) orDefault() Timeouts {
	if t.Start <= 0 {
		t.Start = 10 * time.Second
	}
	if t.Call <= 0 {
		t.Call = 30 * time.Second
	}
	return t
}

// maxFailures is how many processes in a row may end without one answer before the adapter is given up.
const maxFailures = 3
