package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/reason"
)

// staged is one artifact that was read and hashed, and that nobody can find yet: in
// memory when it is small, else in a temporary file. publish or discard ends it.
type staged struct {
	store *Store
	ref   Ref
	small []byte
	file  *os.File // nil when small
}

// Put stores what r serves, at most limit bytes, of which it reads at most one more.
//
// A small artifact comes back as a blob and is stored with the caller's batch: it is
// durable once that is appended. For a larger one the blob is nil, and when Put
// returns, the bytes are durable under their digest. What is stored already is checked
// and kept. Refusals: artifact.too_large, artifact.corrupt (the same digest is stored
// with other bytes), artifact.full, artifact.read_only, artifact.io. Then nothing is
// stored that was not before. An error of r comes back wrapped.
func (s *Store) Put(ctx context.Context, r io.Reader, limit int64, mediaType string) (Ref, *journal.Blob, error) {
	st, err := s.stage(ctx, r, limit, mediaType)
	if err != nil {
		return Ref{}, nil, err
	}
	defer st.discard()
	blob, err := st.publish(ctx)
	if err != nil {
		return Ref{}, nil, err
	}
	return st.ref, blob, nil
}

// stage reads and hashes at most limit bytes of r, without publishing them.
func (s *Store) stage(ctx context.Context, r io.Reader, limit int64, mediaType string) (*staged, error) {
	if err := s.writable(); err != nil {
		return nil, err
	}
	// One more than the limit must still be a number.
	if limit < 0 || limit > canonical.MaxInteger {
		return nil, reason.New(reason.InternalBug, fmt.Sprintf("%d is no limit of bytes", limit), mediaType, "this is a fault of the caller: report it")
	}
	st := &staged{store: s}
	hash := canonical.NewHasher()
	in := &patient{ctx: ctx, r: io.LimitReader(r, limit+1)}
	head, err := io.ReadAll(io.LimitReader(in, journal.MaxBlob+1))
	if err != nil {
		return nil, fmt.Errorf("read an artifact: %w", err)
	}
	_, _ = hash.Write(head)
	if len(head) <= journal.MaxBlob {
		st.small = head
	} else if err := st.spill(in, head, hash); err != nil {
		st.discard()
		return nil, err
	}
	if hash.Size() > limit {
		st.discard()
		return nil, tooLarge(mediaType, limit)
	}
	st.ref = Ref{Digest: hash.Digest(), Size: hash.Size(), MediaType: mediaType}
	return st, nil
}

// spill copies what has been read and the rest into a temporary file.
func (st *staged) spill(rest io.Reader, head []byte, hash *canonical.Hasher) error {
	where := st.store.temporary()
	f, err := os.CreateTemp(where, "put-*")
	if err != nil {
		return refuse(err, "an artifact cannot be stored", where)
	}
	st.file = f
	// Held until it is closed, so that a sweep by another process leaves it alone.
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return refuse(err, "an artifact cannot be stored", where)
	}
	out := &sink{f: f}
	if _, err := out.Write(head); err != nil {
		return refuse(err, "an artifact cannot be stored", where)
	}
	if _, err := io.Copy(io.MultiWriter(hash, out), rest); err != nil {
		if out.failed {
			return refuse(err, "an artifact cannot be stored", where)
		}
		return fmt.Errorf("read an artifact: %w", err)
	}
	return nil
}

// publish makes the artifact durable under its digest. A small one comes back as the
// blob that the caller's batch makes durable.
func (st *staged) publish(ctx context.Context) (*journal.Blob, error) {
	if st.file == nil {
		return &journal.Blob{Digest: st.ref.Digest, MediaType: st.ref.MediaType, Bytes: st.small}, nil
	}
	s := st.store
	if err := s.writable(); err != nil {
		return nil, err
	}
	final := s.path(st.ref.Digest)
	if err := errors.Join(st.file.Chmod(0o400), st.file.Sync()); err != nil {
		return nil, s.stop(refuse(err, "an artifact cannot be made durable", string(st.ref.Digest)))
	}
	shard := filepath.Dir(final)
	switch err := os.Mkdir(shard, 0o700); {
	case err == nil, errors.Is(err, fs.ErrExist):
	default:
		return nil, refuse(err, "an artifact cannot be stored", shard)
	}
	// A link never replaces what stands there.
	if err := os.Link(st.file.Name(), final); errors.Is(err, fs.ErrExist) {
		if err := s.check(ctx, st.ref.Digest); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, refuse(err, "an artifact cannot be stored", final)
	}
	// Also for a file that stood there: whoever linked it may not have got this far.
	if err := errors.Join(syncFolder(shard), syncFolder(filepath.Dir(shard))); err != nil {
		return nil, s.stop(refuse(err, "an artifact cannot be made durable", string(st.ref.Digest)))
	}
	return nil, nil
}

// check reads the file of a digest to the end.
func (s *Store) check(ctx context.Context, d canonical.Digest) error {
	f, err := openFile(s.path(d))
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, errIrregular):
		return corrupt(d, "what stands under its name is no regular file")
	case err != nil:
		return refuse(err, "an artifact cannot be opened", string(d))
	}
	v := &verifier{ctx: ctx, body: f, hash: canonical.NewHasher(), want: d}
	defer v.Close()
	_, err = io.Copy(io.Discard, v)
	return err
}

// discard removes what publish did not need, and is safe to call twice.
func (st *staged) discard() {
	if st.file == nil {
		return
	}
	// A temporary file that cannot be removed is swept later.
	_ = os.Remove(st.file.Name())
	_ = st.file.Close()
}

// sink remembers that it was the writing side of a copy that failed.
type sink struct {
	f      *os.File
	failed bool
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.f.Write(p)
	s.failed = s.failed || err != nil
	return n, err
}

// patient reads until its context ends, and gives up on a reader that keeps answering
// with neither bytes nor an error.
type patient struct {
	ctx   context.Context
	r     io.Reader
	empty int
}

func (p *patient) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.r.Read(b)
	if n < 0 || n > len(b) {
		return 0, errors.New("the reader answers an impossible count")
	}
	if n == 0 && err == nil && len(b) > 0 {
		if p.empty++; p.empty > 100 {
			return 0, io.ErrNoProgress
		}
		return 0, nil
	}
	p.empty = 0
	return n, err
}
