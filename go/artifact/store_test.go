package artifact_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/reason"
)

// noBlobs is a journal without blobs.
type noBlobs struct{}

func (noBlobs) Blob(context.Context, canonical.Digest) ([]byte, error) {
	return nil, reason.New(reason.ArtifactMissing, "none", "", "")
}

// blobs is a journal with some.
type blobs map[canonical.Digest][]byte

func (b blobs) Blob(_ context.Context, d canonical.Digest) ([]byte, error) {
	if bytes, ok := b[d]; ok {
		return bytes, nil
	}
	return noBlobs{}.Blob(context.Background(), d)
}

func open(t testing.TB, dir string) *artifact.Store {
	t.Helper()
	s, err := artifact.Open(dir, noBlobs{}, artifact.Options{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// files lists every file beneath the store, relative to the state folder.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(filepath.Join(dir, "cas"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			relative, _ := filepath.Rel(dir, path)
			all = append(all, relative)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func big(seed byte) []byte { return bytes.Repeat([]byte{seed}, journal.MaxBlob+1) }

func pathOf(d canonical.Digest) string {
	return filepath.Join("cas", "sha256", d.Hex()[:2], d.Hex()[2:])
}

func TestPut(t *testing.T) {
	for name, size := range map[string]int{"empty": 0, "one": 1, "largest blob": journal.MaxBlob, "smallest file": journal.MaxBlob + 1, "large": 3 << 20} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			content := bytes.Repeat([]byte("x"), size)
			ref, blob, err := s.Put(t.Context(), iotest.HalfReader(bytes.NewReader(content)), int64(size), "text/plain")
			if err != nil {
				t.Fatal(err)
			}
			want := artifact.Ref{Digest: canonical.Sum(content), Size: int64(size), MediaType: "text/plain"}
			if ref != want {
				t.Errorf("ref %+v, want %+v", ref, want)
			}
			if size <= journal.MaxBlob {
				if blob == nil || blob.Digest != ref.Digest || !bytes.Equal(blob.Bytes, content) || len(files(t, dir)) != 0 {
					t.Errorf("blob %+v, files %v", blob, files(t, dir))
				}
				s, err = artifact.Open(dir, blobs{ref.Digest: blob.Bytes}, artifact.Options{})
				if err != nil {
					t.Fatal(err)
				}
			} else if got := files(t, dir); blob != nil || len(got) != 1 || got[0] != pathOf(ref.Digest) {
				t.Errorf("blob %v, files %v", blob != nil, got)
			}
			got, err := s.Read(t.Context(), ref.Digest, int64(size))
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
			if _, err := s.Read(t.Context(), ref.Digest, int64(size)-1); size > 0 && !reason.Is(err, reason.ArtifactTooLarge) {
				t.Errorf("read with too small a limit: %v", err)
			}
		})
	}
}

func TestPutNeverReadsFarBeyondTheLimit(t *testing.T) {
	for _, limit := range []int64{0, 10, journal.MaxBlob, journal.MaxBlob + 10, 1 << 20} {
		dir := t.TempDir()
		r := &counting{}
		if _, _, err := open(t, dir).Put(t.Context(), r, limit, "x/y"); !reason.Is(err, reason.ArtifactTooLarge) {
			t.Errorf("limit %d: %v", limit, err)
		}
		if r.n > limit+1 {
			t.Errorf("limit %d: %d bytes were read", limit, r.n)
		}
		if got := files(t, dir); len(got) != 0 {
			t.Errorf("limit %d: files %v were left", limit, got)
		}
	}
}

// counting serves zeros for ever and counts them.
type counting struct{ n int64 }

