package confine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"unsafe"

	lls "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/reason"
)

// NewContained makes a starter of one program that is to have no effect of its own. What it starts, and all that comes of
// that, is bounded by the kernel before its first instruction:
//
//	files        nothing is made, written, removed or renamed outside of folder, no device is told anything (Landlock),
//	             and no mode, owner, attribute or time of a file is changed (seccomp)
//	programs     nothing is executed but the sealed memory that it was started from: no file (Landlock), no memory of its
//	             own (seccomp). A program that needs a loader is therefore none that can be started
//	network      no socket but stream sockets of this machine, and none of them connects to anything (seccomp); it may
//	             listen in folder
//	processes    a process namespace of its own, in which no other process can be named, signalled or looked at by its
//	             number, and with which whatever it left behind dies; a namespace for System V and message queues. It cannot
//	             outlive this process
//	locks        none on any file, no lease, and nothing but questions by ioctl (seccomp)
//	privileges   no_new_privs, and no capabilities, also for root
//	the rest     ptrace, io_uring, bpf, mounts, namespaces, keys, modules, clocks and reboot (seccomp)
//
// Reading is not bounded, also not where it takes something away, as from a named pipe. denied, if not nil, is told in a
// few words of each try that the filter answered, and of each name outside of folder that was to be made or written where
// Landlock answers; it is told one at a time and must not wait long. It is not told of a file that was not executed. Whoever
// takes pains can keep a name from being told of, and not from being denied. Start fails with environment.unsupported where
// the host cannot enforce all of it, and with environment.start_failed for a program that needs another one to be executed.
// The children die with the starter's thread, so one is made for each start; Close ends it.
func NewContained(folder string, denied func(what string)) *Starter {
	// The standard library tries once what it can do with processes. It must not try it on a thread that may not.
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Release()
	}
	s := newStarter()
	s.contain = func() error { return containThread(folder, denied) }
	s.namespaces = unix.CLONE_NEWPID | unix.CLONE_NEWIPC
	if !mayUnshare() {
		// Without a right of its own the host gets one inside a user namespace. Nobody is mapped into it.
		s.namespaces |= unix.CLONE_NEWUSER
	}
	go s.run()
	return s
}

// notContained says why a program was not started within its bounds.
func notContained(cmd *exec.Cmd, err error) error {
	switch {
	case errors.Is(err, unix.EACCES):
		return reason.New(reason.EnvironmentStartFailed, "the program needs a loader or an interpreter, which is not pinned and not executed", cmd.Args[0],
			"build it as one static executable, as CGO_ENABLED=0 does").Because(err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EINVAL):
		return unsupported("a process namespace of its own cannot be made for a program", cmd.Args[0], err)
	}
	return err
}

// containThread bounds the calling thread, which is locked, for ever: its children inherit the bounds.
func containThread(folder string, denied func(string)) error {
	if err := forsakePrivileges(); err != nil {
		return unsupported("the privileges of children cannot be taken away", "prctl", err)
	}
	if err := restrictWriting(folder); err != nil {
		return unsupported("Landlock cannot be applied", folder, err)
	}
	listener, err := filterThread(effects(denied != nil), denied != nil)
	if err == unix.EBUSY {
		// Somebody above this host listens already. Nothing is told then, and all is denied.
		listener, err = filterThread(effects(false), false)
	}
	if err != nil {
		return unsupported("the seccomp filter cannot be loaded", "seccomp", err)
	}
	if listener > 0 {
		go (&watch{fd: listener, folder: folder, denied: denied}).run()
	}
	return nil
}

