package outbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/beneath"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// maxGitOutput bounds what one run of git may print, in bytes; gitDeadline how long it may take.
const (
	maxGitOutput = 64 << 20
	gitDeadline  = 2 * time.Minute
)

// gitConfig is the whole configuration that git ever has here.
const gitConfig = `[core]
	repositoryformatversion = 0
	bare = true
	hooksPath = /dev/null
	attributesFile = /dev/null
	excludesFile = /dev/null
	protectHFS = true
	protectNTFS = true
	bigFileThreshold = 1g
	logAllRefUpdates = false
[gc]
	auto = 0
[maintenance]
	auto = false
`

// workshop is a repository of our own for one piece of work: no references, no hooks, and
// a configuration that is gitConfig. It reads the objects of another repository, by a
// descriptor, and writes into itself.
type workshop struct {
	program string
	dir     string
	lock    *os.File
	of      *repository
}

// view says which objects git sees.
type view string

const (
	// own has what the workshop made, and behind it what the repository holds.
	own view = "objects"
	// theirs has what the repository holds and nothing else.
	theirs view = "nothing"
)

// work opens a workshop over a repository.
func (b *Outbox) work(of *repository) (*workshop, error) {
	if !filepath.IsAbs(b.git) {
		return nil, gitMissing(nil)
	}
	dir, err := os.MkdirTemp(b.scratch, "git-*")
	if err != nil {
		return nil, refuse(err, "git has no folder to work in", b.scratch)
	}
	w := &workshop{program: b.git, dir: dir, of: of}
	if w.lock, err = os.Open(dir); err == nil {
		err = unix.Flock(int(w.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	for _, name := range []string{"git", "git/objects", "git/refs", "git/nothing", "in"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	for name, text := range map[string]string{"git/HEAD": "ref: refs/heads/none\n", "git/config": gitConfig} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if err != nil {
		w.close()
		return nil, refuse(err, "git has no folder to work in", dir)
	}
	return w, nil
}

func (w *workshop) close() {
	_ = os.RemoveAll(w.dir) // what stays is swept when the outbox is opened again
	if w.lock != nil {
		beneath.Unlock(w.lock)
	}
}

// sweepScratch removes workshops that nobody holds.
func sweepScratch(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "git-*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			err = os.RemoveAll(name)
		}
		beneath.Unlock(f)
		if err != nil {
			return err
		}
	}
	return nil
}

// environment is all that git gets: nothing of the environment of Writ itself, nothing of
// the machine's or a person's configuration, no transport, no question to anybody.
func (w *workshop) environment(v view) []string {
	return []string{
		"LC_ALL=C", "TZ=UTC", "HOME=" + w.dir, "XDG_CONFIG_HOME=" + w.dir, "PATH=/nonexistent",
		"GIT_DIR=" + filepath.Join(w.dir, "git"), "GIT_INDEX_FILE=" + filepath.Join(w.dir, "index"),
		"GIT_OBJECT_DIRECTORY=" + filepath.Join(w.dir, "git", string(v)), "GIT_ALTERNATE_OBJECT_DIRECTORIES=/proc/self/fd/3",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
	}
}

// run runs git and returns what it printed. Refusals: outbox.git_missing, outbox.git_failed.
func (w *workshop) run(ctx context.Context, v view, in io.Reader, args ...string) ([]byte, error) {
	return w.with(ctx, v, nil, in, args...)
}

func (w *workshop) with(ctx context.Context, v view, more []string, in io.Reader, args ...string) ([]byte, error) {
	out := &bounded{most: maxGitOutput}
	err := w.stream(ctx, v, more, in, out, args...)
	return out.Bytes(), err
}

func (w *workshop) stream(ctx context.Context, v view, more []string, in io.Reader, out io.Writer, args ...string) error {
	timed, cancel := context.WithTimeout(ctx, gitDeadline)
	defer cancel()
	said := &bounded{most: 64 << 10}
	cmd := exec.CommandContext(timed, w.program, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.dir, append(w.environment(v), more...), time.Second
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, said
	cmd.ExtraFiles = []*os.File{w.of.objects} // descriptor 3
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return gitMissing(err)
	}
	what := "git " + args[0] + " failed"
	if text := strings.TrimSpace(said.String()); text != "" {
		what += ": " + plainly(text)
	}
	return reason.New(reason.OutboxGitFailed, what, w.of.path, "see whether `git fsck` finds the repository in order, and send it again").Because(err)
}

func gitMissing(cause error) error {
	return reason.New(reason.OutboxGitMissing, "the program git is not there", "PATH", "install git, and start Writ again").Because(cause)
}

// plainly makes what another program said fit to be shown.
func plainly(s string) string {
	if len(s) > 300 {
		s = s[:300] + "…"
	}
	return protocol.EscapePath(strings.ReplaceAll(s, "\n", "; "))
}

// bounded keeps what is written to it, and fails beyond a bound.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, errors.New("it printed too much")
	}
	return b.Buffer.Write(p)
}
