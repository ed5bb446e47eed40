package outbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/beneath"
	"github.com/writ-runtime/writ/go/reason"
)

// repository is a local git repository of the deployment, held by descriptors. What is in
// it decides nothing: its configuration is looked at and never applied, its hooks are
// never run, and git itself works in a repository of our own that only reads its objects.
type repository struct {
	path    string
	dir     *os.File // the folder that git calls GIT_DIR
	objects *os.File
}

func unsupported(what, path string) error {
	return reason.New(reason.OutboxRepositoryUnsupported, "no branch is made in this repository: "+what, path,
		"name an ordinary repository of the user who runs Writ: one with a folder .git, or a bare one")
}

// openRepository opens the repository at a path: its folder .git, or the path itself where
// that is a bare one. It refuses with outbox.destination_unusable or
// outbox.repository_unsupported.
func openRepository(path string) (*repository, error) {
	place, err := openPlace(path)
	if err != nil {
		return nil, err
	}
	r := &repository{path: path, dir: place}
	if inner, err := beneath.Open(place, ".git"); err == nil {
		_ = place.Close()
		r.dir = inner
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(unsupported("its .git is no folder, or leads elsewhere", path), r.Close())
	}
	if err := r.check(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close gives the descriptors back.
func (r *repository) Close() error {
	err := r.dir.Close()
	if r.objects != nil {
		err = errors.Join(err, r.objects.Close())
	}
	return err
}

func (r *repository) check() error {
	var st unix.Stat_t
	if err := unix.Fstat(int(r.dir.Fd()), &st); err != nil {
		return refuse(err, "a repository cannot be read", r.path)
	}
	if int(st.Uid) != os.Geteuid() {
		return unsupported("it belongs to somebody else", r.path)
	}
	for _, name := range []string{"refs", "refs/heads"} {
		f, err := beneath.Open(r.dir, name)
		if err != nil {
			return unsupported("its "+name+" is no folder, or leads elsewhere", r.path)
		}
		_ = f.Close()
	}
	for _, name := range []string{"commondir", "reftable"} {
		if err := unix.Fstatat(int(r.dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); !errors.Is(err, unix.ENOENT) {
			return unsupported("it has a "+name, r.path)
		}
	}
	head, err := r.read("HEAD", 4096)
	if err != nil || len(head) == 0 {
		return unsupported("it has no HEAD", r.path)
	}
	if r.objects, err = beneath.Open(r.dir, "objects"); err != nil {
		return unsupported("its objects is no folder, or leads elsewhere", r.path)
	}
	return nil
}

// read reads a small file beneath the repository's folder.
func (r *repository) read(name string, limit int64) ([]byte, error) {
	f, err := beneath.OpenFile(r.dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = errors.New(name + " is too large")
	}
	return b, err
}

// checkFormat refuses a repository of a format in which objects or branches are kept
// otherwise than this package writes them. Only git reads its configuration well, so git
// reads it, as bytes, and applies none of it.
func (r *repository) checkFormat(ctx context.Context, g *workshop) error {
	b, err := r.read("config", 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unsupported("its config cannot be read", r.path)
	}
	out, err := g.run(ctx, own, bytes.NewReader(b), "config", "--file", "-", "--no-includes", "--null", "--list")
	if err != nil {
		if reason.Is(err, reason.OutboxGitFailed) {
			return unsupported("git cannot understand its config", r.path)
		}
		return err
	}
	for row := range strings.SplitSeq(string(out), "\x00") {
		key, value, _ := strings.Cut(row, "\n")
		name, extension := strings.CutPrefix(key, "extensions.")
		switch {
		case key == "core.repositoryformatversion" && value != "0" && value != "1":
			return unsupported("its format is of version "+plainly(value), r.path)
		case !extension:
		case name == "objectformat" && value == "sha1", name == "refstorage" && value == "files":
		case name == "worktreeconfig", name == "preciousobjects", name == "partialclone", name == "noop":
		default:
			return unsupported("its format has the extension "+plainly(name), r.path)
		}
	}
	return nil
}
