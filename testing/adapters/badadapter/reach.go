package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/sdk"
)

// reach tries to have every effect that an adapter must not have by itself, says how each ended, and goes on as if
// nothing had been. What it tries outside is beside the folder in which its host makes folders of sockets.
func reach(ctx context.Context, h sdk.Host, in sdk.Start) {
	own := os.Getenv("PLUGIN_UNIX_SOCKET_DIR")
	beside := func(name string) string { return filepath.Join(own, "..", "..", "..", name) }
	outside, stays := beside("outside"), beside("stays")
	for _, try := range []struct {
		what string
		do   func() error
	}{
		{"socket", func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); return err }},
		{"datagram", func() error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0); return err }},
		{"datagram of a pair", func() error { _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0); return err }},
		{"empty by reading", func() error { return opened(stays, unix.O_TRUNC, func(int) error { return nil }) }},
		{"empty by neither", func() error { return opened(stays, unix.O_TRUNC|unix.O_ACCMODE, func(int) error { return nil }) }},
		{"lock", func() error {
			return opened(stays, 0, func(fd int) error { return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) })
		}},
		{"lock a range", func() error {
			return opened(stays, 0, func(fd int) error {
				return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
			})
		}},
		{"set a flag", func() error {
			return opened(stays, 0, func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, 0x40) })
		}},
		{"outlive its host", func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) }},
		{"connect", func() error { _, err := net.Dial("unix", beside("listens")); return err }},
		{"exec", func() error { return exec.Command("/bin/true").Run() }},
		{"exec memory", memory},
		{"write", func() error { return os.WriteFile(outside, []byte("x"), 0o600) }},
		{"make a folder", func() error { return os.Mkdir(outside, 0o700) }},
		{"rename", func() error { return os.Rename(stays, outside) }},
		{"link", func() error { return os.Link(stays, filepath.Join(own, "link")) }},
		{"shorten", func() error { return os.Truncate(stays, 0) }},
		{"remove", func() error { return os.Remove(stays) }},
		{"change a mode", func() error { return os.Chmod(stays, 0o777) }},
		{"signal its parent", func() error { return kill(unix.Getppid()) }},
		{"signal a process", func() error { return kill(host()) }},
		{"trace", func() error { return unix.PtraceAttach(unix.Getpid()) }},
		{"mount", func() error { return unix.Mount("none", own, "tmpfs", 0, "") }},
		{"unshare", func() error { return unix.Unshare(unix.CLONE_NEWNET) }},
		{"launch something else", func() error {
			l := in.Bundle.Launch()
			l.Parameters.Arguments = append(l.Parameters.Arguments, "--more")
			_, err := h.Launch(ctx, l)
			return err
		}},
	} {
		answer := "done"
		if err := try.do(); err != nil {
			answer = "refused: " + err.Error()
		}
		h.Log(ctx, sdk.LevelInfo, "tried to "+try.what+": "+answer)
	}
	// What it may: a file of its own, and a process that it leaves behind.
	if err := os.WriteFile(filepath.Join(own, "own"), nil, 0o600); err != nil {
		h.Log(ctx, sdk.LevelInfo, "its own folder: "+err.Error())
	}
	h.Log(ctx, sdk.LevelInfo, fmt.Sprint("left behind: ", leave()))
	h.Log(ctx, sdk.LevelInfo, "may: "+capabilities())
}

// opened does something with a file that it opens.
func opened(name string, flags int, do func(fd int) error) error {
	fd, err := unix.Open(name, flags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd)
}

func memory() error {
	_, err := unix.MemfdCreate("x", 0)
	return err
}

// host is the number that the kernel's own word has for the process which started this one.
func host() int {
	raw, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return -1
	}
	var pid, parent int
	var name, state string
	if _, err := fmt.Sscan(string(raw), &pid, &name, &state, &parent); err != nil {
		return -1
	}
	return parent
}

func kill(pid int) error {
	if pid == 0 {
		return fmt.Errorf("it has no name here")
	}
	return unix.Kill(pid, 0)
}

// leave forks a process that waits in a session of its own, and returns whether that worked. It holds nothing by which its
// host would notice it. Should nothing else end it, it ends after ten minutes.
func leave() bool {
	long := unix.Timespec{Sec: 600}
	pid, _, errno := syscall.RawSyscall(syscall.SYS_FORK, 0, 0, 0)
	if errno == 0 && pid == 0 {
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
		_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 0, 1<<31-1, 0)
		_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&long)), 0, 0)
		for {
			_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return errno == 0
}

// capabilities are the sets of the process that are not empty.
func capabilities() string {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	var sets []string
	for line := range strings.Lines(string(raw)) {
		if name, set, ok := strings.Cut(strings.TrimSpace(line), ":\t"); ok && strings.HasPrefix(name, "Cap") && name != "CapBnd" && strings.Trim(set, "0") != "" {
			sets = append(sets, name)
		}
	}
	return "nothing" + strings.Join(sets, " ")
}
