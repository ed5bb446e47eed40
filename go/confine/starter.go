package confine

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/reason"
)

// Starter starts children from one permanent thread. It is safe for use by several goroutines.
type Starter struct {
	requests chan startRequest
	quit     chan struct{}
	ended    chan struct{}
	stop     sync.Once
	// contain bounds the thread before it starts anything, nil for not at all; namespaces are those that children
	// are made in. See NewContained.
	contain    func() error
	namespaces uintptr

	// mu guards children: those that have not ended yet.
	mu       sync.Mutex
	children map[*Child]struct{}
}

type startRequest struct {
	cmd    *exec.Cmd
	answer chan startAnswer
}

type startAnswer struct {
	child *Child
	err   error
}

// NewStarter makes a starter with its thread. The children die with the thread, so a starter is made once for
// the life of the host; Close ends both.
func NewStarter() *Starter {
	s := newStarter()
	go s.run()
	return s
}

func newStarter() *Starter {
	return &Starter{requests: make(chan startRequest), quit: make(chan struct{}), ended: make(chan struct{}), children: map[*Child]struct{}{}}
}

func (s *Starter) run() {
	// Never unlocked: no other goroutine may use the thread, and it must not end before the children have.
	runtime.LockOSThread()
	if s.contain != nil && unix.Gettid() == unix.Getpid() {
		// What is said of the first thread is said of the process. As long as this one holds it, another gets another.
		go s.run()
		<-s.ended
		runtime.UnlockOSThread()
		return
	}
	// The thread marks whatever it starts, and whatever that starts, for ever: it may gain
	// no new privileges. No other thread is made from a locked one, so this host stays as
	// it is.
	marked := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	var contained error
	if marked == nil && s.contain != nil {
		contained = s.contain()
	}
	defer close(s.ended)
	defer s.killAll()
	for {
		select {
		case <-s.quit:
			return
		case r := <-s.requests:
			if marked != nil {
				r.answer <- startAnswer{nil, startFailed(r.cmd, fmt.Errorf("set no_new_privs: %w", marked))}
				continue
			}
			if contained != nil {
				r.answer <- startAnswer{nil, contained}
				continue
			}
			child, err := start(r.cmd, s.namespaces)
			if err == nil {
				s.watch(child)
			} else if s.contain != nil {
				err = notContained(r.cmd, err)
			}
			r.answer <- startAnswer{child, err}
		}
	}
}

// watch remembers the child until it has ended.
func (s *Starter) watch(c *Child) {
	s.mu.Lock()
	s.children[c] = struct{}{}
	s.mu.Unlock()
	go func() {
		<-c.Done()
		s.mu.Lock()
		delete(s.children, c)
		s.mu.Unlock()
	}()
}

// killAll does not leave the killing to the end of the thread: the runtime keeps the first thread of a process,
// should it be that one.
func (s *Starter) killAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.children {
		_ = c.Kill() // fails only for a child that is not this host's to kill any more
	}
}

// Close kills every child that still lives and ends the thread. Nothing can be started afterwards.
func (s *Starter) Close() {
	s.stop.Do(func() { close(s.quit) })
	<-s.ended
}

// Start starts the command as the leader of a session and process group of its own, killed by the kernel when
// this host dies. Neither the child nor what comes of it may ever gain new privileges, as through a setuid program;
// by that it can be told from a person's process. A nil Env means an empty environment here, not the host's. The context only guards the wait
// for the starter's turn; it does not bound the child's life. It fails with environment.start_failed.
func (s *Starter) Start(ctx context.Context, cmd *exec.Cmd) (*Child, error) {
	r := startRequest{cmd: cmd, answer: make(chan startAnswer, 1)}
	select {
	case s.requests <- r:
		// From here on the answer is always taken, so that no child is lost between starter and caller.
		a := <-r.answer
		return a.child, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("start %s: %w", cmd.Path, ctx.Err())
	case <-s.quit:
		return nil, startFailed(cmd, errors.New("the starter is closed"))
	}
}

func start(cmd *exec.Cmd, namespaces uintptr) (*Child, error) {
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	pidfd := -1
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setsid = true
	cmd.SysProcAttr.PidFD = &pidfd
	cmd.SysProcAttr.Cloneflags |= namespaces
	if err := cmd.Start(); err != nil {
		return nil, startFailed(cmd, err)
	}
	if pidfd < 0 {
		err := errors.Join(errors.New("this kernel gives no pidfd"), cmd.Process.Kill(), cmd.Wait())
		return nil, startFailed(cmd, err)
	}
	return newChild(cmd, pidfd), nil
}

func startFailed(cmd *exec.Cmd, err error) error {
	name := cmd.Path
	if len(cmd.Args) > 0 {
		name = cmd.Args[0]
	}
	return reason.New(reason.EnvironmentStartFailed, "the process cannot be started", name,
		"see the cause; a host needs Linux 5.9 or newer, /proc mounted, and room for another process").Because(err)
}
