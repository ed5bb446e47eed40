package wasm_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/retention"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
	"github.com/writ-runtime/writ/testing/parts"
)

// week is the policy of every bundle here.
func week() protocol.RetentionParameters { return protocol.RetentionParameters{Keep: true, Days: 7} }

// newKeeping orders a tool in an environment whose workspace is kept, and lets it run to its
// end, however that is. What follows is the removal.
func newKeeping(t *testing.T, set *pin.Set, tool string, arguments ...string) *rig {
	t.Helper()
	r := newRigOf(t, set, set, func(b *attemptbundle.Bundle) {
		b.Environment.Retention = attemptbundle.Retention(week())
		b.Outputs.Retention = b.Environment.Retention
		b.Environment.Limits.Files, b.Environment.Limits.DiskBytes = 20, 1<<20
	}, tool, arguments...)
	r.launching()
	return r
}

// ran has the tool run to its end, and begins the removal of what it leaves.
func (r *rig) ran() ledger.Permit {
	r.t.Helper()
	launched := r.Run(r.permits[1], r.env.Launch(r.accepted, nil))
	return r.failed(launched)
}

// failed fails the attempt, and begins its removal.
func (r *rig) failed(launched kernel.Settle) ledger.Permit {
	r.t.Helper()
	permits := r.Next(r.Run(r.permits[0], done{protocol.StartResult{Handle: "h"}}), launched,
		kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.ToolExitNonzero, Detail: "as asked"}}).Permits
	r.cleaned = r.Run(permits[0], done{protocol.RemovalResult{Resource: r.State.Resource}})
	return permits[1]
}

// folder is where the workspace is kept.
func (r *rig) folder() string { return retention.Where(r.kept, r.State.Resource) }

