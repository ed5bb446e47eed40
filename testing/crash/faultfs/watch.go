package faultfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Run runs a process that traps itself, with its standard output and everything that it
// does below the folder base shown to the layer, and returns when it has ended. The error
// says that it could not be watched; how it ended is in cmd.ProcessState.
func Run(cmd *exec.Cmd, base string, l Layer) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	cmd.ExtraFiles = []*os.File{theirs}
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	listener, err := receive(pair[0])
	if err == nil {
		w := &watcher{listener: listener, base: base, layer: l}
		err = w.serve()
		_ = unix.Close(listener)
	}
	if err != nil {
		_ = cmd.Process.Kill()
	}
	var exit *exec.ExitError
	if werr := cmd.Wait(); werr != nil && !errors.As(werr, &exit) {
		err = errors.Join(err, werr)
	}
	return err
}

// receive takes the listener from the socket.
func receive(socket int) (int, error) {
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("watch: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return 0, fmt.Errorf("watch: the process ended before it trapped itself: %v", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, fmt.Errorf("watch: no listener: %v", err)
	}
	return fds[0], nil
}

// The kernel's structures of <linux/seccomp.h>, and their calls.
type (
	notification struct {
		id         uint64
		pid, flags uint32
		number     int32
		arch       uint32
		ip         uint64
		args       [6]uint64
	}
	response struct {
		id    uint64
		val   int64
		errno int32
		flags uint32
	}
)

const (
	ioctlReceive = 0xc0502100
	ioctlSend    = 0xc0182101
	goOn         = 1 // SECCOMP_USER_NOTIF_FLAG_CONTINUE
)

type watcher struct {
	listener int
	base     string
	layer    Layer
}

// serve answers until nobody is left who could ask.
func (w *watcher) serve() error {
	for {
		poll := []unix.PollFd{{Fd: int32(w.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			return nil
		}
		var n notification
		if err := ioctl(w.listener, ioctlReceive, unsafe.Pointer(&n)); err != nil {
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINTR) {
				continue // Whoever asked is gone.
			}
			return fmt.Errorf("watch: receive: %w", err)
		}
		r, err := w.answer(n)
		if err != nil {
			return fmt.Errorf("watch: call %d: %w", n.number, err)
		}
		r.id = n.id
		if err := ioctl(w.listener, ioctlSend, unsafe.Pointer(&r)); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("watch: answer: %w", err)
		}
	}
}

func ioctl(fd int, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// answer decides one call.
func (w *watcher) answer(n notification) (response, error) {
	op, seen, err := w.op(n)
	if err != nil {
		return response{}, err
	}
	if !seen {
		return response{flags: goOn}, nil
	}
	var f Fault
	if op.Kind != Say {
		f = w.layer.Decide(op)
	}
	switch {
	case op.Kind == Write && f.Bytes > 0:
		op.Data = op.Data[:min(f.Bytes, len(op.Data))]
		if err := w.write(n, op); err != nil {
			return response{}, err
		}
		w.layer.Done(op)
		return response{val: int64(len(op.Data))}, nil
	case f.Errno != 0:
		op.Failed = true
		w.layer.Done(op)
		return response{errno: -int32(f.Errno)}, nil
	}
	w.layer.Done(op)
	return response{flags: goOn}, nil
}

// op reads what a call is about; seen says whether it concerns the layer.
func (w *watcher) op(n notification) (op Op, seen bool, err error) {
	fd := int32(n.args[0])
	switch n.number {
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		if n.number == unix.SYS_WRITE && fd == 1 {
			op.Kind = Say
		} else if op.Kind = Write; !w.open(n, fd, &op) {
			return op, false, nil
		}
		if op.Data, err = memory(n.pid, n.args[1], int(n.args[2])); err != nil {
			return op, false, err
		}
		op.Offset = int64(n.args[3])
		if n.number == unix.SYS_WRITE && op.Kind == Write {
			op.Offset, err = position(n.pid, fd)
		}
		return op, true, err
	case unix.SYS_FTRUNCATE:
		op.Kind, op.Offset = Truncate, int64(n.args[1])
		return op, w.open(n, fd, &op), nil
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		op.Kind = Sync
		return op, w.open(n, fd, &op), nil
	case unix.SYS_OPEN, unix.SYS_OPENAT, unix.SYS_MKDIR, unix.SYS_MKDIRAT, unix.SYS_UNLINK, unix.SYS_UNLINKAT:
		return w.named(n)
	}
	return op, false, errors.New("it changes files in a way that is not watched")
}

// named reads a call that takes a path.
func (w *watcher) named(n notification) (op Op, seen bool, err error) {
	at, arg, flags := int32(unix.AT_FDCWD), 0, 1
	switch n.number {
	case unix.SYS_OPENAT, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT:
		at, arg, flags = int32(n.args[0]), 1, 2
	}
	raw, err := memory(n.pid, n.args[arg], unix.PathMax)
	if err != nil {
		return op, false, err
	}
	path, _, _ := strings.Cut(string(raw), "\x00")
	if !filepath.IsAbs(path) {
		link := fmt.Sprintf("/proc/%d/cwd", n.pid)
		if at != unix.AT_FDCWD {
			link = fmt.Sprintf("/proc/%d/fd/%d", n.pid, at)
		}
		from, err := os.Readlink(link)
		if err != nil {
			return op, false, err
		}
		path = filepath.Join(from, path)
	}
	if !w.below(path, &op) {
		return op, false, nil
	}
	_, err = os.Lstat(path)
	there := !errors.Is(err, fs.ErrNotExist)
	switch n.number {
	case unix.SYS_MKDIR, unix.SYS_MKDIRAT:
		op.Kind = MakeDir
		return op, !there, nil
	case unix.SYS_UNLINK, unix.SYS_UNLINKAT:
		op.Kind = Remove
		return op, there, nil
	}
	op.Kind = Create
	if there {
		op.Kind = Truncate
		return op, n.args[flags]&unix.O_TRUNC != 0, nil
	}
	return op, n.args[flags]&unix.O_CREAT != 0, nil
}

// open fills in the path of an open file.
func (w *watcher) open(n notification, fd int32, op *Op) bool {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, fd))
	return err == nil && w.below(path, op)
}

// below fills in a path below the watched folder.
func (w *watcher) below(path string, op *Op) bool {
	rel, err := filepath.Rel(w.base, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return false
	}
	op.Path = rel
	return true
}

// write writes a part of what the process wanted to write, in its place.
func (w *watcher) write(n notification, op Op) error {
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[0])), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(op.Data, op.Offset)
	return errors.Join(err, f.Close())
}

// memory reads the memory of a process, at most n bytes and at least one.
func memory(pid uint32, address uint64, n int) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, n)
	got, err := f.ReadAt(b, int64(address))
	if got == 0 && n > 0 {
		return nil, fmt.Errorf("read the memory of %d: %w", pid, err)
	}
	return b[:got], nil
}

// position is where the next write to an open file goes.
func position(pid uint32, fd int32) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, fd))
	if err != nil {
		return 0, err
	}
	var at int64
	_, after, _ := bytes.Cut(raw, []byte("pos:"))
	_, err = fmt.Sscan(string(after), &at)
	return at, err
}
