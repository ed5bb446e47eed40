// Package artifact keeps bytes by their digest, and freezes the outputs of a workspace
// into them.
//
// Up to journal.MaxBlob bytes an artifact is a blob of the journal and shares the
// commit that records it. A larger one is a file, cas/sha256/ab/cdef…, that appears
// under that name complete and durable, or not at all.
package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// Blobs serves the small artifacts; journal.Reader does. Blob returns the bytes,
// checked against the digest, or a refusal with artifact.missing or artifact.corrupt.
type Blobs interface {
	Blob(ctx context.Context, digest canonical.Digest) ([]byte, error)
}

// MaxDocument bounds a document of the runtime's own that is read back whole, in bytes.
const MaxDocument = 16 << 20

// Options say how a store is opened.
type Options struct {
	// Write makes the folders that are missing. Without it Put refuses.
	Write bool
	// SweepBefore removes temporary files that a dead process left: those last written
	// before this moment and held by nobody. Zero sweeps nothing.
	SweepBefore time.Time
}

// Ref names stored bytes.
type Ref struct {
	Digest    canonical.Digest `json:"digest"`
	Size      int64            `json:"size"`
	MediaType string           `json:"media_type"`
}

// Store is the artifact store of one state folder. It is safe for concurrent use, and
// several processes may use one folder.
type Store struct {
	root  string // STATE/cas
	blobs Blobs
	write bool
	// failed is set once making something durable failed: from then on nothing that
	// this store would say about durability is known to be true.
	failed atomic.Pointer[error]
}

// Open opens the store in the state folder. It refuses with artifact.read_only,
// artifact.full or artifact.io.
func Open(state string, blobs Blobs, o Options) (*Store, error) {
	s := &Store{root: filepath.Join(state, "cas"), blobs: blobs, write: o.Write}
	if !o.Write {
		return s, nil
	}
	for _, dir := range []string{s.root, s.temporary(), filepath.Join(s.root, "sha256")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, refuse(err, "the artifact store cannot be made", dir)
		}
	}
	for _, dir := range []string{state, s.root} {
		if err := syncFolder(dir); err != nil {
			return nil, refuse(err, "the artifact store cannot be made durable", dir)
		}
	}
	if err := s.sweep(o.SweepBefore); err != nil {
		return nil, refuse(err, "old temporary files cannot be removed", s.temporary())
	}
	return s, nil
}

func (s *Store) temporary() string { return filepath.Join(s.root, "tmp") }

// path returns where an artifact with a valid digest is a file.
func (s *Store) path(d canonical.Digest) string {
	return filepath.Join(s.root, "sha256", d.Hex()[:2], d.Hex()[2:])
}

// Open returns the bytes of an artifact. Reading to the end checks them: the last Read
// answers artifact.corrupt in place of io.EOF when they do not have the digest, so
// nothing may be acted on before it. Refusals: artifact.missing, artifact.corrupt,
// artifact.io. The caller closes it.
func (s *Store) Open(ctx context.Context, d canonical.Digest) (io.ReadCloser, error) {
	if _, err := canonical.ParseDigest(string(d)); err != nil {
		return nil, err
	}
	f, err := openFile(s.path(d))
	switch {
	case err == nil:
		return &verifier{body: f, hash: canonical.NewHasher(), want: d, ctx: ctx}, nil
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, unix.ELOOP), errors.Is(err, errIrregular):
		return nil, corrupt(d, "what stands under its name is no regular file")
	default:
		return nil, refuse(err, "an artifact cannot be opened", string(d))
	}
	b, err := s.blobs.Blob(ctx, d)
	if err != nil {
		return nil, err
	}
	return &verifier{body: io.NopCloser(bytes.NewReader(b)), hash: canonical.NewHasher(), want: d, ctx: ctx}, nil
}

// Read returns the checked bytes of an artifact of at most limit bytes, and refuses a
// larger one with artifact.too_large.
func (s *Store) Read(ctx context.Context, d canonical.Digest, limit int64) ([]byte, error) {
	r, err := s.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case int64(len(b)) > limit:
		return nil, tooLarge(string(d), limit)
	case err != nil:
		return nil, refuse(err, "an artifact cannot be read", string(d))
	}
	return b, nil
}

// errIrregular says that a name does not lead to a regular file.
var errIrregular = errors.New("no regular file")

// openFile opens a regular file and nothing else, without following a link to it and
// without waiting on a pipe.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errIrregular
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// stop keeps the first failure to make something durable, and returns it.
func (s *Store) stop(err error) error {
	s.failed.CompareAndSwap(nil, &err)
	return err
}

// writable refuses a store that must not write, or cannot any more.
func (s *Store) writable() error {
	if cause := s.failed.Load(); cause != nil {
		return reason.New(reason.ArtifactIO, "the artifact store stopped after a failed write", s.root,
			"run again: opening it anew finds out what is stored").Because(*cause)
	}
	if !s.write {
		return reason.New(reason.ArtifactReadOnly, "the artifact store is opened for reading", s.root, "this is a fault of the caller: report it")
	}
	return nil
}

// refuse makes a refusal of an error that the operating system gave.
func refuse(err error, what, where string) error {
	if _, ok := reason.As(err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return reason.New(reason.ArtifactFull, what+", because no space is left", where, "free some space and run again").Because(err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return reason.New(reason.ArtifactReadOnly, what, where, "give write permission on the folder, or choose another with --state").Because(err)
	}
	return reason.New(reason.ArtifactIO, what, where, "check the disk and the permissions, and run again").Because(err)
}

func tooLarge(where string, limit int64) error {
	return reason.New(reason.ArtifactTooLarge, fmt.Sprintf("the artifact has more than %d bytes", limit), where, "raise the limit, or make it smaller")
}

func corrupt(d canonical.Digest, what string) error {
	return reason.New(reason.ArtifactCorrupt, what, string(d), "run `writ verify` to see the extent")
}
