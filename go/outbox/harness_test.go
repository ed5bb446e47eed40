package outbox_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
)

// blobs are the small artifacts of a test.
type blobs map[canonical.Digest][]byte

func (b blobs) Blob(_ context.Context, d canonical.Digest) ([]byte, error) {
	if got, ok := b[d]; ok {
		return got, nil
	}
	return nil, reason.New(reason.ArtifactMissing, "no such artifact", string(d), "")
}

// answers is an effect whose outcome is given.
type answers operation.Outcome

func (a answers) Perform(context.Context, ledger.Permit) operation.Outcome {
	return operation.Outcome(a)
}

func (a answers) Resolve(context.Context, operation.Intent) operation.Outcome {
	return operation.Outcome(a)
}

// the outputs of every test: one of them is large enough to be a file of the store.
func outputs() map[string]string {
	return map[string]string{
		"report.json": `{"words":3}`, "bin/run": "#!/bin/sh\necho no\n", "docs/deep/notes.md": "# Notes\n", "large": strings.Repeat("0123456789abcdef", 5000),
	}
}

// world is an accepted result in a deployment.
type world struct {
	t     testing.TB
	state kernel.State
	// dir is the state folder; releases, reviews and project are destinations.
	dir, releases, reviews, project string
	base                            string
	store                           *artifact.Store
	box                             *outbox.Outbox
	grants                          capability.Set
	frozen                          []outbox.File
	manifest                        canonical.Digest
	mode                            capability.Mode
	put                             func([]byte) canonical.Digest
}

func scope(t testing.TB, s string) capability.Scope {
	t.Helper()
	parsed, err := capability.ParseScope(s)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func everything(t testing.TB) capability.Set {
	t.Helper()
	return capability.NewSet(
		capability.Grant{Action: "artifact.propose", Resource: scope(t, "output:**")},
		capability.Grant{Action: "artifact.write", Resource: scope(t, "output:**")},
		capability.Grant{Action: "outbox.publish", Resource: scope(t, "output:**"), Destination: scope(t, "folder:**")},
		capability.Grant{Action: "repo.branch", Resource: scope(t, "repo:**"), Destination: scope(t, "branch:writ/**")},
		capability.Grant{Action: "repo.review_packet", Resource: scope(t, "repo:**"), Destination: scope(t, "folder:**")},
	)
}

// git is the program that tests and product use. Where there is none, the tests fail.
func git(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal("these tests need git, as the product does:", err)
	}
	return path
}

// newWorld is newWorldAt in temporary folders, with a repository.
func newWorld(t testing.TB, mode capability.Mode) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"state", "releases", "reviews"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	fatal(t, os.CopyFS(filepath.Join(root, "project"), os.DirFS(template(t))))
	return newWorldAt(t, root, mode)
}

// newWorldAt makes an attempt of a mode succeed, in a journal of its own, and opens an
// outbox over folders that are there.
func newWorldAt(t testing.TB, root string, mode capability.Mode) *world {
	t.Helper()
	w := &world{t: t, dir: filepath.Join(root, "state"), releases: filepath.Join(root, "releases"), reviews: filepath.Join(root, "reviews"), project: filepath.Join(root, "project")}
	w.grants = everything(t)
	kept := blobs{}
	var err error
	if w.store, err = artifact.Open(w.dir, kept, artifact.Options{Write: true}); err != nil {
		t.Fatal(err)
	}
	put := func(b []byte) canonical.Digest {
		ref, small, err := w.store.Put(t.Context(), strings.NewReader(string(b)), 1<<20, "text/plain")
		if err != nil {
			t.Fatal(err)
		}
		if small != nil {
			kept[ref.Digest] = small.Bytes
		}
		return ref.Digest
	}
	for _, name := range slices.Sorted(maps.Keys(outputs())) {
		text := outputs()[name]
		w.frozen = append(w.frozen, outbox.File{Path: name, Digest: put([]byte(text)), Size: int64(len(text)), Executable: strings.HasPrefix(name, "bin/")})
	}
	w.mode, w.put = mode, put
	w.accept()
	if head := filepath.Join(w.project, ".git", "refs", "heads", "main"); exists(head) {
		w.base = strings.TrimSpace(run(t, w.project, git(t), "rev-parse", "main"))
	}
	w.open(git(t))
	return w
}

