package outbox_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
)

// A published folder holds every output as it was frozen, and is made once.
func TestPublish(t *testing.T) {
	w := newWorld(t, capability.Production)
	p := w.proposal(operation.Publish)
	w.begin(p)
	want(t, "before", w.ask(p), operation.NotApplied, reason.OutboxAbsent)
	out := w.send(p)
	want(t, "publish", out, operation.Applied, "")
	r := decode[protocol.PublicationResult](t, out)
	if r.Name != string(fixture.Attempt)+".first" || r.Destination != p.Destination || r.Files != 5 {
		t.Errorf("%+v", r)
	}
	dir := filepath.Join(w.releases, r.Name)
	got := contents(t, dir)
	for name, text := range outputs() {
		if got["files/"+name] != text {
			t.Errorf("%s is not what was frozen", name)
		}
		info, err := os.Stat(filepath.Join(dir, "files", name))
		if err != nil || (info.Mode()&0o100 != 0) != (name == "bin/run") {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	var m outbox.Publication
	if err := json.Unmarshal([]byte(got["manifest.json"]), &m); err != nil || len(got) != len(m.Files)+1 {
		t.Errorf("%d files, %d listed, %v", len(got), len(m.Files), err)
	}
	if back, err := outbox.ParseProposal([]byte(got["proposal.json"])); err != nil || back.Title != p.Title {
		t.Error(back, err)
	}
	before := snapshot(t, w.releases)
	for _, again := range []operation.Outcome{w.send(p), w.ask(p)} {
		want(t, "again", again, operation.Applied, "")
		if string(again.Result) != string(out.Result) {
			t.Errorf("%s, and before %s", again.Result, out.Result)
		}
	}
	unchanged(t, "publishing again", before, snapshot(t, w.releases))
}

// Whatever stands under the name stays as it is.
func TestPublishLeavesWhatIsThere(t *testing.T) {
	foreign := func(out operation.Outcome) bool {
		return out.Knowledge == operation.NotApplied && out.Code == reason.OutboxOccupied
	}
	doubtful := func(out operation.Outcome) bool {
		return out.Knowledge == operation.Unknown && out.Code == reason.OutboxOccupied
	}
	for name, c := range map[string]struct {
		make     func(t *testing.T, w *world, at string)
		resolved func(operation.Outcome) bool
	}{
		"file":    {func(t *testing.T, _ *world, at string) { write(t, at, "mine") }, foreign},
		"folder":  {func(t *testing.T, _ *world, at string) { write(t, filepath.Join(at, "mine"), "mine") }, foreign},
		"empty":   {func(t *testing.T, _ *world, at string) { fatal(t, os.Mkdir(at, 0o755)) }, foreign},
		"link":    {func(t *testing.T, w *world, at string) { fatal(t, os.Symlink(w.reviews, at)) }, foreign},
		"nowhere": {func(t *testing.T, _ *world, at string) { fatal(t, os.Symlink("/nonexistent", at)) }, foreign},
		"pipe":    {func(t *testing.T, _ *world, at string) { fatal(t, mkfifo(at)) }, foreign},
		"pipe for a manifest": {func(t *testing.T, _ *world, at string) {
			fatal(t, os.Mkdir(at, 0o755))
			fatal(t, mkfifo(filepath.Join(at, "manifest.json")))
		}, foreign},
		"another proposal's": {func(t *testing.T, w *world, at string) {
			p := w.proposal(operation.Publish)
			p.Title = "Another"
			want(t, "another", w.send(p), operation.Applied, "")
		}, foreign},
		"changed since": {func(t *testing.T, w *world, at string) {
			want(t, "first", w.send(w.proposal(operation.Publish)), operation.Applied, "")
			write(t, filepath.Join(at, "files", "report.json"), "mine")
		}, doubtful},
		"of another mode": {func(t *testing.T, w *world, at string) {
			want(t, "first", w.send(w.proposal(operation.Publish)), operation.Applied, "")
			fatal(t, os.Chmod(filepath.Join(at, "files", "report.json"), 0o755))
		}, doubtful},
		"added to": {func(t *testing.T, w *world, at string) {
			want(t, "first", w.send(w.proposal(operation.Publish)), operation.Applied, "")
			write(t, filepath.Join(at, "files", "more"), "mine")
		}, doubtful},
		"taken from": {func(t *testing.T, w *world, at string) {
			want(t, "first", w.send(w.proposal(operation.Publish)), operation.Applied, "")
			fatal(t, os.Remove(filepath.Join(at, "files", "report.json")))
		}, doubtful},
		"a link within": {func(t *testing.T, w *world, at string) {
			want(t, "first", w.send(w.proposal(operation.Publish)), operation.Applied, "")
			fatal(t, os.Rename(filepath.Join(at, "files", "report.json"), filepath.Join(w.reviews, "elsewhere")))
			fatal(t, os.Symlink(filepath.Join(w.reviews, "elsewhere"), filepath.Join(at, "files", "report.json")))
		}, doubtful},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, capability.Production)
			p := w.proposal(operation.Publish)
			c.make(t, w, filepath.Join(w.releases, p.Name()))
			before := snapshot(t, w.releases)
			want(t, "publish", w.perform(w.prepare(w.box, p)), operation.NotApplied, reason.OutboxOccupied)
			if out := w.ask(p); !c.resolved(out) {
				t.Errorf("%s %s: %s", out.Knowledge, out.Code, out.Detail)
			}
			unchanged(t, "publishing", before, snapshot(t, w.releases))
		})
	}
}

