package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/reason"
)

// StartRequest says which worker to start, under which name.
type StartRequest struct {
	// Binary is the sealed worker. Starter is the host's one starter.
	Binary  *pin.Sealed
	Starter *confine.Starter
	// Dir is the directory of workspaces; it exists. Name names the resource in it, once: it is made from the
	// attempt and its fence.
	Dir, Name string
	Limits    Limits
	// Order is what the worker is started for. It serves no other.
	Order Order
}

// Start makes the directory of the resource, takes its lock, starts the worker, and gives the lock to it. It
// fails with environment.resource_exists when the name was used before, environment.unsupported for limits
// outside their range, and environment.start_failed. After a failure nothing of the name is left.
func Start(ctx context.Context, req StartRequest) (*Worker, error) {
	if err := checkName(req.Name); err != nil {
		return nil, err
	}
	if err := req.Limits.Check(); err != nil {
		return nil, err
	}
	dir := filepath.Join(req.Dir, req.Name)
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil, reason.New(reason.EnvironmentResourceExists, "a worker of that name was started before", dir,
			"names are used once; resolve what bears it, and make a new attempt")
	} else if err != nil {
		return nil, reason.New(reason.EnvironmentStartFailed, "the directory of the worker cannot be made", dir, "see the cause").Because(err)
	}
	w, err := launch(ctx, req)
	if err == nil {
		hello := wire.Request{Verb: wire.VerbHello, Hello: &wire.Hello{Name: req.Name, Limits: req.Limits}}
		if _, _, err = w.call(ctx, hello, nil); err == nil {
			return w, nil
		}
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTimeout)
	defer cancel()
	if w != nil {
		return nil, fmt.Errorf("start worker %s: %w", req.Name, errors.Join(err, w.Close(cleanup)))
	}
	_, resolveErr := Resolve(cleanup, req.Dir, req.Name)
	return nil, fmt.Errorf("start worker %s: %w", req.Name, errors.Join(err, resolveErr))
}

func launch(ctx context.Context, req StartRequest) (*Worker, error) {
	// What the child gets is closed here in any case: after the start only the child holds it.
	var given []*os.File
	defer func() {
		for _, f := range given {
			_ = f.Close()
		}
	}()
	lock, err := takeLock(filepath.Join(req.Dir, req.Name, lockFile))
	if err != nil {
		return nil, err
	}
	given = append(given, lock)
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	given = append(given, theirs)
	errR, errW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make pipe: %w", err), ours.Close())
	}
	given = append(given, errW)
	cmd := req.Binary.Command(nil, theirs, lock)
	cmd.Stderr = errW
	child, err := req.Starter.Start(ctx, cmd)
	if err != nil {
		return nil, errors.Join(err, ours.Close(), errR.Close())
	}
	w := &Worker{dir: req.Dir, name: req.Name, order: req.Order, child: child, socket: ours, stderr: newCapture(errR)}
	if err := writePID(filepath.Join(req.Dir, req.Name), child); err != nil {
		return w, err
	}
	return w, nil
}

// takeLock creates the lock file and locks it. The lock belongs to the open file, not to the process: it lives as
// long as anybody holds a copy of the descriptor, and soon only the worker does.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// socketPair returns the host's end, which the Go poller serves, so that deadlines work on it, and the child's,
// which blocks.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "worker socket, child's end")
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("make socket non-blocking: %w", err), unix.Close(fds[0]), theirs.Close())
	}
	return os.NewFile(uintptr(fds[0]), "worker socket"), theirs, nil
}
