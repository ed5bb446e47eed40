package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// StartTime returns the start of a process in clock ticks since boot (field 22 of /proc/PID/stat).
func StartTime(pid int) (uint64, error) {
	name := fmt.Sprintf("/proc/%d/stat", pid)
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, fmt.Errorf("read start time: %w", err)
	}
	// The second field is the name in parentheses, which may hold anything; fields are counted after its end.
	i := bytes.LastIndexByte(data, ')')
	fields := bytes.Fields(data[max(i+1, 0):])
	const field = 22 - 3 // the first field after the name is the third
	if i < 0 || len(fields) <= field {
		return 0, fmt.Errorf("read start time: %s has an unknown form", name)
	}
	t, err := strconv.ParseUint(string(fields[field]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read start time: %s: %w", name, err)
	}
	return t, nil
}

// KillIf kills a process that is no child of this one, if it is still the one meant. The process is held by a
// pidfd before same looks at it, so a number that was given to somebody else in between is never killed. It
// returns whether it was the one; a process that is gone is not.
func KillIf(pid int, same func() (bool, error)) (bool, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("hold process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	ok, err := same()
	if err != nil || !ok {
		return false, err
	}
	err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("kill process %d: %w", pid, err)
	}
	return true, nil
}
