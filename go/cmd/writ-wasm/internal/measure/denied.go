package measure

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attempt is a system call that a worker must not be able to make, with arguments that do no harm should it be
// able to after all.
type attempt struct {
	name string
	call func() unix.Errno
}

// denied tries each call and returns "name ERROR" for each, "name allowed" for one that works. The order is the
// order of names.
func denied() []string {
	root := [...]byte{'/', 0}
	path := uintptr(unsafe.Pointer(&root[0]))
	raw := func(trap, a, b, c uintptr) func() unix.Errno {
		return func() unix.Errno {
			_, _, errno := unix.RawSyscall6(trap, a, b, c, 0, 0, 0)
			return errno
		}
	}
	closing := func(call func() (int, error)) func() unix.Errno {
		return func() unix.Errno {
			fd, err := call()
			if err == nil {
				_ = unix.Close(fd)
			}
			return number(err)
		}
	}
	parent := uintptr(unix.Getpid()) // kill with signal 0 tests for permission only
	none := ^uintptr(0)
	attempts := []attempt{
		{"bpf", raw(unix.SYS_BPF, none, 0, 0)},
		{"connect", raw(unix.SYS_CONNECT, none, 0, 0)},
		{"execve", raw(unix.SYS_EXECVE, 0, 0, 0)},
		{"execveat", raw(unix.SYS_EXECVEAT, none, 0, 0)},
		{"fork", fork},
		{"io_uring_setup", raw(unix.SYS_IO_URING_SETUP, 0, 0, 0)},
		{"keyctl", raw(unix.SYS_KEYCTL, none, 0, 0)},
		{"kill", raw(unix.SYS_KILL, parent, 0, 0)},
		{"memfd_create", closing(func() (int, error) { return unix.MemfdCreate("x", unix.MFD_CLOEXEC) })},
		{"mmap_exec", mmapExec},
		{"mount", raw(unix.SYS_MOUNT, 0, 0, 0)},
		{"mprotect_exec", mprotectExec},
		{"open", raw(unix.SYS_OPEN, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)},
		{"openat", closing(func() (int, error) { return unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0) })},
		{"pidfd_open", closing(func() (int, error) { return unix.PidfdOpen(unix.Getpid(), 0) })},
		{"process_vm_readv", raw(unix.SYS_PROCESS_VM_READV, parent, 0, 0)},
		{"ptrace", raw(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 0, 0)},
		{"setns", raw(unix.SYS_SETNS, none, 0, 0)},
		{"setuid", raw(unix.SYS_SETUID, none, 0, 0)},
		{"socket", closing(func() (int, error) { return unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) })},
		{"unshare", raw(unix.SYS_UNSHARE, 0, 0, 0)},
	}
	out := make([]string, 0, len(attempts))
	for _, a := range attempts {
		answer := "allowed"
		if errno := a.call(); errno != 0 {
			answer = unix.ErrnoName(errno)
		}
		out = append(out, a.name+" "+answer)
	}
	runtime.KeepAlive(&root)
	return out
}

func number(err error) unix.Errno {
	if err == nil {
		return 0
	}
	if errno, ok := err.(unix.Errno); ok {
		return errno
	}
	return unix.EIO
}

// fork must fail. Should it work, the copy of a Go process with one thread can do nothing but end.
func fork() unix.Errno {
	pid, _, errno := unix.RawSyscall(unix.SYS_FORK, 0, 0, 0)
	if errno == 0 && pid == 0 {
		for {
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
		}
	}
	return errno
}

func mmapExec() unix.Errno {
	b, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err == nil {
		_ = unix.Munmap(b)
	}
	return number(err)
}

func mprotectExec() unix.Errno {
	b, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return number(err)
	}
	err = unix.Mprotect(b, unix.PROT_READ|unix.PROT_EXEC)
	_ = unix.Munmap(b)
	return number(err)
}
