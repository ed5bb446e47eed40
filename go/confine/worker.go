package confine

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	lls "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/reason"
)

// WorkerLimits are the kernel's limits for a confined worker. Every field has to be above zero.
type WorkerLimits struct {
	// DataBytes bounds the private writable memory of the process (RLIMIT_DATA). A request beyond it fails, and
	// then the Go runtime ends the process.
	DataBytes int64
	// CPUSeconds bounds the processor time from now on (RLIMIT_CPU, on top of what was used so far).
	CPUSeconds int64
	// OpenFiles bounds descriptor numbers (RLIMIT_NOFILE). Descriptors that are open already stay.
	OpenFiles int64
	// Threads bounds the threads of the user (RLIMIT_NPROC); the kernel does not apply it to root.
	Threads int64
}

// Early is what can only be measured between the steps of the confinement.
type Early struct {
	// LandlockABI is the version that the kernel reports.
	LandlockABI int
	// OpenRoot is the name of the error of opening / after Landlock and before seccomp: "EACCES".
	OpenRoot string
	// CPUSecondsUsed is the processor time in seconds, rounded up, on top of which RLIMIT_CPU was set.
	CPUSecondsUsed int64
}

// Worker confines this process, every thread of it, for ever. First privileges, limits and Landlock, then a
// probation filter under which measure runs, then the final filter, which kills the process at any system call
// that a worker has no use for. measure may open nothing, but may read descriptors that were opened before, and
// may try what is denied: under probation that answers EPERM instead of death. A nil measure measures nothing.
//
// Preconditions: the program was built with CGO_ENABLED=0 (thread state is set through the Go runtime), and its
// code is compiled and its timers were used once, since afterwards neither executable memory nor a poller can be
// made, and GOMAXPROCS was set, without which the runtime asks for its processors every second. It fails with environment.unsupported when the host cannot enforce all of it; the process is then
// confined in part and has to end.
func Worker(l WorkerLimits, measure func(Early) error) error {
	if runtime.GOARCH != "amd64" {
		return unsupported("confinement is known for amd64 only", runtime.GOARCH, nil)
	}
	if err := dropPrivileges(); err != nil {
		return err
	}
	early := Early{LandlockABI: LandlockABI()}
	var err error
	if early.OpenRoot, err = restrictFiles(early.LandlockABI); err != nil {
		return err
	}
	if early.CPUSecondsUsed, err = l.apply(); err != nil {
		return err
	}
	if err := loadFilter(probation()); err != nil {
		return err
	}
	if measure != nil {
		if err := measure(early); err != nil {
			return fmt.Errorf("measure under probation: %w", err)
		}
	}
	return loadFilter(final())
}

// LandlockABI returns the version of the Landlock interface of this kernel, 0 when it has none.
func LandlockABI() int {
	v, err := lls.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

// restrictFiles denies every access that this kernel's Landlock knows, files, network ports and signals out of
// the process, and tries it: it returns the name of the error that opening / gives now. Landlock sets no_new_privs
// on every thread too.
func restrictFiles(abi int) (string, error) {
	known := []landlock.Config{landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7}
	if abi < 1 {
		return "", unsupported("this kernel has no Landlock", "landlock_create_ruleset", nil)
	}
	if err := known[min(abi, len(known))-1].Restrict(); err != nil {
		return "", unsupported("Landlock cannot be applied", fmt.Sprintf("ABI %d", abi), err)
	}
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err == nil {
		return "", unsupported("Landlock was applied and denies nothing", "open /", unix.Close(fd))
	}
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return "", fmt.Errorf("open /: %w", err)
	}
	return unix.ErrnoName(errno), nil
}

// dropPrivileges empties the capability sets of every thread. The bounding set is left: with no_new_privs and
// without execve nothing can be gained through it.
func dropPrivileges() error {
	if err := onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); err != nil {
		return unsupported("no_new_privs cannot be set", "prctl", err)
	}
	if err := onAllThreads(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0); err != nil {
		return unsupported("ambient capabilities cannot be cleared", "prctl", err)
	}
	if err := clearCapabilities(); err != nil {
		return unsupported("capabilities cannot be dropped", "capset", err)
	}
	return nil
}

func onAllThreads(trap, a, b, c uintptr) error {
	if _, _, errno := syscall.AllThreadsSyscall6(trap, a, b, c, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func unsupported(what, where string, cause error) error {
	return reason.New(reason.EnvironmentUnsupported, what, where,
		"use a host with Linux 5.13 or newer on amd64, with Landlock and seccomp enabled").Because(cause)
}
