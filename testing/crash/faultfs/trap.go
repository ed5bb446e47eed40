package faultfs

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// trapFD is where a process finds the socket to whoever watches it.
const trapFD = 3

// trapped are the calls that the kernel asks about.
func trapped() []uint32 {
	return []uint32{
		unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FTRUNCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
		unix.SYS_UNLINK, unix.SYS_UNLINKAT, unix.SYS_MKDIR, unix.SYS_MKDIRAT,
		// Not seen, and so not allowed: a program that begins to use one must be taught here.
		unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_FALLOCATE, unix.SYS_TRUNCATE, unix.SYS_RENAME, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2,
		unix.SYS_LINKAT, unix.SYS_COPY_FILE_RANGE,
	}
}

// filter lets the kernel ask about the trapped calls, and about opening that may create.
func filter() []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	equal := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	const ask, allow = unix.SECCOMP_RET_USER_NOTIF, unix.SECCOMP_RET_ALLOW
	const number, architecture, flagsOfOpen, flagsOfOpenat = 0, 4, 16 + 8, 16 + 16
	p := []unix.SockFilter{
		load(architecture), equal(unix.AUDIT_ARCH_X86_64, 1, 0), answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(number),
	}
	for _, open := range []struct{ number, flags uint32 }{{unix.SYS_OPEN, flagsOfOpen}, {unix.SYS_OPENAT, flagsOfOpenat}} {
		p = append(p, equal(open.number, 0, 4), load(open.flags),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.O_CREAT | unix.O_TRUNC, Jt: 0, Jf: 1},
			answer(ask), answer(allow))
	}
	for _, n := range trapped() {
		p = append(p, equal(n, 0, 1), answer(ask))
	}
	return append(p, answer(allow))
}

// Trap has the kernel ask about every thread of this process from now on, and hands the
// answering to whoever started the process with Start.
func Trap() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("trap: %w", err)
	}
	code := filter()
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("trap: %w", errno)
	}
	// sendmsg is not trapped: nobody answers yet.
	if err := unix.Sendmsg(trapFD, []byte{0}, unix.UnixRights(int(listener)), nil, 0); err != nil {
		return fmt.Errorf("trap: send the listener: %w", err)
	}
	return errors.Join(unix.Close(int(listener)), os.NewFile(trapFD, "trap").Close())
}
