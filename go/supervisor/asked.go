package supervisor

import (
	"sync"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Asked is the cause of a context that a command ended: the commands that the supervisor
// is to record, a request for cancellation among them.
type Asked struct {
	commands []kernel.Command
	blobs    []journal.Blob

	once sync.Once
	done chan struct{}
	// err is written before done is closed.
	err error
}

// Ask returns the cause for the given commands.
func Ask(commands []kernel.Command, blobs []journal.Blob) *Asked {
	return &Asked{commands: commands, blobs: blobs, done: make(chan struct{})}
}

// Error says what ended the context.
func (a *Asked) Error() string { return "a command asked for cancellation" }

// Done is closed once the commands are durable, or it is known that they never will be.
func (a *Asked) Done() <-chan struct{} { return a.done }

// Err says why the commands were not recorded, nil if they were. Preconditions: Done is
// closed.
func (a *Asked) Err() error { return a.err }

// Answer says what became of the commands. Of more than one answer the first counts.
func (a *Asked) Answer(err error) {
	a.once.Do(func() {
		a.err = err
		close(a.done)
	})
}

// TooLate is why a supervisor that has ended recorded nothing.
func TooLate(id workorder.AttemptID) error {
	return reason.New(reason.KernelWrongState, "the attempt is past the point at which a cancellation means anything", string(id), "see how it ended with `writ show`")
}