// accept has the frozen files accepted.
func (w *world) accept() {
	w.t.Helper()
	m := protocol.ArtifactManifest{Kind: protocol.ArtifactManifestKind, Attestation: fixture.Digest("attestation"), PathPolicy: protocol.PathPolicyV1}
	for _, f := range w.frozen {
		m.Entries = append(m.Entries, protocol.ArtifactEntry{Path: f.Path, Type: "file", Executable: f.Executable, Size: f.Size, Digest: f.Digest, MediaType: "text/plain"})
		m.Bytes += f.Size
	}
	raw, err := canonical.Marshal(m)
	fatal(w.t, err)
	w.manifest = w.put(raw)
	w.state = accepted(w.t, w.mode, w.grants, w.manifest)
}

// rename has a frozen file, known by its digest, accepted under another path.
func (w *world) rename(f outbox.File) {
	w.t.Helper()
	i := slices.IndexFunc(w.frozen, func(o outbox.File) bool { return o.Digest == f.Digest })
	w.frozen = slices.Delete(w.frozen, i, i+1)
	w.frozen = append(w.frozen, f)
	slices.SortFunc(w.frozen, func(a, b outbox.File) int { return strings.Compare(a.Path, b.Path) })
	w.accept()
}

func (w *world) open(program string) {
	w.t.Helper()
	var err error
	w.box, err = outbox.Open(w.dir, w.store, w.destinations(), outbox.Options{Git: program})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) destinations() outbox.Destinations {
	return outbox.Destinations{
		Kind:    outbox.DestinationsKind,
		Publish: []outbox.Destination{{Name: "releases", Path: w.releases}}, Review: []outbox.Destination{{Name: "reviews", Path: w.reviews}},
		Repositories: []outbox.Destination{{Name: "project", Path: w.project}},
	}
}

// accepted drives the fixed attempt through a ledger until its result is applied.
func accepted(t testing.TB, mode capability.Mode, grants capability.Set, manifest canonical.Digest) kernel.State {
	t.Helper()
	key := fmt.Sprint(mode, grants, manifest)
	if s, ok := lives.Load(key); ok {
		return s.(kernel.State)
	}
	a := fixture.Admit(t, func(b *attemptbundle.Bundle) {
		b.Mode, b.Grants = mode, grants
	})
	done := func(p ledger.Permit, result any) kernel.Settle { return a.Run(p, answers(operation.Done(result))) }
	opened := a.Next(a.Activation())
	expected, report := fixture.Attestation(t, a.Ledger.Kernel(), a.State)
	opened = a.Next(done(opened.Permits[0], protocol.ProvisionResult{Provider: "wasm", Resource: a.State.Resource}), kernel.Attest{Expected: expected, Report: report},
		done(opened.Permits[1], protocol.MaterializeResult{Inputs: fixture.Digest("inputs")}), done(opened.Permits[2], protocol.PrepareResult{Handle: "h"}))
	ended := protocol.LaunchResult{Tool: fixture.Digest("textstat"), Ended: protocol.EndedExited}
	launch := opened.Permits[1].Intent().Key
	opened = a.Next(done(opened.Permits[0], protocol.StartResult{Handle: "h"}), done(opened.Permits[1], ended),
		kernel.Complete{Report: protocol.CompletionReport{Handle: "h", Launches: []operation.Key{launch}, Ended: []protocol.LaunchResult{ended}}})
	a.Next(done(opened.Permits[0], protocol.FreezeResult{Manifest: manifest}), done(opened.Permits[1], protocol.CollectResult{Manifest: manifest}), kernel.Accept{})
	lives.Store(key, a.State)
	return a.State
}

// lives are the accepted states that were driven to already: one life of an attempt is like
// another, and tests of every step need many.
var lives sync.Map

var (
	templateOnce sync.Once
	templateDir  string
)

// template is the repository that every world's is a copy of.
func template(t testing.TB) string {
	t.Helper()
	templateOnce.Do(func() {
		dir, err := os.MkdirTemp("", "outbox-template-*")
		fatal(t, err)
		repository(t, dir)
		templateDir = dir
	})
	return templateDir
}

func TestMain(m *testing.M) {
	status := m.Run()
	if templateDir != "" {
		_ = os.RemoveAll(templateDir)
	}
	os.Exit(status)
}