// filterThread loads a program for the calling thread, and returns the descriptor that is asked before a denial.
func filterThread(program []unix.SockFilter, listen bool) (listener int, err error) {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	flags := uintptr(0)
	if listen {
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// writing are the rights by which something changes, as each version of Landlock learned to handle them.
func writing(abi int) uint64 {
	rights := uint64(lls.AccessFSWriteFile | lls.AccessFSRemoveDir | lls.AccessFSRemoveFile | lls.AccessFSMakeChar | lls.AccessFSMakeDir |
		lls.AccessFSMakeReg | lls.AccessFSMakeSock | lls.AccessFSMakeFifo | lls.AccessFSMakeBlock | lls.AccessFSMakeSym)
	if abi >= 2 {
		rights |= lls.AccessFSRefer
	}
	if abi >= 3 {
		rights |= lls.AccessFSTruncate
	}
	if abi >= 5 {
		rights |= lls.AccessFSIoctlDev
	}
	return rights
}

// restrictWriting denies the thread to change or execute any file, but to change what is in folder and to write to
// /dev/null, and, where the kernel knows it, to reach out by TCP, an abstract socket or a signal.
func restrictWriting(folder string) error {
	abi := LandlockABI()
	if abi < 1 {
		return unix.ENOSYS
	}
	attr := lls.RulesetAttr{HandledAccessFS: writing(abi) | lls.AccessFSExecute}
	if abi >= 4 {
		attr.HandledAccessNet = lls.AccessNetBindTCP | lls.AccessNetConnectTCP
	}
	if abi >= 6 {
		attr.Scoped = lls.ScopeAbstractUnixSocket | lls.ScopeSignal
	}
	ruleset, err := lls.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return fmt.Errorf("make ruleset: %w", err)
	}
	defer unix.Close(ruleset)
	const devices = lls.AccessFSMakeChar | lls.AccessFSMakeBlock | lls.AccessFSRefer | lls.AccessFSIoctlDev
	for path, allowed := range map[string]uint64{
		folder: writing(abi) &^ devices, "/dev/null": writing(abi) & (lls.AccessFSWriteFile | lls.AccessFSTruncate),
	} {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", path, err)
		}
		err = lls.LandlockAddPathBeneathRule(ruleset, &lls.PathBeneathAttr{ParentFd: fd, AllowedAccess: allowed}, 0)
		_ = unix.Close(fd)
		if err != nil {
			return fmt.Errorf("allow %s: %w", path, err)
		}
	}
	// This thread only: the host goes on as it is.
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("restrict: %w", errno)
	}
	return nil
}

// forsakePrivileges leaves the thread what it may do, and its children nothing: what a program gets when it is executed
// comes from the sets that are emptied here.
func forsakePrivileges() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header, sets, err := capabilities()
	if err != nil {
		return err
	}
	for i := range sets {
		sets[i].Inheritable = 0
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return err
	}
	if !holds(sets, unix.CAP_SETPCAP) {
		return nil // Who may not empty the set is not root, and gains nothing by it.
	}
	for c := uintptr(0); c < 64; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
			break // The kernel knows no more.
		} else if err != nil {
			return err
		}
	}
	return nil
}

// mayUnshare reports whether this host may make namespaces as it is.
func mayUnshare() bool {
	_, sets, err := capabilities()
	return err == nil && holds(sets, unix.CAP_SYS_ADMIN)
}

func capabilities() (unix.CapUserHeader, [2]unix.CapUserData, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	err := unix.Capget(&header, &sets[0])
	return header, sets, err
}

func holds(sets [2]unix.CapUserData, c uint) bool { return sets[c/32].Effective&(1<<(c%32)) != 0 }

// effects answers EPERM to every system call by which a program reaches outside of what Landlock and its namespaces
// bound, and lets all others through. Calls of another architecture kill the process. Where it asks, the watch answers
// in its place, and is asked about names too. It is not asked about programs: the first is executed by a child of this
// process that holds up the Go runtime until then, and with it whoever would answer.
func effects(asks bool) []unix.SockFilter {
	p := []unix.SockFilter{
		statement(load, offsetArch),
		jump(ifEqual, unix.AUDIT_ARCH_X86_64, 1, 0),
		statement(answer, unix.SECCOMP_RET_KILL_PROCESS),
		statement(load, offsetNumber),
		jump(ifAtLeast, x32Bit, 0, 1),
		statement(answer, unix.SECCOMP_RET_KILL_PROCESS),
	}
	deny := unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	p = append(p, truncating()...)
	if asks {
		deny = unix.SECCOMP_RET_USER_NOTIF
	}
	p = append(p, holding(deny)...)
	if asks {
		for _, n := range naming() {
			p = append(p, jump(ifEqual, n.number, 0, 1), statement(answer, deny))
		}
		const changes = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC
		p = append(p,
			jump(ifEqual, unix.SYS_OPENAT, 0, 4),
			statement(load, offsetArgs+2*8),
			jump(ifAnyBit, changes, 0, 1),
			statement(answer, deny),
			statement(answer, unix.SECCOMP_RET_ALLOW),
		)
	}
	for _, n := range reaching() {
		p = append(p, jump(ifEqual, n, 0, 1), statement(answer, deny))
	}
	const flags = unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC
	return append(p,
		jump(ifEqual, unix.SYS_SOCKET, 0, 7),
		statement(load, offsetArgs),
		jump(ifEqual, unix.AF_UNIX, 1, 0),
		statement(answer, deny),
		statement(load, offsetArgs+8),
		jump(ifAnyBit, ^uint32(unix.SOCK_STREAM|flags), 0, 1), // datagrams need no connection
		statement(answer, deny),
		statement(answer, unix.SECCOMP_RET_ALLOW),
		statement(answer, unix.SECCOMP_RET_ALLOW),
	)
}

