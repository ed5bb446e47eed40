package e2e_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a condition may take to come true. Nothing waits for it to pass
// but a test that fails.
const patience = time.Minute

// runsKey is where a script keeps what it runs in the background.
type runsKey struct{}

// running is a program in the background.
type running struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer
	done   chan struct{}

	// mu guards what it printed to standard error so far; changed is closed and replaced
	// with each line of it.
	mu      sync.Mutex
	stderr  bytes.Buffer
	changed chan struct{}
}

// begin starts a program in the background.
func begin(cmd *exec.Cmd) (*running, error) {
	r := &running{cmd: cmd, done: make(chan struct{}), changed: make(chan struct{})}
	cmd.Stdout = &r.stdout
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(r.done)
		r.read(errs)
		// How it ended is read from the process state.
		_ = cmd.Wait()
	}()
	return r, nil
}

func (r *running) read(errs io.Reader) {
	lines := bufio.NewReader(errs)
	for {
		line, err := lines.ReadString('\n')
		r.mu.Lock()
		r.stderr.WriteString(line)
		close(r.changed)
		r.changed = make(chan struct{})
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// said returns what it printed to standard error, and a channel that is closed when it
// has printed more.
func (r *running) said() (string, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stderr.String(), r.changed
}

// await waits until it has printed a text to standard error.
func (r *running) await(text string) error {
	late := time.After(patience)
	for {
		said, more := r.said()
		if strings.Contains(said, text) {
			return nil
		}
		select {
		case <-more:
		case <-r.done:
			if said, _ := r.said(); strings.Contains(said, text) {
				return nil
			}
			return fmt.Errorf("it ended with %v before it said %q:\n%s", r.cmd.ProcessState, text, said)
		case <-late:
			return fmt.Errorf("it did not say %q:\n%s", text, said)
		}
	}
}

// end waits for its end and returns its exit status, or 128 and the signal.
func (r *running) end() (int, error) {
	select {
	case <-r.done:
	case <-time.After(patience):
		return 0, errors.Join(errors.New("it does not end"), r.cmd.Process.Kill())
	}
	if s := r.cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signaled() {
		return 128 + int(s.Signal()), nil
	}
	return r.cmd.ProcessState.ExitCode(), nil
}

func runs(ts *script) map[string]*running { return ts.Value(runsKey{}).(map[string]*running) }

func find(ts *script, args []string, n int) (*running, error) {
	if len(args) < n {
		return nil, errUsage
	}
	r, ok := runs(ts)[args[0]]
	if !ok {
		return nil, fmt.Errorf("nothing named %s was started", args[0])
	}
	return r, nil
}

func start(ts *script, args []string) error {
	if len(args) < 2 {
		return errUsage
	}
	r, err := begin(command(ts, args[1:]))
	if err != nil {
		return err
	}
	runs(ts)[args[0]] = r
	ts.Defer(func() {
		_ = r.cmd.Process.Kill()
		<-r.done
	})
	return nil
}

func await(ts *script, args []string) error {
	r, err := find(ts, args, 2)
	if err != nil {
		return err
	}
	return r.await(args[1])
}

func sendSignal(ts *script, args []string) error {
	if len(args) != 3 {
		args = append(args, "")
	}
	r, err := find(ts, args, 3)
	if err != nil {
		return err
	}
	number := unix.SignalNum("SIG" + args[1])
	if number == 0 {
		return errUsage
	}
	if program := args[2]; program != "" {
		for pid, exe := range sealedChildren(r.cmd.Process.Pid) {
			if strings.Contains(exe, program) {
				return unix.Kill(pid, number)
			}
		}
		return fmt.Errorf("%s has no child that runs %s", args[0], program)
	}
	if err := r.cmd.Process.Signal(number); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func ended(ts *script, args []string) error {
	r, err := find(ts, args, 2)
	if err != nil {
		return err
	}
	got, err := r.end()
	if err != nil {
		return err
	}
	said, _ := r.said()
	ts.Logf("[%s]\n%s%s", args[0], r.stdout.String(), said)
	if len(args) == 3 {
		err = errors.Join(os.WriteFile(ts.MkAbs(args[2]+".out"), r.stdout.Bytes(), 0o644),
			os.WriteFile(ts.MkAbs(args[2]+".err"), []byte(said), 0o644))
	}
	if !slices.Contains(strings.Split(args[1], "|"), strconv.Itoa(got)) {
		return errors.Join(err, fmt.Errorf("exit status %d, want %s", got, args[1]))
	}
	return err
}

func noOrphans(_ *script, _ []string) error { return orphansGone() }

// orphansGone waits until no orphan lives. Children that the kernel kills with their
// parent are still there for a moment after it.
func orphansGone() error {
	for _, pid := range orphans() {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // It is gone.
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		_ = unix.Close(fd)
		if err == nil && n == 0 {
			return fmt.Errorf("process %d outlived the writ that started it", pid)
		}
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
	return nil
}

// orphans returns the living children of this process that it did not start itself: writ
// starts its children from sealed memory, and this test starts none that way.
func orphans() []int { return slices.Collect(maps.Keys(sealedChildren(os.Getpid()))) }

// sealedChildren returns the living children of a process that run from sealed memory,
// with the name of what each runs.
func sealedChildren(parent int) map[int]string {
	entries, _ := os.ReadDir("/proc")
	found := map[int]string{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		exe, err := os.Readlink("/proc/" + e.Name() + "/exe")
		if err != nil || !strings.HasPrefix(exe, "/memfd:") {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid; the name may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			found[pid] = exe
		}
	}
	return found
}
