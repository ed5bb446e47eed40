package ingress

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/reason"
)

// tick is the unit in which the kernel tells when a process started.
const tick = 10 * time.Millisecond

// sentry tells the processes of people from those that hosts start.
type sentry struct {
	// born is when this host began to listen, in ticks since boot. What an earlier host
	// left behind is older.
	born uint64
	// unmarked says that this host may gain new privileges. What a host starts may not,
	// nor may anything that comes of it, for ever: then that is a mark. Where the host
	// itself may not, as in some containers, nobody may, and it says nothing.
	unmarked bool
}

func newSentry() (sentry, error) {
	born, err := ticks()
	if err != nil {
		return sentry{}, err
	}
	bound, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return sentry{}, fmt.Errorf("ask for no_new_privs: %w", err)
	}
	return sentry{born: born, unmarked: bound == 0}, nil
}

// ticks is the time since boot, as in the start time of a process.
func ticks() (uint64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, fmt.Errorf("read the time since boot: %w", err)
	}
	return uint64(now.Nano()) / uint64(tick), nil
}

// admit returns who is at the other end, by the kernel's word. A process of an attempt or
// of an adapter is no person, whatever its user; nor is one of which anything cannot be
// looked at. accepted is when the connection was, in ticks.
func (s sentry) admit(conn *net.UnixConn, accepted uint64) (string, error) {
	cred, pidfd, err := credentials(conn)
	if err != nil {
		return "", unseen(0, err)
	}
	defer unix.Close(pidfd)
	pid := int(cred.Pid)
	why, err := s.look(pid, accepted)
	if err != nil {
		return "", unseen(pid, err)
	}
	// As long as it lives, nobody else can have had its number while it was looked at.
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0); err != nil || n != 0 {
		return "", unseen(pid, errors.Join(err, errors.New("it has ended")))
	}
	if why != nil {
		why.Where = "process " + strconv.Itoa(pid)
		return "", why
	}
	return Person(int(cred.Uid)), nil
}

// look returns why a process is no person's, nil for one that is.
func (s sentry) look(pid int, accepted uint64) (*reason.Refusal, error) {
	if pid <= 0 {
		return nil, errors.New("it is in a process namespace that cannot be seen from here")
	}
	below, err := descends(pid, os.Getpid())
	if err != nil {
		return nil, err
	}
	started, err := confine.StartTime(pid)
	if err != nil {
		return nil, err
	}
	bound, err := noNewPrivileges(pid)
	switch {
	case err != nil:
		return nil, err
	case below:
		return reason.New(reason.IngressNotAPerson, "the request comes from a process of an attempt or of an adapter", "", "only a person's own process may command"), nil
	case s.unmarked && bound:
		return reason.New(reason.IngressNotAPerson, "the request comes from a process that may gain no new privileges, as whatever a host has started", "",
			"command from a process without no_new_privs, outside a sandbox"), nil
	case started < s.born:
		return reason.New(reason.IngressNotAPerson, "the request comes from a process that is older than this host, as what an earlier one left behind", "",
			"run the command again, as a process of its own"), nil
	case started > accepted:
		return nil, errors.New("it is not the one that connected")
	}
	return nil, nil
}

// unseen refuses a process that could not be looked at.
func unseen(pid int, err error) error {
	where := "process " + strconv.Itoa(pid)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return reason.New(reason.IngressUnserved, "the host has no descriptors left to look at who asks", where, "send it again, or raise the host's limit of open files").Because(err)
	}
	return reason.New(reason.IngressNotAPerson, "the request comes from a process that cannot be looked at", where, "only a person's own process may command").Because(err)
}

// credentials returns what the kernel says of the process that connected, and a descriptor
// that holds it. Kernels before 6.5 hold whoever has its number now.
func credentials(conn *net.UnixConn) (cred *unix.Ucred, pidfd int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, -1, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); failed != nil {
			return
		}
		if pidfd, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD); errors.Is(failed, unix.ENOPROTOOPT) {
			pidfd, failed = unix.PidfdOpen(int(cred.Pid), 0)
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, -1, fmt.Errorf("credentials of the peer: %w", err)
	}
	return cred, pidfd, nil
}

// noNewPrivileges reports whether a process may gain no new privileges, which it has from
// whoever started it, or asked for, and can never lose.
func noNewPrivileges(pid int) (bool, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false, err
	}
	// The name of the process, which may hold anything, has its line's end escaped.
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte("NoNewPrivs:")); ok {
			return string(bytes.TrimSpace(value)) != "0", nil
		}
	}
	return false, fmt.Errorf("the status of process %d does not say whether it may gain privileges", pid)
}

// descends reports whether a process is below another. A process that cannot be looked at
// is an error: it may be any.
func descends(pid, from int) (bool, error) {
	for pid > 1 {
		if pid == from {
			return true, nil
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return false, err
		}
		// pid (name) state ppid; the name may hold anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 {
			return false, fmt.Errorf("the state of process %d is %q", pid, stat)
		}
		if pid, err = strconv.Atoi(fields[1]); err != nil {
			return false, err
		}
	}
	return pid == from, nil // 1 or 0: there is nobody above.
}
