package outbox

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// author stands in every commit; the address is one that cannot exist.
const author = "Writ <writ@writ.invalid>"

// commit is a commit that a workshop made.
type commit struct {
	id, tree string
}

// tree makes the tree of a proposal: that of its base with the files put in. It refuses, with
// outbox.bad_path, files that would take the place of anything but a file.
func (w *workshop) tree(ctx context.Context, store *artifact.Store, p Proposal) (string, error) {
	if err := w.of.checkFormat(ctx, w); err != nil {
		return "", err
	}
	for _, f := range p.Files {
		if what := unfitForGit(f.Path); what != "" {
			return "", badPath(what, f.Path)
		}
	}
	if p.Base != "" {
		kind, err := w.run(ctx, theirs, strings.NewReader(p.Base+"\n"), "cat-file", "--batch-check=%(objecttype)")
		if err != nil {
			return "", err
		}
		if strings.TrimSpace(string(kind)) != "commit" {
			return "", reason.New(reason.OutboxBaseMissing, "the repository does not hold the commit that the proposal begins from", p.Base,
				"fetch it into the repository, and send it again")
		}
		if _, err := w.run(ctx, own, nil, "read-tree", p.Base); err != nil {
			return "", err
		}
	}
	ids, err := w.blobs(ctx, store, p)
	if err != nil {
		return "", err
	}
	var index bytes.Buffer
	for i, f := range p.Files {
		fmt.Fprintf(&index, "%s %s\t%s\x00", modeOf(f), ids[i], f.Path)
	}
	if _, err := w.run(ctx, own, &index, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	// A clone without all of its blobs has a tree of them all the same.
	out, err := w.run(ctx, own, nil, "write-tree", "--missing-ok")
	if err != nil {
		return "", err
	}
	tree := strings.TrimSpace(string(out))
	if !objectName(tree) {
		return "", w.nonsense("write-tree")
	}
	return tree, w.checkChanges(ctx, own, p, tree)
}

func (w *workshop) nonsense(command string) error {
	return reason.New(reason.OutboxGitFailed, "git "+command+" answers what cannot be understood", w.of.path, "install a current git")
}

func badPath(what, path string) error {
	return reason.New(reason.OutboxBadPath, what, path, "give the output another path in the work order")
}

// unfitForGit says why a path must not stand in a tree: git itself, on this system or on
// another, would take it for its own.
func unfitForGit(path string) string {
	for s := range strings.SplitSeq(path, "/") {
		lower := strings.ToLower(strings.TrimRight(s, ". "))
		if lower == ".git" || lower == ".gitmodules" || strings.HasPrefix(lower, "git~") || strings.HasPrefix(lower, ".git:") {
			return "git would take the name for its own"
		}
	}
	return ""
}

func modeOf(f File) string {
	if f.Executable {
		return "100755"
	}
	return "100644"
}

// blobs puts the bytes of every file into the workshop, and returns their ids in order.
func (w *workshop) blobs(ctx context.Context, store *artifact.Store, p Proposal) ([]string, error) {
	var names strings.Builder
	for i, f := range p.Files {
		name := filepath.Join(w.dir, "in", strconv.Itoa(i))
		if err := copyOut(ctx, store, f, name); err != nil {
			return nil, err
		}
		names.WriteString(name + "\n")
	}
	out, err := w.run(ctx, own, strings.NewReader(names.String()), "hash-object", "-w", "--no-filters", "--stdin-paths")
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(string(out))
	if len(ids) != len(p.Files) {
		return nil, w.nonsense("hash-object")
	}
	return ids, nil
}

func copyOut(ctx context.Context, store *artifact.Store, f File, name string) error {
	in, err := store.Open(ctx, f.Digest)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	// Reading to the end is what checks the digest.
	n, err := io.Copy(out, in)
	if err == nil && n != f.Size {
		err = reason.New(reason.ArtifactCorrupt, fmt.Sprintf("%s has %d bytes, the proposal names %d", f.Path, n, f.Size), string(f.Digest), "run `writ verify` to see the extent")
	}
	if err != nil {
		return err
	}
	return out.Close()
}

// checkChanges refuses a tree, or a commit, that differs from the base by anything but the
// proposal's files, each added or changed as a file.
func (w *workshop) checkChanges(ctx context.Context, v view, p Proposal, tree string) error {
	args := []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-commit-id", p.Base, tree}
	if p.Base == "" {
		args = []string{"ls-tree", "-r", "-z", "--full-tree", tree}
	}
	out, err := w.run(ctx, v, nil, args...)
	if err != nil {
		return err
	}
	want := map[string]File{}
	for _, f := range p.Files {
		want[f.Path] = f
	}
	rows := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for len(rows) > 0 && rows[0] != "" {
		var path, mode, status string
		if p.Base == "" {
			row, name, _ := strings.Cut(rows[0], "\t")
			path, mode, status, rows = name, strings.Fields(row + " ?")[0], "A", rows[1:]
		} else {
			columns := strings.Fields(rows[0])
			if len(columns) != 5 || len(rows) < 2 {
				return w.nonsense("diff-tree")
			}
			path, mode, status, rows = rows[1], columns[1], columns[4], rows[2:]
		}
		f, ours := want[path]
		if !ours || mode != modeOf(f) || status != "A" && status != "M" {
			return badPath("a file would take the place of a folder, of a link or of another repository", path)
		}
	}
	return nil
}

// commit makes the commit of a proposal. The same proposal gives the same commit, whenever
// and by whichever git it is made.
func (w *workshop) commit(ctx context.Context, store *artifact.Store, p Proposal) (commit, error) {
	tree, err := w.tree(ctx, store, p)
	if err != nil {
		return commit{}, err
	}
	text, err := commitMessage(p)
	if err != nil {
		return commit{}, err
	}
	args := []string{"commit-tree", tree}
	if p.Base != "" {
		args = append(args, "-p", p.Base)
	}
	name, address, _ := strings.Cut(strings.TrimSuffix(author, ">"), " <")
	date := fmt.Sprintf("@%d +0000", p.Observed.UnixMilli/1000)
	out, err := w.with(ctx, own, []string{
		"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + address, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + address, "GIT_COMMITTER_DATE=" + date,
	}, strings.NewReader(text), args...)
	if err != nil {
		return commit{}, err
	}
	c := commit{id: strings.TrimSpace(string(out)), tree: tree}
	if !objectName(c.id) {
		return commit{}, w.nonsense("commit-tree")
	}
	return c, nil
}

func commitMessage(p Proposal) (string, error) {
	id, err := p.Digest()
	if err != nil {
		return "", err
	}
	text := p.Title + "\n\n"
	if m := strings.TrimRight(p.Message, "\n\t "); m != "" {
		text += m + "\n\n"
	}
	return text + fmt.Sprintf("Writ-Attempt: %s\nWrit-Proposal: %s\nWrit-Manifest: %s\n", p.Attempt, id, p.Manifest), nil
}

// verify reads back what the commit holds, from the repository alone, and compares every
// byte with the digests of the proposal: an object of git's is named by SHA-1, and the
// repository may have held another one under that name.
func (w *workshop) verify(ctx context.Context, p Proposal, c commit) error {
	damaged := func(what, where string) error {
		return reason.New(reason.OutboxRepositoryDamaged, "what the branch would hold is not what was proposed: "+what, where, "run `git fsck` in the repository")
	}
	parents, err := w.run(ctx, theirs, nil, "cat-file", "commit", c.id)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(parents, []byte("tree "+c.tree+"\n")) {
		return damaged("the commit has another tree", c.id)
	}
	if err := w.checkChanges(ctx, theirs, p, c.id); err != nil {
		return err
	}
	var ask strings.Builder
	for _, f := range p.Files {
		ask.WriteString(c.id + ":" + f.Path + "\n")
	}
	r, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := w.stream(ctx, theirs, nil, strings.NewReader(ask.String()), out, "cat-file", "--batch")
		done <- err
		_ = out.CloseWithError(io.EOF)
	}()
	err = readBack(bufio.NewReader(r), p, damaged)
	_ = r.CloseWithError(io.ErrClosedPipe)
	if gitErr := <-done; err == nil {
		return gitErr
	}
	return err
}

// readBack compares what cat-file --batch prints with the files of the proposal.
func readBack(r *bufio.Reader, p Proposal, damaged func(what, where string) error) error {
	for _, f := range p.Files {
		head, err := r.ReadString('\n')
		if err != nil {
			return damaged("it cannot be read", f.Path)
		}
		columns := strings.Fields(head)
		if len(columns) != 3 || columns[1] != "blob" || columns[2] != strconv.FormatInt(f.Size, 10) {
			return damaged("it has another size or none", f.Path)
		}
		hash := canonical.NewHasher()
		if _, err := io.CopyN(hash, r, f.Size); err != nil {
			return damaged("it cannot be read", f.Path)
		}
		if _, err := r.ReadByte(); err != nil || hash.Digest() != f.Digest {
			return damaged("it has another digest", f.Path)
		}
	}
	return nil
}
