package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/reason"
)

// The files of a resource.
const (
	lockFile = "lock"
	pidFile  = "pid"
)

// resolveTimeout bounds the clean-up after a failed start: a killed process is gone within it on any host that
// still schedules.
const resolveTimeout = 20 * time.Second

// State is what Resolve found and left.
type State struct {
	// Gone says that nothing bears the name any more: no process, no directory. It is true whenever Resolve
	// returns without error.
	Gone bool
	// WasAlive says that a worker of that name lived and was killed.
	WasAlive bool
	// Existed says that there was a directory of that name.
	Existed bool
}

// process identifies a process on one boot of a host.
type process struct {
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"`
}

// Resolve answers what became of the worker of that name, by its name alone, and ends it: whatever holds its
// lock is killed, its lock is waited for, and its directory is removed. It may be called any number of times, by
// any process, whether or not there ever was such a worker. It waits as long as ctx allows.
func Resolve(ctx context.Context, dir, name string) (State, error) {
	if err := checkName(name); err != nil {
		return State{}, err
	}
	root := filepath.Join(dir, name)
	if _, err := os.Lstat(root); errors.Is(err, fs.ErrNotExist) {
		return State{Gone: true}, nil
	} else if err != nil {
		return State{}, unresolved(root, err)
	}
	state := State{Existed: true}
	lock, err := os.OpenFile(filepath.Join(root, lockFile), os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// The host died between making the directory and its lock: nothing was started yet.
	case err != nil:
		return state, unresolved(root, err)
	default:
		state.WasAlive, err = release(ctx, root, lock)
		if err != nil {
			return state, unresolved(root, err)
		}
	}
	if err := os.RemoveAll(root); err != nil {
		return state, unresolved(root, err)
	}
	state.Gone = true
	return state, nil
}

// release kills whoever holds the lock and returns once the lock was free. It closes the file.
func release(ctx context.Context, root string, lock *os.File) (wasAlive bool, err error) {
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return false, lock.Close()
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return false, errors.Join(fmt.Errorf("lock: %w", err), lock.Close())
	}
	killed, err := killHolders(root, lock)
	if err != nil {
		return killed, errors.Join(err, lock.Close())
	}
	// The kernel frees the lock when the last holder is gone. The wait itself cannot be interrupted; when ctx ends
	// first, the goroutine stays until the holder dies, and then closes the file.
	free := make(chan error, 1)
	go func() {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX)
		for errors.Is(err, unix.EINTR) {
			err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
		}
		free <- errors.Join(err, lock.Close())
	}()
	select {
	case err := <-free:
		return true, err
	case <-ctx.Done():
		return true, fmt.Errorf("wait for the worker's end: %w", ctx.Err())
	}
}

// killHolders kills the worker that keeps the lock file: the one that the pid file names or, since a host may have
// died before it wrote that, whichever /proc shows. Where neither shows one, there is nothing to kill: the holder
// is another host that resolves the name, or a worker on its way out.
func killHolders(root string, lock *os.File) (bool, error) {
	var want unix.Stat_t
	if err := unix.Fstat(int(lock.Fd()), &want); err != nil {
		return false, fmt.Errorf("stat lock: %w", err)
	}
	killed := false
	if p, ok := readPID(root); ok {
		hit, err := confine.KillIf(p.PID, func() (bool, error) {
			t, err := confine.StartTime(p.PID)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
				return false, nil
			}
			return t == p.StartTime, err
		})
		if err != nil || hit {
			return hit, err
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false, fmt.Errorf("list processes: %w", err)
	}
	for _, e := range entries {
		pid, ok := number(e.Name())
		if !ok || !holds(pid, want) {
			continue
		}
		hit, err := confine.KillIf(pid, func() (bool, error) { return holds(pid, want), nil })
		if err != nil {
			return killed, err
		}
		killed = killed || hit
	}
	return killed, nil
}

// holds reports whether the process is a worker that keeps the file: it runs from sealed memory and has the file
// where a worker has its lock. That it has the file open at all is not enough, since another host that resolves
// the same name has that too. A process that is gone, or another user's, holds nothing.
func holds(pid int, want unix.Stat_t) bool {
	var got unix.Stat_t
	if unix.Stat(fmt.Sprintf("/proc/%d/fd/%d", pid, wire.FDLock), &got) != nil || got.Dev != want.Dev || got.Ino != want.Ino {
		return false
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && strings.HasPrefix(exe, "/memfd:writ:")
}

// writePID notes the process beside the lock, whole or not at all. It is a hint for Resolve, not its proof.
func writePID(root string, child *confine.Child) error {
	data, err := canonical.Marshal(process{PID: child.PID(), StartTime: child.StartTime()})
	if err != nil {
		return fmt.Errorf("encode pid file: %w", err)
	}
	tmp := filepath.Join(root, pidFile+".new")
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return fmt.Errorf("write pid file: %w", err)
	}
	if err := os.Rename(tmp, filepath.Join(root, pidFile)); err != nil {
		return fmt.Errorf("write pid file: %w", err)
	}
	return nil
}

func readPID(root string) (process, bool) {
	data, err := os.ReadFile(filepath.Join(root, pidFile))
	if err != nil {
		return process{}, false
	}
	var p process
	if err := canonical.DecodeCanonical(data, &p); err != nil || p.PID <= 1 || p.StartTime == 0 {
		return process{}, false
	}
	return p, true
}

func number(s string) (int, bool) {
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' || n > 1<<30 {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, s != ""
}

func checkName(name string) error {
	if name == "" || len(name) > 200 || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return reason.New(reason.InternalBug, "a resource has an unusable name", fmt.Sprintf("%q", name), "")
	}
	return nil
}

func unresolved(root string, err error) error {
	return reason.New(reason.OperationUnknownOutcome, "what became of the worker cannot be said yet", root,
		"run the command again; nothing was assumed").Because(err)
}
