package artifact

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/reason"
)

// sweep removes temporary files that were last written before the given moment and
// that no live process holds. Age alone would not do: a slow writer may be older.
func (s *Store) sweep(before time.Time) error {
	if before.IsZero() {
		return nil
	}
	entries, err := os.ReadDir(s.temporary())
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(s.temporary(), e.Name())
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || !info.ModTime().Before(before) {
			continue
		}
		if err := sweepOne(path); err != nil {
			return err
		}
	}
	return nil
}

func sweepOne(path string) error {
	f, err := openFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil // its writer lives
	case err != nil:
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Extent says how much Verify has read.
type Extent struct {
	Files, Bytes int64
}

// Verify reads every file of the store and reports each that does not have the digest
// of its name, and each name that is none. It goes on after damage; an error means
// that it could not look. Blobs are verified by the journal that holds them.
func (s *Store) Verify(ctx context.Context, report func(journal.Damage)) (Extent, error) {
	var extent Extent
	root := filepath.Join(s.root, "sha256")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		where := filepath.Join("cas", "sha256", relative)
		shard, rest := filepath.Split(relative)
		d := canonical.Digest("sha256:" + filepath.Clean(shard) + rest)
		switch {
		case e.IsDir() && (relative == "." || len(relative) == 2):
			return nil
		case !d.Valid() || s.path(d) != path:
			report(journal.Damage{Where: where, What: "the name is not that of an artifact", Tolerable: true})
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		extent.Files++
		if info, err := e.Info(); err == nil {
			extent.Bytes += info.Size()
		}
		switch err := s.check(ctx, d); {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case reason.Is(err, reason.ArtifactCorrupt):
			report(journal.Damage{Where: where, What: "the file does not have the digest of its name", Artifact: d})
		default:
			report(journal.Damage{Where: where, What: "the file cannot be read: " + err.Error(), Tolerable: true})
		}
		return nil
	})
	if err != nil {
		return extent, refuse(err, "the artifact store cannot be verified", root)
	}
	return extent, nil
}
