package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// apply sets the limits of the process and returns the processor time on top of which the one of that was set, in
// seconds. The hard limits are set too, so that nothing can raise them again.
func (l WorkerLimits) apply() (soFar int64, err error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0, unsupported("the processor time used so far cannot be read", "getrusage", err)
	}
	soFar = used.Utime.Sec + used.Stime.Sec + 1
	for _, x := range []struct {
		name       string
		resource   int
		soft, hard int64
	}{
		{"RLIMIT_DATA", unix.RLIMIT_DATA, l.DataBytes, l.DataBytes},
		{"RLIMIT_CPU", unix.RLIMIT_CPU, soFar + l.CPUSeconds, soFar + l.CPUSeconds + 1},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, l.OpenFiles, l.OpenFiles},
		{"RLIMIT_NPROC", unix.RLIMIT_NPROC, l.Threads, l.Threads},
	} {
		if x.soft <= 0 {
			return 0, fmt.Errorf("set %s: a limit has to be above zero, not %d", x.name, x.soft)
		}
		if err := lower(x.name, x.resource, x.soft, x.hard); err != nil {
			return 0, err
		}
	}
	for name, resource := range map[string]int{"RLIMIT_FSIZE": unix.RLIMIT_FSIZE, "RLIMIT_CORE": unix.RLIMIT_CORE} {
		if err := lower(name, resource, 0, 0); err != nil {
			return 0, err
		}
	}
	return soFar, nil
}

// lower sets a limit, or leaves a hard limit that is lower already: without privileges it cannot be raised.
func lower(name string, resource int, soft, hard int64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return unsupported("a limit cannot be read", name, err)
	}
	want := unix.Rlimit{Cur: min(uint64(soft), now.Max), Max: min(uint64(hard), now.Max)}
	if err := unix.Setrlimit(resource, &want); err != nil {
		return unsupported("a limit cannot be set", name, err)
	}
	return nil
}