// proposal is the proposal of every output by an effector.
func (w *world) proposal(effector operation.Kind) outbox.Proposal {
	w.t.Helper()
	p := outbox.Proposal{
		Kind: outbox.ProposalKind, Attempt: fixture.Attempt, Purpose: "first", Effector: effector,
		Result: w.state.Evidence("AttemptResult"), Manifest: w.manifest, Files: w.frozen,
		Receipts: []lifecycle.Guard{
			{Name: "CollectionReceipt", Digest: w.state.Evidence("CollectionReceipt")},
			{Name: "ReductionReceipt", Digest: w.state.Evidence("ReductionReceipt")},
		},
		Title: "Count the words", Message: "Three of them.\n\n# Not a heading\n",
		Observed: lifecycle.Observation{Domain: "fixture", UnixMilli: fixture.Now},
	}
	switch effector {
	case operation.Publish:
		p.Destination = scope(w.t, "folder:releases")
	case operation.Branch:
		p.Destination, p.Base = scope(w.t, "repo:project"), w.base
	case operation.ReviewPacket:
		p.Destination, p.Repository, p.Base = scope(w.t, "folder:reviews"), scope(w.t, "repo:project"), w.base
	case operation.ShadowPublish:
		p.Destination = scope(w.t, "none")
	}
	return p
}

func (w *world) authoritative() outbox.Authoritative {
	w.t.Helper()
	a, err := outbox.Authorize(w.state)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// prepare prepares a proposal on an outbox, and fails the test where that is refused.
func (w *world) prepare(box *outbox.Outbox, p outbox.Proposal) outbox.Sending {
	w.t.Helper()
	s, err := box.Prepare(w.t.Context(), w.authoritative(), p, 1, w.grants)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// call is what a permit for an intent would carry.
func (w *world) call(in operation.Intent) protocol.Call {
	return protocol.Call{Bundle: w.state.Bundle.Digest(), Fence: w.state.Fence(), Operation: in.Key, Digest: in.Digest}
}

// perform performs a sending as the dispatcher does, but for that it is settled.
func (w *world) perform(s outbox.Sending) operation.Outcome {
	w.t.Helper()
	if err := s.Mark(); err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	return s.PerformAs(w.t.Context(), w.call(s.Intent()), s.Intent())
}

// send performs a proposal and settles it.
func (w *world) send(p outbox.Proposal) operation.Outcome {
	w.t.Helper()
	s := w.prepare(w.box, p)
	out := w.perform(s)
	s.Settled(out)
	return out
}

// begin is what comes before the intent of a proposal is durable.
func (w *world) begin(p outbox.Proposal) {
	w.t.Helper()
	fatal(w.t, w.prepare(w.box, p).Ready())
}

// marked reports whether anything is marked as not sent.
func (w *world) marked() bool {
	w.t.Helper()
	all, err := filepath.Glob(filepath.Join(w.dir, "unsent", "*"))
	fatal(w.t, err)
	return len(all) > 0
}

// ask resolves a proposal as another life would.
func (w *world) ask(p outbox.Proposal) operation.Outcome {
	s := w.prepare(w.box, p)
	return s.Resolve(w.t.Context(), s.Intent())
}

// want fails the test unless an outcome is what it should be.
func want(t testing.TB, what string, got operation.Outcome, k operation.Knowledge, code reason.Code) {
	t.Helper()
	if got.Knowledge != k || got.Code != code {
		t.Fatalf("%s: %s %s: %s, want %s %s", what, got.Knowledge, got.Code, got.Detail, k, code)
	}
}

func decode[T any](t testing.TB, out operation.Outcome) T {
	t.Helper()
	var v T
	if err := canonical.Decode(out.Result, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o644) }

func fatal(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// run runs a program in a folder, with a configuration of nobody's.
func run(t testing.TB, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_AUTHOR_DATE=@1700000000 +0000", "GIT_COMMITTER_DATE=@1700000000 +0000",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// repository makes a repository with one commit on main, checked out.
func repository(t testing.TB, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, "README"), "a project\n")
	write(t, filepath.Join(dir, "docs", "old.md"), "old\n")
	if err := os.Symlink("docs", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	program := git(t)
	run(t, dir, program, "init", "-q", "-b", "main", ".")
	run(t, dir, program, "add", ".")
	run(t, dir, program, "commit", "-q", "-m", "begin")
}

// snapshot is every entry below a folder with what it holds, but for those that skip names.
func snapshot(t testing.TB, dir string, skip ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if slices.ContainsFunc(skip, func(s string) bool { return rel == s || strings.HasPrefix(rel, s+"/") }) {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(b)
			text += " " + hex.EncodeToString(sum[:])
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			text += " " + to
		}
		all[rel] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unchanged fails the test where two snapshots differ.
func unchanged(t testing.TB, what string, before, after map[string]string) {
	t.Helper()
	for name := range maps.Keys(mergeKeys(before, after)) {
		if before[name] != after[name] {
			t.Errorf("%s: %s was %q and is %q", what, name, before[name], after[name])
		}
	}
}

func mergeKeys(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// contents is what stands below a folder, by path.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(fmt.Errorf("contents of %s: %w", dir, err))
	}
	return all
}