// contents are the files below a folder, and demands that all is its owner's alone.
func (r *rig) contents(dir string) map[string]string {
	r.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = fs.ModeDir | 0o700
		}
		if info.Mode() != want {
			r.t.Errorf("%q has mode %s", path, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		all[rel] = string(raw)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// keeps demands that an outcome says what is kept, which is everything that the manifest
// names, and returns the text of each file by the path that the tool gave it.
func (r *rig) keeps(out operation.Outcome, files int64) map[string]string {
	r.t.Helper()
	kept := protocol.Kept(out)
	if kept == nil || out.Code != "" || kept.Policy != week() || kept.Files != files {
		r.t.Fatalf("ended %s %s: %s, kept is %+v", out.Knowledge, out.Code, out.Detail, kept)
	}
	now := lifecycle.Observation{Domain: "fixture", UnixMilli: fixture.Now}
	if kept.At != now || kept.Until != (lifecycle.Observation{Domain: "fixture", UnixMilli: fixture.Now + 7*24*60*60*1000}) {
		r.t.Errorf("kept from %+v until %+v", kept.At, kept.Until)
	}
	found := r.contents(r.folder())
	var m retention.Manifest
	raw := []byte(found["manifest.json"])
	if err := canonical.DecodeCanonical(raw, &m); err != nil || canonical.Sum(raw) != kept.Manifest {
		r.t.Fatalf("the manifest is not that of the receipt: %v", err)
	}
	if int64(len(found)) != files+1 || int64(len(m.Files)) != files || m.Attempt != fixture.Attempt || m.Bundle != r.Bundle.Digest() {
		r.t.Errorf("kept are %d files, the manifest is %+v", len(found), m)
	}
	texts, sum := map[string]string{}, int64(0)
	for _, f := range m.Files {
		texts[f.Path] = found[f.At]
		if sum += f.Size; canonical.Sum([]byte(found[f.At])) != f.Digest || int64(len(found[f.At])) != f.Size {
			r.t.Errorf("%q is not what the manifest says", f.Path)
		}
	}
	if sum != kept.Bytes || sum != m.Bytes {
		r.t.Errorf("kept are %d bytes, the receipt says %d, the manifest %d", sum, kept.Bytes, m.Bytes)
	}
	r.gone()
	return texts
}

// gone demands that nothing of the environment is left but what is kept.
func (r *rig) gone() {
	r.t.Helper()
	if left, err := os.ReadDir(r.workspaces); err != nil || len(left) != 0 {
		r.t.Errorf("left in workspaces: %v, %v", left, err)
	}
	if !gone(r.t, r.env, r.State.Resource) {
		r.t.Error("something lives")
	}
	if left, err := filepath.Glob(filepath.Join(r.kept, retention.Folder, ".*")); err != nil || len(left) != 0 {
		r.t.Errorf("left unfinished: %v, %v", left, err)
	}
}

// nothing demands that an environment is gone and nothing of it kept, with the reason.
func (r *rig) nothing(out operation.Outcome, why string) {
	r.t.Helper()
	if out.Knowledge != operation.Applied || protocol.Kept(out) != nil {
		r.t.Fatalf("ended %s %s: %s", out.Knowledge, out.Code, out.Detail)
	}
	if why != "" && (out.Code != reason.RetentionNothingLeft || !strings.Contains(out.Detail, why)) {
		r.t.Errorf("the reason is %s: %s", out.Code, out.Detail)
	}
	if _, err := os.Lstat(r.folder()); !os.IsNotExist(err) {
		r.t.Errorf("something is kept: %v", err)
	}
	r.gone()
}

// A workspace is kept whole, declared or not, however its tool ended, and its worker goes (L5).
func TestAWorkspaceIsKept(t *testing.T) {
	set := parts.Pin(t, parts.Worker(t, programs), parts.Empty(t, programs), parts.BadTools(t, programs))
	destroy := func(r *rig) operation.Outcome { return r.Run(r.ran(), r.env.Destroy(week())).Outcome }
	t.Run("after success", func(t *testing.T) {
		r := newKeeping(t, set, "empty")
		if got := r.keeps(destroy(r), 1); got["ok"] == "" {
			t.Errorf("kept are %q", got)
		}
	})
	t.Run("undeclared", func(t *testing.T) {
		r := newKeeping(t, set, "badtools", "undeclared")
		if got := r.keeps(destroy(r), 1); got["surprise.txt"] != "nobody declared me\n" {
			t.Errorf("kept are %q", got)
		}
	})
	t.Run("after a limit", func(t *testing.T) {
		r := newKeeping(t, set, "badtools", "files")
		r.keeps(destroy(r), 20)
	})
	t.Run("a failure under hostile names", func(t *testing.T) {
		r := newKeeping(t, set, "badtools", "names")
		got := r.keeps(destroy(r), 10)
		for _, name := range []string{"a\nb", "\x1b[2Jc", "\u202etxt.exe", `d\e`, "e\u0301", strings.Repeat("n", 300), "manifest.json", ".writ-f", "odd/1", "g/h/i"} {
			if got[name] != "this is "+name {
				t.Errorf("of %q is kept %q", name, got[name])
			}
		}
		// No name on the disk is one that a terminal or another system takes for something else.
		for at := range r.contents(r.folder()) {
			if refusal := protocol.CheckPath(at); refusal != nil {
				t.Errorf("a file stands at %q: %v", at, refusal)
			}
		}
	})
}

// Where nothing is left of a workspace, nothing is kept, and the receipt says why.
func TestNothingIsLeftToKeep(t *testing.T) {
	set := parts.Pin(t, parts.Worker(t, programs), parts.BadTools(t, programs))
	for name, test := range map[string]struct {
		way    string
		before func(t *testing.T, r *rig) ledger.Permit
		why    string
	}{
		"an empty workspace": {"nothing", func(_ *testing.T, r *rig) ledger.Permit { return r.ran() }, "held no file"},
		"a dead worker": {"undeclared", func(t *testing.T, r *rig) ledger.Permit {
			p := r.ran()
			if _, err := r.env.Stop(t.Context(), r.State.Resource); err != nil {
				t.Fatal(err)
			}
			return p
		}, "worker was dead"},
		"a tool that never ran": {"undeclared", func(_ *testing.T, r *rig) ledger.Permit {
			return r.failed(r.Run(r.permits[1], done{protocol.LaunchResult{Ended: protocol.EndedKilled}}))
		}, "nothing had run"},
		"a tool that runs": {"loop", func(t *testing.T, r *rig) ledger.Permit {
			launch := r.permits[1]
			ended := make(chan operation.Outcome, 1)
			go func() { ended <- r.env.Launch(r.accepted, nil).Perform(context.WithoutCancel(t.Context()), launch) }()
			t.Cleanup(func() { <-ended })
			r.running()
			return r.failed(r.Run(launch, done{protocol.LaunchResult{Ended: protocol.EndedKilled}}))
		}, "only together with its worker"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newKeeping(t, set, "badtools", test.way)
			p := test.before(t, r)
			r.nothing(r.Run(p, r.env.Destroy(week())).Outcome, test.why)
		})
	}
	t.Run("nothing is to be kept", func(t *testing.T) {
		r := newKeeping(t, set, "badtools", "undeclared")
		r.nothing(r.Run(r.ran(), r.env.Destroy(protocol.RetentionParameters{})).Outcome, "")
	})
}

// Whoever finds only the name finds what is kept under it, and keeps nothing more.
func TestWhatIsKeptIsFoundByName(t *testing.T) {
	set := parts.Pin(t, parts.Worker(t, programs), parts.BadTools(t, programs))
	t.Run("kept", func(t *testing.T) {
		r := newKeeping(t, set, "badtools", "undeclared")
		p := r.ran()
		first := r.Run(p, r.env.Destroy(week())).Outcome
		again := r.provider.Resolve(t.Context(), p.Intent())
		if got, want := protocol.Kept(again), protocol.Kept(first); got == nil || *got != *want {
			t.Errorf("found is %+v, kept was %+v", got, want)
		}
		r.keeps(again, 1)
		// Somebody changed it since: that is not what was kept.
		if err := os.WriteFile(filepath.Join(r.folder(), "files", "surprise.txt"), []byte("changed"), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := r.provider.Resolve(t.Context(), p.Intent()); out.Knowledge != operation.Applied || protocol.Kept(out) != nil || out.Code != reason.RetentionOccupied {
			t.Errorf("found is %s %s: %s", out.Knowledge, out.Code, out.Detail)
		}
	})
	t.Run("the worker lives", func(t *testing.T) {
		r := newKeeping(t, set, "badtools", "undeclared")
		p := r.ran()
		r.nothing(r.provider.Resolve(t.Context(), p.Intent()), "")
	})
	t.Run("unfinished", func(t *testing.T) {
		r := newKeeping(t, set, "badtools", "undeclared")
		p := r.ran()
		unfinished := filepath.Join(r.kept, retention.Folder, ".writ-"+r.State.Resource)
		if err := os.MkdirAll(filepath.Join(unfinished, "files"), 0o700); err != nil {
			t.Fatal(err)
		}
		r.nothing(r.provider.Resolve(t.Context(), p.Intent()), "")
	})
}

// A workspace that cannot be kept stays where it is, with its worker, for the next try.
func TestAWorkspaceThatCannotBeKeptStays(t *testing.T) {
	set := parts.Pin(t, parts.Worker(t, programs), parts.BadTools(t, programs))
	r := newKeeping(t, set, "badtools", "undeclared")
	p := r.ran()
	inTheWay := filepath.Join(r.kept, retention.Folder)
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := r.Run(p, r.env.Destroy(week()))
	if out.Outcome.Knowledge != operation.NotApplied || out.Outcome.Code != reason.RetentionOccupied {
		t.Fatalf("ended %s %s: %s", out.Outcome.Knowledge, out.Outcome.Code, out.Outcome.Detail)
	}
	if left, err := os.ReadDir(r.workspaces); err != nil || len(left) != 1 {
		t.Errorf("in workspaces stands %v, %v", left, err)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	next := r.Next(r.cleaned, out).Permits
	r.keeps(r.Run(next[0], r.env.Destroy(week())).Outcome, 1)
}

// One that is let go at last goes, whatever stands in the way of keeping it.
func TestAWorkspaceThatIsLetGoGoes(t *testing.T) {
	set := parts.Pin(t, parts.Worker(t, programs), parts.BadTools(t, programs))
	r := newKeeping(t, set, "badtools", "undeclared")
	p := r.ran()
	if err := os.WriteFile(filepath.Join(r.kept, retention.Folder), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := r.Run(p, r.env.Destroy(protocol.RetentionParameters{Days: 7})).Outcome
	if out.Knowledge != operation.Applied || protocol.Kept(out) != nil || out.Code != reason.RetentionOccupied {
		t.Errorf("ended %s %s: %s", out.Knowledge, out.Code, out.Detail)
	}
	r.gone()
}

// The removal of what is kept leaves nothing, also where a life before had begun it.
func TestWhatIsKeptIsRemoved(t *testing.T) {
	set := parts.Pin(t, parts.Worker(t, programs), parts.BadTools(t, programs))
	r := newKeeping(t, set, "badtools", "undeclared")
	kept := r.Run(r.ran(), r.env.Destroy(week()))
	r.keeps(kept.Outcome, 1)
	r.Next(r.cleaned, kept)
	p := r.Next(kernel.ExpireRetention{Clock: fixture.Observe(t, r.Ledger, protocol.Kept(kept.Outcome).Until)}).Permits[0]
	// What goes loses its name first, and a life may end there.
	if err := os.Rename(r.folder(), filepath.Join(r.kept, retention.Folder, ".writ-"+r.State.Resource)); err != nil {
		t.Fatal(err)
	}
	byName := environment.ByName{Provider: r.provider}
	r.nothing(r.Run(p, byName).Outcome, "")
	r.nothing(byName.Resolve(t.Context(), p.Intent()), "")
}
