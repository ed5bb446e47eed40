package confine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// named is a call that makes or changes a name, with the argument that holds it.
type named struct {
	number uint32
	what   string
	arg    int
}

func naming() []named {
	return []named{
		{unix.SYS_CREAT, "create", 0}, {unix.SYS_MKDIR, "mkdir", 0}, {unix.SYS_MKDIRAT, "mkdir", 1},
		{unix.SYS_UNLINK, "unlink", 0}, {unix.SYS_UNLINKAT, "unlink", 1}, {unix.SYS_RMDIR, "rmdir", 0},
		{unix.SYS_RENAME, "rename", 1}, {unix.SYS_RENAMEAT, "rename", 3}, {unix.SYS_RENAMEAT2, "rename", 3},
		{unix.SYS_LINK, "link", 1}, {unix.SYS_LINKAT, "link", 3}, {unix.SYS_SYMLINK, "symlink", 1}, {unix.SYS_SYMLINKAT, "symlink", 2},
	}
}

// watch answers for a filter that asks: names are left to Landlock, and all else is denied.
type watch struct {
	fd     int
	folder string
	denied func(what string)
	// told counts what was told of.
	told int
}

// maxTold bounds what is told of one start: a flood costs the program its own time and nobody else's.
const maxTold = 100

func (w *watch) tell(what string) {
	if w.told++; w.told <= maxTold {
		w.denied(what)
	}
}

// The kernel's structures of a question and its answer.
type question struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type reply struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// run answers until nobody is left who could ask.
func (w *watch) run() {
	defer unix.Close(w.fd)
	for {
		fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		} else if err != nil || fds[0].Revents&unix.POLLIN == 0 {
			return
		}
		var q question
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&q))); errno != 0 {
			continue // Who asked is dead.
		}
		r := reply{id: q.id}
		if w.judge(q) {
			r.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
		} else {
			r.errno = -int32(unix.EPERM)
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(w.fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
	}
}

// judge reports whether the kernel may go on with a call, and tells of one that comes to nothing.
func (w *watch) judge(q question) bool {
	number := uint32(q.nr)
	for _, n := range append(naming(), named{unix.SYS_OPENAT, "write", 1}) {
		if n.number == number {
			if name, ok := w.outside(q, n.arg); ok {
				w.tell(n.what + " " + name)
			}
			return true // Landlock answers.
		}
	}
	w.tell(callName(number))
	return false
}

// outside returns the name that an argument holds, and whether it is known to lead out of the folder.
func (w *watch) outside(q question, arg int) (string, bool) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", q.pid))
	if err != nil {
		return "", false
	}
	defer memory.Close()
	raw := make([]byte, unix.PathMax)
	n, _ := memory.ReadAt(raw, int64(q.args[arg])) // to the end of what is mapped
	name, _, ended := bytes.Cut(raw[:n], []byte{0})
	path := filepath.Clean(string(name))
	if !ended || path == os.DevNull || path == w.folder || strings.HasPrefix(path, w.folder+"/") {
		return "", false
	}
	return path, true
}

// callName names the calls that a program is likely to try.
func callName(number uint32) string {
	switch number {
	case unix.SYS_SOCKET:
		return "socket"
	case unix.SYS_SOCKETPAIR:
		return "socketpair"
	case unix.SYS_FLOCK:
		return "flock"
	case unix.SYS_FCNTL:
		return "fcntl"
	case unix.SYS_IOCTL:
		return "ioctl"
	case unix.SYS_PRCTL:
		return "prctl"
	case unix.SYS_CONNECT:
		return "connect"
	case unix.SYS_EXECVEAT:
		return "execveat"
	case unix.SYS_MEMFD_CREATE:
		return "memfd_create"
	case unix.SYS_CHMOD, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2:
		return "chmod"
	case unix.SYS_PTRACE:
		return "ptrace"
	case unix.SYS_UNSHARE:
		return "unshare"
	case unix.SYS_MOUNT:
		return "mount"
	case unix.SYS_PIDFD_OPEN:
		return "pidfd_open"
	case unix.SYS_IO_URING_SETUP:
		return "io_uring_setup"
	case unix.SYS_BPF:
		return "bpf"
	}
	return fmt.Sprintf("system call %d", number)
}
