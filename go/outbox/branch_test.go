package outbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
)

const branchName = "writ/" + string(fixture.Attempt) + "/first"

// rest is everything of a repository and its working tree that a new branch must not touch.
func rest(t testing.TB, w *world) map[string]string {
	t.Helper()
	return snapshot(t, w.project, ".git/objects", ".git/refs/heads/writ", "objects", "refs/heads/writ")
}

func resolved(t testing.TB, w *world) string {
	t.Helper()
	return strings.TrimSpace(run(t, w.project, git(t), "rev-parse", "refs/heads/"+branchName))
}

// A branch holds the outputs on its base, and nothing else of the repository is touched.
func TestBranch(t *testing.T) {
	w := newWorld(t, capability.Proposal)
	p := w.proposal(operation.Branch)
	w.begin(p)
	want(t, "before", w.ask(p), operation.NotApplied, reason.OutboxAbsent)
	write(t, filepath.Join(w.project, "README"), "not committed\n")
	before := rest(t, w)
	out := w.send(p)
	want(t, "branch", out, operation.Applied, "")
	unchanged(t, "making a branch", before, rest(t, w))
	r := decode[protocol.BranchResult](t, out)
	if r.Branch != branchName || r.Commit != resolved(t, w) || r.Destination != p.Destination {
		t.Errorf("%+v", r)
	}
	program := git(t)
	run(t, w.project, program, "fsck", "--strict", "--no-dangling")
	if got := strings.TrimSpace(run(t, w.project, program, "rev-parse", branchName+"^")); got != w.base {
		t.Errorf("the commit stands on %s, not on %s", got, w.base)
	}
	changed := run(t, w.project, program, "diff-tree", "-r", "--no-commit-id", "--name-status", w.base, branchName)
	if changed != "A\tbin/run\nA\tdocs/deep/notes.md\nA\tlarge\nA\treport.json\n" {
		t.Errorf("it changes\n%s", changed)
	}
	for name, text := range outputs() {
		if got := run(t, w.project, program, "cat-file", "blob", branchName+":"+name); got != text {
			t.Errorf("%s is not what was frozen", name)
		}
	}
	if mode := run(t, w.project, program, "ls-tree", branchName, "bin/run"); !strings.HasPrefix(mode, "100755") {
		t.Errorf("bin/run is %s", mode)
	}
	about := run(t, w.project, program, "log", "-1", "--format=%an %ae %cn %at %ct%n%B", branchName)
	id, err := p.Digest()
	fatal(t, err)
	if !strings.HasPrefix(about, fmt.Sprintf("Writ writ@writ.invalid Writ %d %d\nCount the words\n\nThree of them.", fixture.Now/1000, fixture.Now/1000)) ||
		!strings.Contains(about, "\n\nWrit-Attempt: "+string(fixture.Attempt)+"\nWrit-Proposal: "+string(id)+"\n") {
		t.Errorf("the commit says\n%s", about)
	}
	now := snapshot(t, w.project)
	for _, again := range []operation.Outcome{w.send(p), w.ask(p)} {
		want(t, "again", again, operation.Applied, "")
		if string(again.Result) != string(out.Result) {
			t.Errorf("%s, and before %s", again.Result, out.Result)
		}
	}
	unchanged(t, "making it again", now, snapshot(t, w.project))
	if left, err := filepath.Glob(filepath.Join(w.dir, "outbox", "*")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// The same proposal gives the same commit in every repository that holds the base.
func TestBranchesAreDeterministic(t *testing.T) {
	var first string
	for _, packed := range []bool{false, true} {
		w := newWorld(t, capability.Proposal)
		if packed {
			run(t, w.project, git(t), "gc", "-q")
			run(t, w.project, git(t), "pack-refs", "--all")
		}
		r := decode[protocol.BranchResult](t, w.send(w.proposal(operation.Branch)))
		if first == "" {
			first = r.Commit
		}
		if r.Commit != first {
			t.Errorf("%s, and elsewhere %s", r.Commit, first)
		}
	}
}

// Bare repositories, branches without a base, and files that are changed.
func TestOtherBranches(t *testing.T) {
	t.Run("bare", func(t *testing.T) {
		w := newWorld(t, capability.Proposal)
		bare := filepath.Join(filepath.Dir(w.project), "bare.git")
		run(t, w.project, git(t), "clone", "-q", "--bare", ".", bare)
		w.project = bare
		w.open(git(t))
		before := rest(t, w)
		want(t, "branch", w.send(w.proposal(operation.Branch)), operation.Applied, "")
		unchanged(t, "making a branch", before, rest(t, w))
		resolved(t, w)
	})
	t.Run("without a base", func(t *testing.T) {
		w := newWorld(t, capability.Proposal)
		p := w.proposal(operation.Branch)
		p.Base = ""
		want(t, "branch", w.send(p), operation.Applied, "")
		if got := run(t, w.project, git(t), "rev-list", "--count", branchName); got != "1\n" {
			t.Errorf("%s commits", got)
		}
	})
	t.Run("in an empty repository", func(t *testing.T) {
		w := newWorld(t, capability.Proposal)
		fatal(t, os.RemoveAll(filepath.Join(w.project, ".git")))
		run(t, w.project, git(t), "init", "-q", "-b", "main", ".")
		p := w.proposal(operation.Branch)
		p.Base = ""
		want(t, "branch", w.send(p), operation.Applied, "")
		resolved(t, w)
	})
	t.Run("of a changed file", func(t *testing.T) {
		w := newWorld(t, capability.Proposal)
		write(t, filepath.Join(w.project, "report.json"), "{}")
		run(t, w.project, git(t), "add", "report.json")
		run(t, w.project, git(t), "commit", "-q", "-m", "more")
		w.base = strings.TrimSpace(run(t, w.project, git(t), "rev-parse", "main"))
		want(t, "branch", w.send(w.proposal(operation.Branch)), operation.Applied, "")
		if got := run(t, w.project, git(t), "diff-tree", "-r", "--name-status", w.base, branchName, "report.json"); !strings.HasPrefix(got, "M\t") {
			t.Errorf("%s", got)
		}
	})
}

// No way leads to an existing branch: whatever has the name, or leaves no room for it,
// stays where it is. A merge would have to move one.
func TestBranchesAreNeverMoved(t *testing.T) {
	program := git(t)
	for name, c := range map[string]struct {
		make func(t *testing.T, w *world)
		// resolved is what asking finds out.
		resolved operation.Knowledge
	}{
		"at the base": {func(t *testing.T, w *world) { run(t, w.project, program, "branch", branchName) }, operation.Unknown},
		"packed": {func(t *testing.T, w *world) {
			run(t, w.project, program, "branch", branchName)
			run(t, w.project, program, "pack-refs", "--all")
		}, operation.Unknown},
		"symbolic": {func(t *testing.T, w *world) {
			run(t, w.project, program, "symbolic-ref", "refs/heads/"+branchName, "refs/heads/main")
		}, operation.NotApplied},
		"below a branch": {func(t *testing.T, w *world) { run(t, w.project, program, "branch", "writ") }, operation.NotApplied},
		"below a packed branch": {func(t *testing.T, w *world) {
			run(t, w.project, program, "branch", "writ")
			run(t, w.project, program, "pack-refs", "--all")
		}, operation.NotApplied},
		"above branches": {func(t *testing.T, w *world) { run(t, w.project, program, "branch", branchName+"/more") }, operation.NotApplied},
		"above packed branches": {func(t *testing.T, w *world) {
			run(t, w.project, program, "branch", branchName+"/more")
			run(t, w.project, program, "pack-refs", "--all")
		}, operation.NotApplied},
		"a link to a branch": {func(t *testing.T, w *world) {
			at := filepath.Join(w.project, ".git", "refs", "heads", branchName)
			fatal(t, os.MkdirAll(filepath.Dir(at), 0o755))
			fatal(t, os.Symlink("../../main", at))
		}, operation.NotApplied},
		"a link to the folder of branches": {func(t *testing.T, w *world) {
			fatal(t, os.Symlink(".", filepath.Join(w.project, ".git", "refs", "heads", "writ")))
		}, operation.NotApplied},
		"a link out of the repository": {func(t *testing.T, w *world) {
			fatal(t, os.Symlink(w.reviews, filepath.Join(w.project, ".git", "refs", "heads", "writ")))
		}, operation.NotApplied},
		"what HEAD names, unborn": {func(t *testing.T, w *world) {
			write(t, filepath.Join(w.project, ".git", "HEAD"), "ref: refs/heads/"+branchName+"\n")
		}, operation.NotApplied},
		"moved on since": {func(t *testing.T, w *world) {
			want(t, "first", w.send(w.proposal(operation.Branch)), operation.Applied, "")
			next := strings.TrimSpace(run(t, w.project, program, "commit-tree", branchName+"^{tree}", "-p", branchName, "-m", "more"))
			run(t, w.project, program, "update-ref", "refs/heads/"+branchName, next)
		}, operation.Unknown},
		"of another proposal": {func(t *testing.T, w *world) {
			p := w.proposal(operation.Branch)
			p.Title = "Another"
			want(t, "another", w.send(p), operation.Applied, "")
		}, operation.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, capability.Proposal)
			c.make(t, w)
			before := snapshot(t, w.project)
			p := w.proposal(operation.Branch)
			want(t, "branch", w.perform(w.prepare(w.box, p)), operation.NotApplied, reason.OutboxOccupied)
			if out := w.ask(p); out.Knowledge != c.resolved || out.Code != reason.OutboxOccupied {
				t.Errorf("asked: %s %s: %s", out.Knowledge, out.Code, out.Detail)
			}
			unchanged(t, "making a branch", before, snapshot(t, w.project))
			if left := contents(t, w.reviews); len(left) > 0 {
				t.Errorf("%v", left)
			}
		})
	}
	// And what comes between looking and making is not replaced either.
	for _, step := range []string{"before lock", "before link"} {
		t.Run("made meanwhile, "+step, func(t *testing.T) {
			w := newWorld(t, capability.Proposal)
			at := filepath.Join(w.project, ".git", "refs", "heads", branchName)
			box := w.box.WithSteps(func(s string) error {
				if s == step {
					write(t, at, w.base+"\n")
				}
				return nil
			})
			want(t, "branch", w.perform(w.prepare(box, w.proposal(operation.Branch))), operation.NotApplied, reason.OutboxOccupied)
			if got := resolved(t, w); got != w.base {
				t.Errorf("it is at %s", got)
			}
			if exists(at + ".lock") {
				t.Error("a lock was left")
			}
		})
	}
	t.Run("made and packed meanwhile", func(t *testing.T) {
		w := newWorld(t, capability.Proposal)
		box := w.box.WithSteps(func(s string) error {
			if s == "before lock" {
				run(t, w.project, program, "branch", branchName+"x")
				run(t, w.project, program, "pack-refs", "--all")
				at := filepath.Join(w.project, ".git", "packed-refs")
				b, err := os.ReadFile(at)
				fatal(t, err)
				write(t, at, strings.Replace(string(b), branchName+"x", branchName, 1))
			}
			return nil
		})
		want(t, "branch", w.perform(w.prepare(box, w.proposal(operation.Branch))), operation.NotApplied, reason.OutboxOccupied)
		if got := resolved(t, w); got != w.base {
			t.Errorf("it is at %s", got)
		}
	})
	t.Run("locked by git", func(t *testing.T) {
		w := newWorld(t, capability.Proposal)
		lock := filepath.Join(w.project, ".git", "refs", "heads", branchName+".lock")
		write(t, lock, "")
		want(t, "branch", w.send(w.proposal(operation.Branch)), operation.NotApplied, reason.OutboxBusy)
		if !exists(lock) {
			t.Error("git's lock was removed")
		}
		fatal(t, os.Remove(lock))
		want(t, "branch", w.send(w.proposal(operation.Branch)), operation.Applied, "")
	})
}

