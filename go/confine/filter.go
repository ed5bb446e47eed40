package confine

import "golang.org/x/sys/unix"

// threadFlags are the flags, and the only ones, with which the Go runtime makes a thread on amd64.
const threadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM |
	unix.CLONE_THREAD | unix.CLONE_SETTLS

// allowed is what a Go program needs that computes, and reads and writes descriptors it has already.
func allowed() []rule {
	readWrite, thread, self := uint32(unix.PROT_READ|unix.PROT_WRITE), uint32(threadFlags), uint32(unix.Getpid())
	naming := uint32(unix.PR_SET_VMA)
	rules := calls(
		unix.SYS_FUTEX, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_PREAD64, unix.SYS_CLOSE,
		unix.SYS_NANOSLEEP, unix.SYS_SCHED_YIELD, unix.SYS_EPOLL_PWAIT,
		unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGPROCMASK, unix.SYS_SIGALTSTACK,
		// What the kernel puts in place of an interrupted futex or nanosleep after SIGSTOP or a freeze.
		unix.SYS_RESTART_SYSCALL,
		// Served by the vDSO, and as a system call where the clock source does not allow that.
		unix.SYS_CLOCK_GETTIME,
		unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_MADVISE, unix.SYS_MUNMAP, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	)
	return append(rules,
		rule{number: unix.SYS_MMAP, arg: 2, among: &readWrite},
		rule{number: unix.SYS_MPROTECT, arg: 2, among: &readWrite},
		rule{number: unix.SYS_CLONE, arg: 0, equal: &thread},
		// Since Go 1.25 the runtime names its mappings, on kernels that can.
		rule{number: unix.SYS_PRCTL, arg: 0, equal: &naming},
		// The runtime interrupts its own threads; nobody else's.
		rule{number: unix.SYS_TGKILL, arg: 0, equal: &self},
	)
}

// probation allows in addition what measuring needs and what loads the final filter. Everything else answers
// EPERM, so that a denial can be tried and reported.
func probation() []unix.SockFilter {
	measuring := calls(unix.SYS_FSTAT, unix.SYS_LSEEK, unix.SYS_GETDENTS64, unix.SYS_READLINKAT, unix.SYS_PRLIMIT64, unix.SYS_GETRLIMIT,
		unix.SYS_GETUID, unix.SYS_SECCOMP)
	return assemble(append(allowed(), measuring...), unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM))
}

// final kills the process at anything that is not allowed.
func final() []unix.SockFilter { return assemble(allowed(), unix.SECCOMP_RET_KILL_PROCESS) }

func calls(numbers ...uint32) []rule {
	out := make([]rule, 0, len(numbers))
	for _, n := range numbers {
		out = append(out, rule{number: n})
	}
	return out
}
