// Command confineprobe confines itself as a WebAssembly worker does and then tries one thing. Tests start it: a
// process that is confined cannot be a test any more.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/confine"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func run(what string) error {
	switch what {
	case "inherit":
		if err := confine.CloseInherited(); err != nil {
			return err
		}
		return syscall.Exec("/proc/self/exe", []string{"confineprobe", "descriptors"}, []string{})
	case "descriptors":
		return descriptors()
	case "wait":
		fmt.Printf("environment %q\n", os.Environ())
		for { // until it is killed; select{} would be taken for a deadlock
			_ = unix.Pause()
		}
	}
	runtime.GOMAXPROCS(2)
	call, isCall := calls()[what]               // they look at this process, which is not allowed later
	time.AfterFunc(time.Hour, func() {}).Stop() // makes the runtime's poller
	limits := confine.WorkerLimits{DataBytes: 512 << 20, CPUSeconds: 1, OpenFiles: 16, Threads: 64}
	cpu := make(chan os.Signal, 1)
	signal.Notify(cpu, syscall.SIGXCPU)
	if err := confine.Worker(limits, nil); err != nil {
		return err
	}
	fmt.Println("confined")
	switch what {
	case "work":
		return work()
	case "memory":
		return memory()
	case "spin":
		return spin(cpu)
	}
	if !isCall {
		return fmt.Errorf("nothing is called %q", what)
	}
	fmt.Println("survived:", call())
	return nil
}

func descriptors() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		// The descriptor that listed them is among them and gone.
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			fmt.Println("open", target)
		}
	}
	return nil
}

// work does what a worker does for a living: threads, memory, garbage collection, timers.
func work() error {
	var wait sync.WaitGroup
	for i := range 64 {
		wait.Go(func() {
			kept := make([][]byte, 0, 100)
			for range 100 {
				kept = append(kept, slices.Repeat([]byte{byte(i)}, 10_000))
			}
			runtime.GC()
			<-time.After(time.Millisecond)
			runtime.KeepAlive(kept)
		})
	}
	wait.Wait()
	fmt.Println("survived: work")
	return nil
}

func memory() error {
	var kept [][]byte
	for range 64 {
		kept = append(kept, slices.Repeat([]byte{1}, 64<<20))
	}
	fmt.Println("survived:", len(kept))
	return nil
}

func spin(cpu <-chan os.Signal) error {
	go func() {
		<-cpu
		fmt.Println("told")
	}()
	for n := 0; ; n++ {
		if n < 0 {
			return nil
		}
	}
}

func calls() map[string]func() syscall.Errno {
	raw := func(trap uintptr, args ...uintptr) func() syscall.Errno {
		return func() syscall.Errno {
			var a [6]uintptr
			copy(a[:], args)
			_, _, errno := unix.RawSyscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5])
			return errno
		}
	}
	parent, self := uintptr(os.Getppid()), uintptr(os.Getpid())
	const exec, data = unix.PROT_READ | unix.PROT_EXEC, unix.PROT_READ | unix.PROT_WRITE
	const private = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	page := uintptr(os.Getpagesize())
	none := ^uintptr(0)
	return map[string]func() syscall.Errno{
		"open":             raw(unix.SYS_OPEN),
		"openat":           raw(unix.SYS_OPENAT, none),
		"openat2":          raw(unix.SYS_OPENAT2, none),
		"stat":             raw(unix.SYS_STAT),
		"socket":           raw(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0),
		"socketpair":       raw(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM),
		"connect":          raw(unix.SYS_CONNECT, none),
		"sendmsg":          raw(unix.SYS_SENDMSG, none),
		"recvmsg":          raw(unix.SYS_RECVMSG, none),
		"execve":           raw(unix.SYS_EXECVE),
		"execveat":         raw(unix.SYS_EXECVEAT, none),
		"fork":             raw(unix.SYS_FORK),
		"vfork":            raw(unix.SYS_VFORK),
		"clone process":    raw(unix.SYS_CLONE, uintptr(unix.SIGCHLD)),
		"clone user ns":    raw(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD)),
		"clone3":           raw(unix.SYS_CLONE3),
		"ptrace":           raw(unix.SYS_PTRACE, unix.PTRACE_ATTACH, parent),
		"process_vm_readv": raw(unix.SYS_PROCESS_VM_READV, parent),
		"io_uring_setup":   raw(unix.SYS_IO_URING_SETUP),
		"mount":            raw(unix.SYS_MOUNT),
		"unshare":          raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
		"setns":            raw(unix.SYS_SETNS, none),
		"bpf":              raw(unix.SYS_BPF),
		"keyctl":           raw(unix.SYS_KEYCTL),
		"userfaultfd":      raw(unix.SYS_USERFAULTFD),
		"perf_event_open":  raw(unix.SYS_PERF_EVENT_OPEN),
		"memfd_create":     raw(unix.SYS_MEMFD_CREATE),
		"pidfd_open":       raw(unix.SYS_PIDFD_OPEN, parent),
		"kill parent":      raw(unix.SYS_KILL, parent),
		"tgkill parent":    raw(unix.SYS_TGKILL, parent, parent, 0),
		"tkill parent":     raw(unix.SYS_TKILL, parent, 0),
		"seccomp":          raw(unix.SYS_SECCOMP, none),
		"prctl":            raw(unix.SYS_PRCTL, none),
		"prlimit64":        raw(unix.SYS_PRLIMIT64),
		"setuid":           raw(unix.SYS_SETUID, 0),
		"capset":           raw(unix.SYS_CAPSET),
		"ioctl":            raw(unix.SYS_IOCTL, 0),
		"fcntl":            raw(unix.SYS_FCNTL, 0),
		"dup":              raw(unix.SYS_DUP, 0),
		"fstat":            raw(unix.SYS_FSTAT, 0),
		"getdents64":       raw(unix.SYS_GETDENTS64, 0),
		"mmap exec":        raw(unix.SYS_MMAP, 0, page, exec, private, none),
		"mmap all":         raw(unix.SYS_MMAP, 0, page, data|unix.PROT_EXEC, private, none),
		"mmap high bits":   raw(unix.SYS_MMAP, 0, page, data|1<<32, private, none),
		"mprotect exec":    raw(unix.SYS_MPROTECT, 0, page, exec),
		"pkey_mprotect":    raw(unix.SYS_PKEY_MPROTECT, 0, page, exec),
		"x32 getpid":       raw(0x40000000 | unix.SYS_GETPID),
		// These are allowed: the test that expects death must be able to see survival.
		"allowed getpid": raw(unix.SYS_GETPID),
		"allowed mmap":   raw(unix.SYS_MMAP, 0, page, data, private, none),
		"allowed tgkill": raw(unix.SYS_TGKILL, self, self, 0),
	}
}