// Nothing that a repository holds is ever run or applied, and nothing outside of it read
// or written through it.
func TestHostileRepositories(t *testing.T) {
	program := git(t)
	applied, refused := operation.Applied, operation.NotApplied
	for name, c := range map[string]struct {
		make func(t *testing.T, w *world, canary string)
		want operation.Knowledge
		code reason.Code
	}{
		"hooks": {func(t *testing.T, w *world, canary string) {
			for _, hook := range []string{"reference-transaction", "post-commit", "pre-commit", "update", "post-update", "post-checkout", "post-index-change", "pre-auto-gc", "commit-msg", "prepare-commit-msg", "fsmonitor-watchman"} {
				write(t, filepath.Join(w.project, ".git", "hooks", hook), "#!/bin/sh\n"+canary+"\n")
			}
		}, applied, ""},
		"configuration": {func(t *testing.T, w *world, canary string) {
			script := filepath.Join(w.reviews, "script")
			write(t, script, "#!/bin/sh\n"+canary+"\n")
			for key, value := range map[string]string{
				"core.fsmonitor": script, "core.sshCommand": script, "core.hooksPath": w.reviews, "core.pager": script, "core.editor": script,
				"core.gitProxy": script, "core.alternateRefsCommand": script, "core.askPass": script, "credential.helper": "!" + script,
				"diff.external": script, "diff.evil.command": script, "diff.evil.textconv": script, "filter.evil.clean": script, "filter.evil.smudge": script,
				"filter.evil.process": script, "filter.evil.required": "true", "gpg.program": script, "commit.gpgSign": "true", "gc.auto": "1",
				"merge.evil.driver": script, "include.path": filepath.Join(w.reviews, "more"), "core.worktree": w.reviews, "core.logAllRefUpdates": "always",
				"extensions.partialClone": "origin", "remote.origin.promisor": "true", "remote.origin.url": "ext::" + script, "protocol.ext.allow": "always",
				"trace2.eventTarget": filepath.Join(w.reviews, "trace"), "i18n.commitEncoding": "latin1", "core.compression": "0", "core.autocrlf": "true",
			} {
				run(t, w.project, program, "config", key, value)
			}
			write(t, filepath.Join(w.reviews, "more"), "[core]\n\tfsmonitor = "+script+"\n")
			write(t, filepath.Join(w.project, ".git", "info", "attributes"), "* filter=evil diff=evil merge=evil text eol=crlf\n")
			fatal(t, os.RemoveAll(filepath.Join(w.project, ".git", "index")))
		}, applied, ""},
		"attributes": {func(t *testing.T, w *world, canary string) {
			write(t, filepath.Join(w.project, ".gitattributes"), "* filter=evil text eol=crlf ident\n")
			run(t, w.project, program, "add", ".gitattributes")
			run(t, w.project, program, "commit", "-q", "-m", "attributes")
			w.base = strings.TrimSpace(run(t, w.project, program, "rev-parse", "main"))
			run(t, w.project, program, "config", "filter.evil.clean", canary)
		}, applied, ""},
		"replacements": {func(t *testing.T, w *world, _ string) {
			write(t, filepath.Join(w.project, "evil"), "evil")
			run(t, w.project, program, "add", "evil")
			other := strings.TrimSpace(run(t, w.project, program, "commit-tree", strings.TrimSpace(run(t, w.project, program, "write-tree")), "-m", "evil"))
			run(t, w.project, program, "replace", w.base, other)
			run(t, w.project, program, "reset", "-q")
		}, applied, ""},
		"grafts": {func(t *testing.T, w *world, _ string) {
			write(t, filepath.Join(w.project, ".git", "info", "grafts"), w.base+" "+strings.Repeat("1", 40)+"\n")
		}, applied, ""},
		"a lost base with a promise": {func(t *testing.T, w *world, canary string) {
			script := filepath.Join(w.reviews, "script")
			write(t, script, "#!/bin/sh\n"+canary+"\n")
			for key, value := range map[string]string{
				"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
				"remote.origin.url": "ext::" + script, "protocol.ext.allow": "always", "remote.origin.uploadpack": script,
			} {
				run(t, w.project, program, "config", key, value)
			}
			fatal(t, os.Remove(filepath.Join(w.project, ".git", "objects", w.base[:2], w.base[2:])))
		}, refused, reason.OutboxBaseMissing},
		"a configuration that is none": {func(t *testing.T, w *world, _ string) {
			write(t, filepath.Join(w.project, ".git", "config"), "[core\n")
		}, refused, reason.OutboxRepositoryUnsupported},
		"a configuration that is a pipe": {func(t *testing.T, w *world, _ string) {
			fatal(t, os.Remove(filepath.Join(w.project, ".git", "config")))
			fatal(t, mkfifo(filepath.Join(w.project, ".git", "config")))
		}, refused, reason.OutboxRepositoryUnsupported},
		"another format": {func(t *testing.T, w *world, _ string) {
			run(t, w.project, program, "config", "core.repositoryFormatVersion", "1")
			run(t, w.project, program, "config", "extensions.objectFormat", "sha256")
		}, refused, reason.OutboxRepositoryUnsupported},
		"a later version": {func(t *testing.T, w *world, _ string) {
			run(t, w.project, program, "config", "core.repositoryFormatVersion", "2")
		}, refused, reason.OutboxRepositoryUnsupported},
		"a folder .git that leads elsewhere": {func(t *testing.T, w *world, _ string) {
			fatal(t, os.Rename(filepath.Join(w.project, ".git"), filepath.Join(w.reviews, "git")))
			fatal(t, os.Symlink(filepath.Join(w.reviews, "git"), filepath.Join(w.project, ".git")))
		}, refused, reason.OutboxRepositoryUnsupported},
		"a file .git": {func(t *testing.T, w *world, _ string) {
			fatal(t, os.Rename(filepath.Join(w.project, ".git"), filepath.Join(w.reviews, "git")))
			write(t, filepath.Join(w.project, ".git"), "gitdir: "+filepath.Join(w.reviews, "git")+"\n")
		}, refused, reason.OutboxRepositoryUnsupported},
		"a common folder elsewhere": {func(t *testing.T, w *world, _ string) {
			write(t, filepath.Join(w.project, ".git", "commondir"), w.reviews+"\n")
		}, refused, reason.OutboxRepositoryUnsupported},
		"objects that lead elsewhere": {func(t *testing.T, w *world, _ string) {
			fatal(t, os.Rename(filepath.Join(w.project, ".git", "objects"), filepath.Join(w.reviews, "objects")))
			fatal(t, os.Symlink(filepath.Join(w.reviews, "objects"), filepath.Join(w.project, ".git", "objects")))
		}, refused, reason.OutboxRepositoryUnsupported},
		"references that lead elsewhere": {func(t *testing.T, w *world, _ string) {
			fatal(t, os.Rename(filepath.Join(w.project, ".git", "refs"), filepath.Join(w.reviews, "refs")))
			fatal(t, os.Symlink(filepath.Join(w.reviews, "refs"), filepath.Join(w.project, ".git", "refs")))
		}, refused, reason.OutboxRepositoryUnsupported},
		"shards of objects that lead elsewhere": {func(t *testing.T, w *world, _ string) {
			for i := range 256 {
				at := filepath.Join(w.project, ".git", "objects", fmt.Sprintf("%02x", i))
				if !exists(at) {
					fatal(t, os.Symlink(w.reviews, at))
				}
			}
		}, refused, reason.OutboxDestinationUnusable},
		"a log that leads elsewhere": {func(t *testing.T, w *world, _ string) {
			write(t, filepath.Join(w.reviews, "log"), "")
			at := filepath.Join(w.project, ".git", "logs", "refs", "heads", branchName)
			fatal(t, os.MkdirAll(filepath.Dir(at), 0o755))
			fatal(t, os.Symlink(filepath.Join(w.reviews, "log"), at))
		}, applied, ""},
		"no repository": {func(t *testing.T, w *world, _ string) {
			fatal(t, os.RemoveAll(filepath.Join(w.project, ".git")))
		}, refused, reason.OutboxRepositoryUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, capability.Proposal)
			ran := filepath.Join(filepath.Dir(w.dir), "ran")
			p := w.proposal(operation.Branch)
			c.make(t, w, "touch "+ran)
			p.Base = w.base
			elsewhere, before := snapshot(t, w.reviews), rest(t, w)
			want(t, "branch", w.send(p), c.want, c.code)
			if c.want == operation.Applied {
				want(t, "asked", w.ask(p), operation.Applied, "")
				for name, text := range outputs() {
					got := run(t, w.project, program, "--no-replace-objects", "-c", "core.worktree=", "cat-file", "blob", branchName+":"+name)
					if got != text {
						t.Errorf("%s is not what was frozen", name)
					}
				}
			}
			if exists(ran) {
				t.Error("something of the repository was run")
			}
			unchanged(t, "elsewhere", elsewhere, snapshot(t, w.reviews))
			unchanged(t, "in the repository", before, rest(t, w))
		})
	}
}