func (c *counting) Read(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

func TestPutKeepsWhatStands(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, _, err := s.Put(t.Context(), bytes.NewReader(big('a')), 1<<20, "x/y"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := files(t, dir); len(got) != 1 {
		t.Fatalf("files %v", got)
	}
	path := filepath.Join(dir, files(t, dir)[0])
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	damage(t, path)
	if _, _, err := s.Put(t.Context(), bytes.NewReader(big('a')), 1<<20, "x/y"); !reason.Is(err, reason.ArtifactCorrupt) {
		t.Errorf("over a damaged file: %v", err)
	}
}

func damage(t testing.TB, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		b[len(b)/2] ^= 1
		err = errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, b, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestPutPassesTheReadersErrorOn(t *testing.T) {
	broken := errors.New("broken")
	for _, before := range []string{"", string(big('a'))} {
		dir := t.TempDir()
		r := io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken))
		if _, _, err := open(t, dir).Put(t.Context(), r, 1<<20, "x/y"); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
		if got := files(t, dir); len(got) != 0 {
			t.Errorf("files %v were left", got)
		}
	}
	if _, _, err := open(t, t.TempDir()).Put(t.Context(), silent{}, 10, "x/y"); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a silent reader: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := open(t, t.TempDir()).Put(ctx, silent{}, 10, "x/y"); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	ref, _, err := s.Put(t.Context(), bytes.NewReader(big('a')), 1<<20, "x/y")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, pathOf(ref.Digest))
	if _, err := s.Open(t.Context(), canonical.Sum(nil)); !reason.Is(err, reason.ArtifactMissing) {
		t.Errorf("missing: %v", err)
	}
	if _, err := s.Open(t.Context(), "sha256:../../etc/passwd"); !reason.Is(err, reason.CanonicalMalformedDigest) {
		t.Errorf("malformed: %v", err)
	}
	damage(t, path)
	r, err := s.Open(t.Context(), ref.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); n != ref.Size || !reason.Is(err, reason.ArtifactCorrupt) {
		t.Errorf("corrupt: %d bytes, %v", n, err)
	}
	_ = r.Close()
	target := filepath.Join(t.TempDir(), "target")
	if err := errors.Join(os.WriteFile(target, big('a'), 0o600), os.Remove(path), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), ref.Digest); !reason.Is(err, reason.ArtifactCorrupt) {
		t.Errorf("a link to the right bytes: %v", err)
	}
	if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), ref.Digest); !reason.Is(err, reason.ArtifactCorrupt) {
		t.Errorf("a pipe: %v", err)
	}
}

func TestVerify(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var refs []artifact.Ref
	for i := range byte(4) {
		ref, _, err := s.Put(t.Context(), bytes.NewReader(big(i)), 1<<20, "x/y")
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	found := func() (found []string) {
		extent, err := s.Verify(t.Context(), func(d journal.Damage) { found = append(found, d.Where) })
		if err != nil || extent.Files < 4 {
			t.Errorf("extent %+v, %v", extent, err)
		}
		return found
	}
	if got := found(); len(got) != 0 {
		t.Fatalf("damage %v in a sound store", got)
	}
	damage(t, filepath.Join(dir, pathOf(refs[1].Digest)))
	if got := found(); len(got) != 1 || got[0] != pathOf(refs[1].Digest) {
		t.Errorf("damage %v, want %s", got, pathOf(refs[1].Digest))
	}
	for _, name := range []string{"cas/sha256/stray", "cas/sha256/" + refs[0].Digest.Hex()[:2] + "/stray"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "cas/sha256/folder/x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := found(); len(got) != 4 {
		t.Errorf("damage %v, want four", got)
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	var paths []string
	for _, name := range []string{"old", "held", "young"} {
		path := filepath.Join(dir, "cas", "tmp", name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	cutoff := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	held, err := os.Open(paths[1])
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := errors.Join(os.Chtimes(paths[0], cutoff, cutoff.Add(-1)), os.Chtimes(paths[1], cutoff, cutoff.Add(-1)), os.Chtimes(paths[2], cutoff, cutoff),
		unix.Flock(int(held.Fd()), unix.LOCK_EX)); err != nil {
		t.Fatal(err)
	}
	if _, err := artifact.Open(dir, noBlobs{}, artifact.Options{Write: true, SweepBefore: cutoff}); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); len(got) != 2 || got[0] != "cas/tmp/held" || got[1] != "cas/tmp/young" {
		t.Errorf("left: %v", got)
	}
}

func TestReadingNeverWrites(t *testing.T) {
	dir := t.TempDir()
	s, err := artifact.Open(dir, noBlobs{}, artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Put(t.Context(), strings.NewReader("x"), 1, "x/y"); !reason.Is(err, reason.ArtifactReadOnly) {
		t.Errorf("Put: %v", err)
	}
	if _, err := s.Open(t.Context(), canonical.Sum(nil)); !reason.Is(err, reason.ArtifactMissing) {
		t.Errorf("Open: %v", err)
	}
	if extent, err := s.Verify(t.Context(), func(d journal.Damage) { t.Errorf("damage %+v", d) }); err != nil || extent.Files != 0 {
		t.Errorf("Verify: %+v, %v", extent, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("reading made %v", entries)
	}
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s := open(t, dir)
	if _, _, err := s.Put(t.Context(), bytes.NewReader(make([]byte, 1<<20)), 1<<20, "x/y"); !reason.Is(err, reason.ArtifactFull) {
		t.Errorf("full: %v", err)
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("files %v were left", got)
	}
	if _, _, err := s.Put(t.Context(), bytes.NewReader(big('a')), 1<<20, "x/y"); err != nil {
		t.Errorf("what fits: %v", err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Put(t.Context(), bytes.NewReader(big('b')), 1<<20, "x/y"); !reason.Is(err, reason.ArtifactReadOnly) {
		t.Errorf("read-only: %v", err)
	}
	if _, err := artifact.Open(filepath.Join(dir, "state"), noBlobs{}, artifact.Options{Write: true}); !reason.Is(err, reason.ArtifactReadOnly) {
		t.Errorf("open read-only: %v", err)
	}
}
