package outbox

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/beneath"
	"github.com/writ-runtime/writ/go/reason"
)

// install copies every object that the workshop made into the repository, durable. An
// object is named by its content: one that is there already stays, and must be the same.
// Objects that nothing refers to do no harm, and git removes them in time.
func (h hands) install(ctx context.Context, w *workshop) error {
	from, err := os.Open(filepath.Join(w.dir, "git", string(own)))
	if err != nil {
		return err
	}
	defer from.Close()
	names, err := beneath.Files(from, 1<<20)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(name) != 41 || name[2] != '/' || !objectName(name[:2]+name[3:]) {
			return w.nonsense("hash-object")
		}
		if err := h.installOne(w.of, from, name[:2], name[3:]); err != nil {
			return err
		}
	}
	return h.Do("sync", w.of.objects.Sync)
}

func (h hands) installOne(r *repository, from *os.File, shard, name string) error {
	way, err := h.Folders(r.objects, shard, 0o755)
	defer beneath.CloseAll(way)
	if err != nil {
		return err
	}
	dir := way[0]
	in, err := beneath.OpenFile(from, shard+"/"+name)
	if err != nil {
		return err
	}
	defer in.Close()
	// Git removes what begins with tmp_obj_ and is old: what a crash leaves here goes with it.
	temporary := "tmp_obj_writ_" + name
	if err := h.Remove(dir, temporary); err != nil {
		return err
	}
	var out *os.File
	err = h.Do("create", func() (err error) {
		out, err = beneath.Create(dir, temporary)
		return err
	})
	if out != nil {
		defer out.Close()
	}
	if err != nil {
		return err
	}
	defer func() { _ = h.Remove(dir, temporary) }()
	for _, step := range []struct {
		name   string
		change func() error
	}{
		{"write", func() error { _, err := io.Copy(out, in); return err }},
		{"chmod", func() error { return out.Chmod(0o444) }},
		{"sync", out.Sync},
		{"object", func() error { return unix.Linkat(int(dir.Fd()), temporary, int(dir.Fd()), name, 0) }},
	} {
		err := h.Do(step.name, step.change)
		if errors.Is(err, fs.ErrExist) {
			err = sameObject(r, dir, name, in)
		}
		if err != nil {
			return err
		}
	}
	return h.Do("sync", dir.Sync)
}

// sameObject refuses an object that is there under the name of ours and has other content.
func sameObject(r *repository, dir *os.File, name string, want *os.File) error {
	damaged := reason.New(reason.OutboxRepositoryDamaged, "the repository holds another object under the name of one that is to be put in", r.path, "run `git fsck` in the repository")
	have, err := beneath.OpenFile(dir, name)
	if err != nil {
		return damaged.Because(err)
	}
	defer have.Close()
	if _, err := want.Seek(0, io.SeekStart); err != nil {
		return err
	}
	a, err := inflate(want)
	if err != nil {
		return err
	}
	if b, err := inflate(have); err != nil || !bytes.Equal(a, b) {
		return damaged.Because(err)
	}
	return nil
}

// inflate unpacks an object of at most what a proposal may hold.
func inflate(r io.Reader) ([]byte, error) {
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return io.ReadAll(io.LimitReader(z, MaxBytes+1024))
}