// A repository of somebody else's is left alone: what is put into it would be ours.
func TestForeignRepositories(t *testing.T) {
	w := newWorld(t, capability.Proposal)
	if err := os.Chown(filepath.Join(w.project, ".git"), 12345, 12345); err != nil {
		t.Log("there is nobody to give a folder to:", err) // not root, or alone in a user namespace
		return
	}
	want(t, "branch", w.send(w.proposal(operation.Branch)), operation.NotApplied, reason.OutboxRepositoryUnsupported)
}

// A repository may borrow its objects from another; nothing is put into that.
func TestAlternates(t *testing.T) {
	w := newWorld(t, capability.Proposal)
	lender := w.project
	w.project = filepath.Join(filepath.Dir(lender), "borrower")
	run(t, lender, git(t), "clone", "-q", "--shared", ".", w.project)
	w.open(git(t))
	before := snapshot(t, lender)
	p := w.proposal(operation.Branch)
	want(t, "branch", w.send(p), operation.Applied, "")
	unchanged(t, "in the lender", before, snapshot(t, lender))
	run(t, w.project, git(t), "fsck", "--strict", "--no-dangling")
	fatal(t, os.Remove(filepath.Join(w.project, ".git", "objects", "info", "alternates")))
	want(t, "without the lender", w.ask(p), operation.Unknown, reason.OutboxBaseMissing)
}