// truncating denies to shorten a file by opening it only to be read, which Landlock learned to see with its third version.
// Nobody means that; whose flags cannot be looked at is told to use the older call.
func truncating() []unix.SockFilter {
	p := []unix.SockFilter{
		jump(ifEqual, unix.SYS_OPENAT2, 0, 1),
		statement(answer, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)),
	}
	for _, c := range []struct{ number, flags uint32 }{{unix.SYS_OPEN, 1}, {unix.SYS_OPENAT, 2}} {
		p = append(p,
			jump(ifEqual, c.number, 0, 6),
			statement(load, offsetArgs+c.flags*8),
			statement(and, unix.O_ACCMODE|unix.O_TRUNC),
			jump(ifEqual, unix.O_TRUNC|unix.O_RDONLY, 1, 0),
			jump(ifEqual, unix.O_TRUNC|unix.O_ACCMODE, 0, 1),
			statement(answer, unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)),
			statement(load, offsetNumber),
		)
	}
	return p
}

// holding denies what a descriptor that was opened only to be read is still good for: a lock or a lease by which others
// wait, and whatever ioctl changes. And it denies to outlive the host.
func holding(deny uint32) []unix.SockFilter {
	one := func(number, arg uint32, inner ...unix.SockFilter) []unix.SockFilter {
		inner = append([]unix.SockFilter{statement(load, offsetArgs+arg*8)}, inner...)
		inner = append(inner, statement(load, offsetNumber))
		return append([]unix.SockFilter{jump(ifEqual, number, 0, uint8(len(inner)))}, inner...)
	}
	var locks, asking []unix.SockFilter
	for _, cmd := range []uint32{unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_SETLK, unix.F_OFD_SETLKW, unix.F_SETLEASE, unix.F_NOTIFY} {
		locks = append(locks, jump(ifEqual, cmd, 0, 1), statement(answer, deny))
	}
	for _, cmd := range []uint32{unix.TCGETS, unix.TIOCGWINSZ, fionread, fionbio, fioclex, fionclex} {
		asking = append(asking, jump(ifEqual, cmd, 0, 1), statement(answer, unix.SECCOMP_RET_ALLOW))
	}
	return slices.Concat(
		one(unix.SYS_FCNTL, 1, locks...),
		one(unix.SYS_IOCTL, 1, append(asking, statement(answer, deny))...),
		one(unix.SYS_PRCTL, 0,
			jump(ifEqual, unix.PR_SET_PDEATHSIG, 0, 3),
			statement(load, offsetArgs+1*8),
			jump(ifEqual, uint32(unix.SIGKILL), 1, 0), // what its starter sets
			statement(answer, deny),
		),
	)
}

// Numbers of ioctl that the library at hand does not name.
const fionread, fionbio, fionclex, fioclex = 0x541b, 0x5421, 0x5450, 0x5451

// reaching are the calls by which something is changed that is no file's content or name.
func reaching() []uint32 {
	const (
		// Newer than the library at hand.
		setxattrat, removexattrat, fileSetattr, openTreeAttr = 463, 466, 469, 467
	)
	return []uint32{
		unix.SYS_CONNECT,
		unix.SYS_SOCKETPAIR, // whose datagrams go to any name
		unix.SYS_FLOCK,
		unix.SYS_EXECVEAT, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_CHMOD, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_CHOWN, unix.SYS_FCHOWN, unix.SYS_LCHOWN, unix.SYS_FCHOWNAT,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
		setxattrat, removexattrat, fileSetattr, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_UTIMENSAT, unix.SYS_FUTIMESAT,
		unix.SYS_TRUNCATE, // for a Landlock that does not know it
		unix.SYS_MKNOD, unix.SYS_MKNODAT,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP,
		unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_OPEN_TREE, openTreeAttr, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_MOUNT_SETATTR, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG, unix.SYS_IOPL, unix.SYS_IOPERM,
	}
}