// Nor is replaced what comes under the name at the last moment, not even an empty folder.
func TestPublishReplacesNothing(t *testing.T) {
	for name, make := range map[string]func(at string) error{
		"folder": func(at string) error { return os.Mkdir(at, 0o700) },
		"file":   func(at string) error { return os.WriteFile(at, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, capability.Production)
			p := w.proposal(operation.Publish)
			box := w.box.WithSteps(func(step string) error {
				if step == "before rename" {
					return make(filepath.Join(w.releases, p.Name()))
				}
				return nil
			})
			want(t, "publish", w.perform(w.prepare(box, p)), operation.NotApplied, reason.OutboxOccupied)
			if left, err := os.ReadDir(w.releases); err != nil || len(left) != 1 || left[0].Name() != p.Name() {
				t.Errorf("%v, %v", left, err)
			}
			if got := contents(t, w.releases); len(got[p.Name()]) > 0 || len(got) > 1 {
				t.Errorf("%v", got)
			}
		})
	}
}

// Whoever exchanges the folder at the moment of its appearance leaves a doubt, not a lie.
func TestPublishIsExchanged(t *testing.T) {
	w := newWorld(t, capability.Production)
	p := w.proposal(operation.Publish)
	at := filepath.Join(w.releases, p.Name())
	box := w.box.WithSteps(func(step string) error {
		if step == "after rename" {
			fatal(t, os.Rename(at, at+"-away"))
			return os.Mkdir(at, 0o700)
		}
		return nil
	})
	want(t, "publish", w.perform(w.prepare(box, p)), operation.Unknown, reason.OutboxOccupied)
}

// A destination that is not a plain folder gets nothing, and asking there finds nothing out.
func TestHostileDestinations(t *testing.T) {
	for name, hostile := range map[string]func(t *testing.T, w *world){
		"missing": func(t *testing.T, w *world) {},
		"link":    func(t *testing.T, w *world) { fatal(t, os.Symlink(w.reviews, w.releases)) },
		"pipe":    func(t *testing.T, w *world) { fatal(t, mkfifo(w.releases)) },
		"file":    func(t *testing.T, w *world) { write(t, w.releases, "") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, capability.Production)
			fatal(t, os.Remove(w.releases))
			hostile(t, w)
			p := w.proposal(operation.Publish)
			want(t, "publish", w.send(p), operation.NotApplied, reason.OutboxDestinationUnusable)
			want(t, "ask", w.ask(p), operation.Unknown, reason.OutboxDestinationUnusable)
			if left := contents(t, w.reviews); len(left) > 0 {
				t.Errorf("%v", left)
			}
		})
	}
	t.Run("the partial name is a link", func(t *testing.T) {
		w := newWorld(t, capability.Production)
		p := w.proposal(operation.Publish)
		fatal(t, os.Symlink(w.reviews, filepath.Join(w.releases, ".writ-"+p.Name())))
		if out := w.send(p); out.Knowledge != operation.NotApplied {
			t.Errorf("%+v", out)
		}
		if left := contents(t, w.reviews); len(left) > 0 || exists(filepath.Join(w.releases, p.Name())) {
			t.Errorf("%v", left)
		}
	})
	t.Run("the partial folder is held", func(t *testing.T) {
		w := newWorld(t, capability.Production)
		p := w.proposal(operation.Publish)
		partial := filepath.Join(w.releases, ".writ-"+p.Name())
		write(t, filepath.Join(partial, "theirs"), "theirs")
		f, err := os.Open(partial)
		fatal(t, err)
		defer f.Close()
		fatal(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
		want(t, "publish", w.send(p), operation.NotApplied, reason.OutboxBusy)
		if !exists(filepath.Join(partial, "theirs")) {
			t.Error("what another process makes was removed")
		}
		want(t, "asked", w.ask(p), operation.Unknown, reason.OutboxBusy)
		fatal(t, f.Close())
		want(t, "publish", w.send(p), operation.Applied, "")
	})
}

// What the operating system answers becomes a code, and nothing stays behind.
func TestFailures(t *testing.T) {
	for cause, code := range map[error]reason.Code{
		unix.ENOSPC: reason.OutboxFull, unix.EDQUOT: reason.OutboxFull, unix.EROFS: reason.OutboxDestinationUnusable,
		unix.EACCES: reason.OutboxDestinationUnusable, unix.EINVAL: reason.OutboxDestinationUnusable, unix.EIO: reason.OutboxIO,
	} {
		t.Run(cause.Error(), func(t *testing.T) {
			w := newWorld(t, capability.Production)
			p := w.proposal(operation.Publish)
			box := w.box.WithSteps(func(step string) error {
				if step == "before write" {
					return cause
				}
				return nil
			})
			want(t, "publish", w.perform(w.prepare(box, p)), operation.NotApplied, code)
			if left := snapshot(t, w.releases, "."); len(left) > 0 {
				t.Errorf("%v", left)
			}
			if code.Transient() != slices.Contains([]reason.Code{reason.OutboxFull, reason.OutboxDestinationUnusable, reason.OutboxIO}, code) {
				t.Errorf("%s", code)
			}
		})
	}
}

// A stored artifact that is not what it was is never sent.
func TestCorruptArtifacts(t *testing.T) {
	w := newWorld(t, capability.Production)
	for _, f := range w.frozen {
		if f.Path == "large" {
			at := filepath.Join(w.dir, "cas", "sha256", f.Digest.Hex()[:2], f.Digest.Hex()[2:])
			fatal(t, os.Chmod(at, 0o600))
			write(t, at, "other")
		}
	}
	for _, kind := range []operation.Kind{operation.Publish, operation.Branch, operation.ReviewPacket} {
		want(t, string(kind), w.send(w.proposal(kind)), operation.NotApplied, reason.ArtifactCorrupt)
	}
	if left := contents(t, w.releases); len(left) > 0 {
		t.Errorf("%v", left)
	}
}