// An object that lies about its name does not come into a branch: not one that was there,
// nor one that comes while the branch is made.
func TestDamagedObjects(t *testing.T) {
	other := newWorld(t, capability.Proposal)
	program := git(t)
	r := decode[protocol.BranchResult](t, other.send(other.proposal(operation.Branch)))
	blob := strings.TrimSpace(run(t, other.project, program, "rev-parse", r.Commit+":report.json"))
	for name, text := range map[string]string{"of another size": "other", "of the same size": `{"words":4}`} {
		for _, at := range []string{"", "before object"} {
			t.Run(name+" "+at, func(t *testing.T) {
				w := newWorld(t, capability.Proposal)
				write(t, filepath.Join(filepath.Dir(w.dir), "lie"), text)
				lie := strings.TrimSpace(run(t, other.project, program, "hash-object", "-w", filepath.Join(filepath.Dir(w.dir), "lie")))
				from, err := os.ReadFile(filepath.Join(other.project, ".git", "objects", lie[:2], lie[2:]))
				fatal(t, err)
				place := func() { write(t, filepath.Join(w.project, ".git", "objects", blob[:2], blob[2:]), string(from)) }
				box := w.box
				if at == "" {
					place()
				} else {
					box = box.WithSteps(func(step string) error {
						if step == at {
							place()
						}
						return nil
					})
				}
				want(t, "branch", w.perform(w.prepare(box, w.proposal(operation.Branch))), operation.NotApplied, reason.OutboxRepositoryDamaged)
				want(t, "asked", w.ask(w.proposal(operation.Branch)), operation.NotApplied, reason.OutboxAbsent)
			})
		}
	}
}

