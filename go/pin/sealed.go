package pin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
)

// BinaryFD is the descriptor number under which a process started by Sealed.Command finds its own binary.
const BinaryFD = 3

// FirstExtraFD is the number of the first further descriptor given to Sealed.Command.
const FirstExtraFD = BinaryFD + 1

// Sealed is a file copied into anonymous memory that nobody can change any more, this process included. It
// stays open as long as the Set that made it.
type Sealed struct {
	file   *os.File
	name   string
	digest canonical.Digest
	size   int64
}

// Sealed returns the pinned file as sealed memory, verified while it was copied. The memory is kept: a second
// call for the same digest costs nothing. It fails with pin.unreadable or pin.digest_mismatch.
func (s *Set) Sealed(ctx context.Context, e Entry) (*Sealed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x, ok := s.sealed[e.Digest]; ok {
		return x, nil
	}
	f, err := newMemory(e.Name)
	if err != nil {
		return nil, err
	}
	if err := s.copy(ctx, e, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := seal(ctx, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	x := &Sealed{file: f, name: e.Name, digest: e.Digest, size: e.Size}
	s.sealed[e.Digest] = x
	return x, nil
}

// Digest returns the digest of the sealed bytes.
func (x *Sealed) Digest() canonical.Digest { return x.digest }

// Name returns the name under which the lock file pins the bytes.
func (x *Sealed) Name() string { return x.name }

// Size returns the number of bytes.
func (x *Sealed) Size() int64 { return x.size }

// Command returns a command that executes the sealed bytes with the arguments, an empty environment and no
// standard streams. The process has the binary as descriptor BinaryFD and extra from FirstExtraFD on; it should
// close BinaryFD once it has read it.
func (x *Sealed) Command(args []string, extra ...*os.File) *exec.Cmd {
	return &exec.Cmd{
		// The child resolves this after its descriptors are in place, so it is the child's own descriptor 3.
		Path:       fmt.Sprintf("/proc/self/fd/%d", BinaryFD),
		Args:       append([]string{x.name}, args...),
		Env:        []string{},
		ExtraFiles: append([]*os.File{x.file}, extra...),
	}
}

// newMemory makes an empty, sealable memory file that may be executed. Kernels before 6.3 know no MFD_EXEC and
// answer EINVAL; there memory files are executable without it.
func newMemory(name string) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	if len(name) > 200 { // the kernel takes 249 bytes
		name = name[:200]
	}
	fd, err := unix.MemfdCreate("writ:"+name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate("writ:"+name, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("make memory file for %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), "memfd:writ:"+name), nil
}

// sealTries bounds how often sealing is tried. The kernel refuses it (EBUSY) while anything could still write to a page
// of the file, itself included: when memory is short it holds pages for moments, and on each try it waits about a tenth
// of a second for them.
const sealTries = 50

// seal forbids every change for ever, and then reads the seals back. SEAL_EXEC (6.3) fixes the mode bits too;
// older kernels do not know it.
func seal(ctx context.Context, f *os.File) error {
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	const sealExec = 0x20 // F_SEAL_EXEC
	add := func() error {
		_, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals|sealExec)
		if errors.Is(err, unix.EINVAL) {
			_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
		}
		return err
	}
	err := add()
	for try := 1; errors.Is(err, unix.EBUSY) && try < sealTries && ctx.Err() == nil; try++ {
		err = add()
	}
	if err != nil {
		return fmt.Errorf("seal %s: %w", f.Name(), err)
	}
	got, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	if err != nil {
		return fmt.Errorf("read the seals of %s: %w", f.Name(), err)
	}
	if got&seals != seals {
		return fmt.Errorf("seal %s: the kernel kept seals %#x, wanted %#x", f.Name(), got, seals)
	}
	return nil
}
