// Package measure is what a worker learns of itself: before its confinement, what it was started with; under
// probation, what it has left; afterwards, what the kernel says of it.
package measure

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
)

// Self is what can only be measured while files can be opened, and the descriptors through which the rest is
// measured later.
type Self struct {
	digest       canonical.Digest
	kernel       string
	pidNamespace string
	environment  []string
	status       int // /proc/self/status: its text is made when it is read
	fds          int // /proc/self/fd
}

// Begin measures what a worker was started with. It is the first thing a worker does. It closes the descriptor of
// the binary, and fails when the inherited descriptors are not the ones that a worker is started with.
func Begin() (*Self, error) {
	digest, err := ownDigest()
	if err != nil {
		return nil, err
	}
	if err := checkInherited(); err != nil {
		return nil, err
	}
	if err := unix.Close(wire.FDBinary); err != nil {
		return nil, fmt.Errorf("close descriptor %d: %w", wire.FDBinary, err)
	}
	s := &Self{digest: digest}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		s.environment = append(s.environment, name)
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return nil, fmt.Errorf("read kernel release: %w", err)
	}
	s.kernel = unix.ByteSliceToString(u.Release[:])
	if s.pidNamespace, err = os.Readlink("/proc/self/ns/pid"); err != nil {
		return nil, fmt.Errorf("read process namespace: %w", err)
	}
	return s, nil
}

// Hold opens what is measured through after the confinement, at the latest moment before it.
func (s *Self) Hold() error {
	var err error
	if s.status, err = unix.Open("/proc/self/status", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("open own status: %w", err)
	}
	if s.fds, err = unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_DIRECTORY, 0); err != nil {
		return fmt.Errorf("open own descriptors: %w", err)
	}
	return nil
}

// Release closes the last descriptor that measures.
func (s *Self) Release() {
	_ = unix.Close(s.status) // It was only read.
	s.status = -1
}

func ownDigest() (canonical.Digest, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("open own binary: %w", err)
	}
	defer f.Close()
	h := canonical.NewHasher()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read own binary: %w", err)
	}
	return h.Digest(), nil
}

// checkInherited checks the types of the descriptors that a worker has from its start.
func checkInherited() error {
	for fd, want := range map[int]uint32{wire.FDBinary: unix.S_IFREG, wire.FDSocket: unix.S_IFSOCK, wire.FDLock: unix.S_IFREG} {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return fmt.Errorf("descriptor %d: %w; this program is started by writ, not by hand", fd, err)
		}
		if st.Mode&unix.S_IFMT != want {
			return fmt.Errorf("descriptor %d is of type %#o, not %#o; this program is started by writ, not by hand", fd, st.Mode&unix.S_IFMT, want)
		}
	}
	return nil
}

// readStatus returns the fields of /proc/self/status as they are now.
func (s *Self) readStatus() (map[string]string, error) {
	buf := make([]byte, 16<<10)
	n, err := unix.Pread(s.status, buf, 0)
	if err != nil {
		return nil, fmt.Errorf("read own status: %w", err)
	}
	if n == len(buf) {
		return nil, errors.New("read own status: longer than expected")
	}
	fields := map[string]string{}
	for line := range strings.SplitSeq(string(buf[:n]), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields, nil
}