// Paths that git would take for its own, and files in the place of something else.
func TestUnfitPaths(t *testing.T) {
	for path, code := range map[string]reason.Code{
		".git/config": reason.OutboxBadPath, "a/.GIT/hooks/x": reason.OutboxBadPath, "git~1/config": reason.OutboxBadPath, ".gitmodules": reason.OutboxBadPath,
		".git./x": reason.OutboxBadPath, "link/x": reason.OutboxBadPath, "link": reason.OutboxBadPath, "docs": reason.OutboxBadPath, "README/x": reason.OutboxBadPath,
		".gitignore": "", "docs/new.md": "", "a b.md": "", "ä.md": "",
	} {
		t.Run(path, func(t *testing.T) {
			w := newWorld(t, capability.Proposal)
			renamed := w.frozen[3]
			renamed.Path = path
			w.rename(renamed)
			p := w.proposal(operation.Branch)
			p.Files = []outbox.File{renamed}
			k := operation.NotApplied
			if code == "" {
				k = operation.Applied
			}
			want(t, "branch", w.send(p), k, code)
		})
	}
}

// Without git nothing is done, and that is said.
func TestGitIsMissing(t *testing.T) {
	for _, program := range []string{"", "/nonexistent/git", "/etc/passwd"} {
		w := newWorld(t, capability.Proposal)
		w.open(program)
		before := snapshot(t, w.project)
		for _, kind := range []operation.Kind{operation.Branch, operation.ReviewPacket} {
			want(t, program, w.perform(w.prepare(w.box, w.proposal(kind))), operation.NotApplied, reason.OutboxGitMissing)
			if left := contents(t, w.reviews); len(left) > 0 {
				t.Errorf("%v", left)
			}
		}
		unchanged(t, "without git", before, snapshot(t, w.project))
		// What is not there can be seen without git, what is there cannot be judged.
		want(t, "asked", w.ask(w.proposal(operation.Branch)), operation.NotApplied, reason.OutboxAbsent)
		run(t, w.project, git(t), "branch", branchName)
		want(t, "asked", w.ask(w.proposal(operation.Branch)), operation.Unknown, reason.OutboxGitMissing)
		// A packet without a repository needs none.
		p := w.proposal(operation.ReviewPacket)
		p.Repository, p.Base = capability.Scope{}, ""
		want(t, "packet", w.send(p), operation.Applied, "")
	}
}

