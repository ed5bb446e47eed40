package measure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// descriptors returns number and type of every open descriptor, by number, except the two that measure.
func (s *Self) descriptors() ([]string, error) {
	var numbers []int
	buf := make([]byte, 8<<10)
	if _, err := unix.Seek(s.fds, 0, unix.SEEK_SET); err != nil {
		return nil, fmt.Errorf("rewind own descriptors: %w", err)
	}
	for {
		n, err := unix.Getdents(s.fds, buf)
		if err != nil {
			return nil, fmt.Errorf("list own descriptors: %w", err)
		}
		if n == 0 {
			break
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			fd, err := strconv.Atoi(name)
			if err != nil {
				return nil, fmt.Errorf("list own descriptors: %w", err)
			}
			if fd != s.fds && fd != s.status {
				numbers = append(numbers, fd)
			}
		}
	}
	slices.Sort(numbers)
	out := make([]string, 0, len(numbers))
	for _, fd := range numbers {
		kind, err := s.kind(fd)
		if err != nil {
			return nil, err
		}
		out = append(out, strconv.Itoa(fd)+" "+kind)
	}
	return out, nil
}

func (s *Self) kind(fd int) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", fmt.Errorf("stat descriptor %d: %w", fd, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		return "socket", nil
	case unix.S_IFIFO:
		return "pipe", nil
	case unix.S_IFREG:
		return "file", nil
	case unix.S_IFDIR:
		return "directory", nil
	case unix.S_IFCHR:
		if st.Rdev == unix.Mkdev(1, 3) {
			return "null", nil
		}
		return fmt.Sprintf("device %d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev)), nil
	}
	// Descriptors without a file behind them (pollers, events, timers) say what they are in their link.
	buf := make([]byte, 256)
	n, err := unix.Readlinkat(s.fds, strconv.Itoa(fd), buf)
	if err != nil {
		return "", fmt.Errorf("read link of descriptor %d: %w", fd, err)
	}
	return strings.Trim(strings.TrimPrefix(string(buf[:n]), "anon_inode:"), "[]"), nil
}
