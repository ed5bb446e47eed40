package outbox

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/beneath"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

const heads = "refs/heads/"

// errBranchTaken says that something else has a branch's name, or a name that leaves no
// room for it.
var errBranchTaken = errors.New("the name is taken")

// branchAt returns the commit that a branch names, "" if there is no such branch. It
// answers errBranchTaken where the name belongs to something else: a symbolic reference, a
// link, a folder of branches, or a branch that the name lies below.
func (r *repository) branchAt(branch string) (string, error) {
	b, err := r.read(heads+branch, 4096)
	switch {
	case err == nil:
		commit := strings.TrimSuffix(string(b), "\n")
		if !objectName(commit) {
			return "", errBranchTaken
		}
		return commit, nil
	case errors.Is(err, unix.EISDIR), errors.Is(err, beneath.ErrIrregular), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		return "", errBranchTaken
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if head, err := r.read("HEAD", 4096); err != nil || strings.TrimSpace(string(head)) == "ref: "+heads+branch {
		return "", errors.Join(err, errBranchTaken) // making it would change what HEAD is
	}
	return r.packed(heads + branch)
}

// packed looks a reference up among those that git keeps in one file.
func (r *repository) packed(ref string) (string, error) {
	f, err := beneath.OpenFile(r.dir, "packed-refs")
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		commit, name, ok := strings.Cut(lines.Text(), " ")
		switch {
		case !ok || strings.HasPrefix(commit, "#"):
		case name == ref && objectName(commit):
			return commit, nil
		case name == ref, strings.HasPrefix(name, ref+"/"), strings.HasPrefix(ref, name+"/"):
			return "", errBranchTaken
		}
	}
	return "", lines.Err()
}

// newBranch makes a branch that was not there. It is the only code that makes a reference,
// and it does so with a link, which replaces nothing. Git's own lock is held meanwhile, so
// that a git that is at work on the same name waits or fails.
//
// The mark is spent right before the link. What is known with an error is that the link was not made, or nothing.
func (h hands) newBranch(r *repository, branch, commit string, m mark) (known operation.Knowledge, err error) {
	at := strings.LastIndexByte(heads+branch, '/')
	folder, name := (heads + branch)[:at], (heads + branch)[at+1:]
	way, err := h.Folders(r.dir, folder, 0o755)
	defer beneath.CloseAll(way)
	if err != nil {
		if errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			err = errBranchTaken
		}
		return operation.NotApplied, err
	}
	dir := way[len(way)-1]
	text := commit + "\n"
	if err := h.lock(dir, name, text); err != nil {
		return operation.NotApplied, err
	}
	defer func() { h.sweepRef(dir, name, text) }()
	// Now that nobody else makes it: is it still not there?
	switch now, err := r.branchAt(branch); {
	case err != nil:
		return operation.NotApplied, err
	case now != "":
		return operation.NotApplied, errBranchTaken
	}
	if known, err := m.spend(); err != nil {
		return known, err
	}
	known = operation.NotApplied
	err = h.Do("link", func() error {
		err := unix.Linkat(int(dir.Fd()), lockOf(name), int(dir.Fd()), name, 0)
		if err == nil {
			known = operation.Unknown
		}
		return err
	})
	if errors.Is(err, fs.ErrExist) {
		return known, errBranchTaken
	}
	if err != nil {
		return known, err
	}
	for i := len(way) - 1; i >= 0; i-- {
		if err := h.Do("sync", way[i].Sync); err != nil {
			return operation.Unknown, err
		}
	}
	return operation.Applied, nil
}

// lockOf is the name of the file by which git locks a reference; draftOf is where its
// text is written first, so that a lock is never found half written. Git takes neither
// for a reference.
func lockOf(name string) string  { return name + ".lock" }
func draftOf(name string) string { return ".writ-" + name }

// lock takes git's lock of a reference. A lock with the very same text is one that an
// earlier life left, and is taken over.
func (h hands) lock(dir *os.File, name, text string) error {
	if err := h.Remove(dir, draftOf(name)); err != nil {
		return err
	}
	var draft *os.File
	err := h.Do("create", func() (err error) {
		draft, err = beneath.Create(dir, draftOf(name))
		return err
	})
	if draft != nil {
		defer draft.Close()
	}
	if err != nil {
		return err
	}
	for _, step := range []struct {
		name   string
		change func() error
	}{
		{"write", func() error { _, err := draft.WriteString(text); return err }},
		{"chmod", func() error { return draft.Chmod(0o644) }},
		{"sync", draft.Sync},
		{"lock", func() error {
			return unix.Linkat(int(dir.Fd()), draftOf(name), int(dir.Fd()), lockOf(name), 0)
		}},
	} {
		err := h.Do(step.name, step.change)
		if errors.Is(err, fs.ErrExist) && step.name == "lock" && textOf(dir, lockOf(name)) == text {
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			_ = h.Remove(dir, draftOf(name))
			return reason.New(reason.OutboxBusy, "git is at work on the branch", name+".lock",
				"let it finish, and send it again; a lock that a dead git left must be removed by hand")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepRef removes draft and lock of a reference, if they are those with our text.
func (h hands) sweepRef(dir *os.File, name, text string) {
	for _, own := range []string{lockOf(name), draftOf(name)} {
		if textOf(dir, own) == text {
			_ = h.Do("unlink", func() error { return unix.Unlinkat(int(dir.Fd()), own, 0) })
		}
	}
}

func textOf(dir *os.File, name string) string {
	f, err := beneath.OpenFile(dir, name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, 4096))
	return string(b)
}

// refFolder opens the folder that a branch's reference lies in, nil where it is missing.
func (r *repository) refFolder(branch string) (*os.File, error) {
	at := strings.LastIndexByte(branch, '/')
	f, err := beneath.Open(r.dir, heads+branch[:at])
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}
