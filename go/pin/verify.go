package pin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// Bytes returns the bytes of a pinned file, checked against its digest while they were read. It fails with
// pin.unreadable or pin.digest_mismatch.
func (s *Set) Bytes(ctx context.Context, e Entry) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(e.Size))
	if err := s.copy(ctx, e, &b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// copy opens the file once and writes at most size+1 of its bytes to w, hashing what it writes. What reached w
// is what was hashed; on an error w must be thrown away.
func (s *Set) copy(ctx context.Context, e Entry, w io.Writer) error {
	if err := e.check(s.dir); err != nil {
		return err
	}
	where := filepath.Join(s.dir, filepath.FromSlash(e.Path))
	f, err := openRegular(where)
	if err != nil {
		return unreadable(where, err)
	}
	defer f.Close()
	h := canonical.NewHasher()
	if _, err := io.Copy(io.MultiWriter(h, w), &cancelled{ctx, io.LimitReader(f, e.Size+1)}); err != nil {
		return unreadable(where, err)
	}
	if h.Size() != e.Size || h.Digest() != e.Digest {
		measured := string(h.Digest())
		if h.Size() > e.Size {
			measured += " over the first bytes of a larger file"
		}
		return reason.New(reason.PinDigestMismatch,
			fmt.Sprintf("%s %s is not what the lock file pins: locked %s (%d bytes), found %s (%d bytes)", e.Kind, quote(e.Name), e.Digest, e.Size, measured, h.Size()),
			where, rebuild)
	}
	return nil
}

// openRegular opens a regular file for reading. Links are resolved first, since build systems lay out
// distributions as links, and none is followed at the open itself; what counts in the end is the digest of the
// bytes behind the descriptor, so a link swapped in between can only make the check fail.
func openRegular(path string) (*os.File, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	// O_NONBLOCK: opening a FIFO must not wait for a writer.
	fd, err := unix.Open(real, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", real, err)
	}
	f := os.NewFile(uintptr(fd), real)
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

type cancelled struct {
	ctx context.Context
	r   io.Reader
}

func (c *cancelled) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
