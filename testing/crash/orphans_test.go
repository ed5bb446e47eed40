package crash_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// orphansGone waits until no orphan lives. Children that the kernel kills with their
// parent are still there for a moment after it.
func orphansGone() error {
	for _, pid := range orphans() {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // It is gone.
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		_ = unix.Close(fd)
		if err == nil && n == 0 {
			return fmt.Errorf("process %d outlived the writ that started it", pid)
		}
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
	return nil
}

// orphans returns the living children of this process that it did not start itself: writ
// starts its children from sealed memory, and this test starts none that way.
func orphans() []int {
	entries, _ := os.ReadDir("/proc")
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		exe, err := os.Readlink("/proc/" + e.Name() + "/exe")
		if err != nil || !strings.HasPrefix(exe, "/memfd:") {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid; the name may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			found = append(found, pid)
		}
	}
	return found
}