// A git that fails, hangs or answers nonsense makes no branch.
func TestGitFails(t *testing.T) {
	for name, script := range map[string]string{"fails": "exit 3", "answers nothing": "cat >/dev/null; exit 0", "answers nonsense": "cat >/dev/null; echo ok"} {
		w := newWorld(t, capability.Proposal)
		program := filepath.Join(filepath.Dir(w.dir), "git")
		write(t, program, "#!/bin/sh\nPATH=/usr/bin:/bin\n"+script+"\n")
		w.open(program)
		before := snapshot(t, w.project)
		if out := w.send(w.proposal(operation.Branch)); out.Knowledge != operation.NotApplied || out.Code == reason.InternalBug {
			t.Errorf("%s: %+v", name, out)
		}
		unchanged(t, name, before, snapshot(t, w.project))
	}
}

// Git is only ever given commands that make objects or print them, in a repository that is
// not the deployment's, and nothing of the environment that Writ runs in.
func TestGitNeverWorksInTheRepository(t *testing.T) {
	w := newWorld(t, capability.Production)
	said := filepath.Join(filepath.Dir(w.dir), "said")
	program := filepath.Join(filepath.Dir(w.dir), "git")
	write(t, program, "#!/bin/sh\necho \"$1|$GIT_DIR|$GIT_OBJECT_DIRECTORY|$SECRET$GIT_SSH_COMMAND$GIT_EXTERNAL_DIFF\" >> "+said+"\nexec "+git(t)+" \"$@\"\n")
	t.Setenv("SECRET", "secret")
	t.Setenv("GIT_SSH_COMMAND", "evil")
	t.Setenv("GIT_EXTERNAL_DIFF", "evil")
	t.Setenv("GIT_DIR", w.reviews)
	t.Chdir(filepath.Dir(w.dir))
	for _, state := range []string{w.dir, "state"} {
		w.dir = state
		w.open(program)
		for _, kind := range []operation.Kind{operation.Branch, operation.ReviewPacket} {
			want(t, string(kind), w.send(w.proposal(kind)), operation.Applied, "")
			want(t, string(kind), w.ask(w.proposal(kind)), operation.Applied, "")
		}
	}
	b, err := os.ReadFile(said)
	fatal(t, err)
	allowed := map[string]bool{
		"config": true, "cat-file": true, "read-tree": true, "hash-object": true, "update-index": true,
		"write-tree": true, "diff-tree": true, "ls-tree": true, "commit-tree": true,
	}
	for line := range strings.Lines(string(b)) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if len(parts) != 4 || !allowed[parts[0]] || parts[3] != "" {
			t.Errorf("git is told %q", line)
		}
		for _, dir := range parts[1:3] {
			if !strings.Contains(dir, "/state/outbox/git-") {
				t.Errorf("git works in %s", dir)
			}
		}
	}
}
