package confine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"
)

// Child is a process started by a Starter. It is safe for use by several goroutines.
type Child struct {
	pid       int
	startTime uint64
	done      chan struct{}

	// mu guards reaped and the use of pid as the number of a process group: until the child is reaped, the
	// kernel gives its number to nobody else.
	mu     sync.Mutex
	pidfd  int
	reaped bool
	state  *os.ProcessState
	err    error
}

func newChild(cmd *exec.Cmd, pidfd int) *Child {
	c := &Child{pid: cmd.Process.Pid, pidfd: pidfd, done: make(chan struct{})}
	// The child is not reaped yet, so the number is still its own, dead or alive.
	c.startTime, c.err = StartTime(c.pid)
	go c.wait(cmd)
	return c
}

// wait waits for the end of the child, then kills what is left of its group before the number is given back.
func (c *Child) wait(cmd *exec.Cmd) {
	var waitErr error
	for {
		waitErr = unix.Waitid(unix.P_PIDFD, c.pidfd, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(waitErr, unix.EINTR) {
			break
		}
	}
	c.mu.Lock()
	_ = unix.Kill(-c.pid, unix.SIGKILL) // ESRCH when the group is empty already
	c.reaped = true
	err := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil // how it ended stands in state
	}
	c.state = cmd.ProcessState
	c.err = errors.Join(c.err, waitErr, err, unix.Close(c.pidfd))
	c.mu.Unlock()
	close(c.done)
}

// PID returns the number of the process. After its end it names nothing.
func (c *Child) PID() int { return c.pid }

// StartTime returns the start of the process in clock ticks since boot, 0 when it could not be read. With PID it
// identifies a process until the next boot.
func (c *Child) StartTime() uint64 { return c.startTime }

// Done is closed when the child has ended and was reaped.
func (c *Child) Done() <-chan struct{} { return c.done }

// Alive reports whether the child has not been reaped yet.
func (c *Child) Alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// Kill kills the child and its process group. It is no error when the child has ended already.
func (c *Child) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return nil
	}
	_ = unix.Kill(-c.pid, unix.SIGKILL) // the group; before the child leads it, there is only the child itself
	if err := unix.PidfdSendSignal(c.pidfd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", c.pid, err)
	}
	return nil
}

// Wait waits until the child has ended and was reaped. The state says how it ended. It fails when the context
// ends first, and then the child is still there.
func (c *Child) Wait(ctx context.Context) (*os.ProcessState, error) {
	select {
	case <-c.done:
		return c.state, c.err
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for process %d: %w", c.pid, ctx.Err())
	}
}
