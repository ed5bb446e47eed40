package retention_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/retention"
	"github.com/writ-runtime/writ/testing/fixture"
)

const resource = string(fixture.Attempt) + ".g1"

// file is a file of a workspace that serves other than it lists, if serves is set.
type file struct {
	path, text string
	size       int64
	kind       artifact.EntryType
}

// workspace is a workspace that may lie.
type workspace []file

func (w workspace) Entries(context.Context) iter.Seq2[artifact.Entry, error] {
	return func(yield func(artifact.Entry, error) bool) {
		for _, f := range w {
			e := artifact.Entry{Path: f.path, Type: artifact.File, Size: int64(len(f.text)) + f.size, Links: 1}
			if f.kind != "" {
				e.Type, e.Size = f.kind, 0
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (w workspace) Open(_ context.Context, path string) (io.ReadCloser, error) {
	for _, f := range w {
		if f.path == path && f.kind == "" {
			return io.NopCloser(strings.NewReader(f.text)), nil
		}
	}
	return nil, fs.ErrNotExist
}

func honest() workspace {
	return workspace{
		{path: "report.json", text: "{}"}, {path: "docs", kind: artifact.Dir}, {path: "docs/a.md", text: "# A\n"}, {path: "empty", kind: artifact.Dir},
		{path: "x\n", text: "odd"}, {path: "nothing", text: ""},
	}
}

func order() retention.Order {
	return retention.Order{
		Attempt: fixture.Attempt, Bundle: fixture.Digest("bundle"), Resource: resource, Policy: protocol.RetentionParameters{Keep: true, Days: 2}, Files: 10, Bytes: 1000,
	}
}

func open(t *testing.T) (string, *retention.Store) {
	t.Helper()
	dir := t.TempDir()
	return dir, retention.Open(dir, func() lifecycle.Observation { return fixture.Clock{}.Now() })
}

// names is everything below the folder of what is kept.
func names(t *testing.T, state string) []string {
	t.Helper()
	var all []string
	root := filepath.Join(state, retention.Folder)
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(root, path); err == nil && rel != "." {
			all = append(all, strings.Replace(rel, resource, "R", 1))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}

func complete() []string {
	return []string{"R", "R/files", "R/files/docs", "R/files/docs/a.md", "R/files/nothing", "R/files/report.json", "R/manifest.json", "R/odd", "R/odd/1"}
}

func TestKeepFindRemove(t *testing.T) {
	state, s := open(t)
	r, err := s.Keep(t.Context(), order(), honest())
	if err != nil {
		t.Fatal(err)
	}
	now := fixture.Clock{}.Now()
	if r.Files != 4 || r.Bytes != 9 || r.At != now || r.Until.UnixMilli != now.UnixMilli+2*24*60*60*1000 || r.Policy != order().Policy {
		t.Errorf("kept is %+v", r)
	}
	if got := names(t, state); !slices.Equal(got, complete()) {
		t.Errorf("there stand %q", got)
	}
	if found, ok, err := s.Find(t.Context(), resource); err != nil || !ok || found != r {
		t.Errorf("found is %+v, %v, %v", found, ok, err)
	}
	// What is kept is kept as it is: a second keeping is answered by the first.
	if again, err := s.Keep(t.Context(), order(), workspace{{path: "other", text: "other"}}); err != nil || again != r {
		t.Errorf("kept again is %+v, %v", again, err)
	}
	for range 2 {
		if err := s.Remove(resource); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.Find(t.Context(), resource); err != nil || ok || len(names(t, state)) > 0 {
			t.Errorf("after its removal there stand %q, %v, %v", names(t, state), ok, err)
		}
	}
}

// Nothing is kept of a workspace that says of itself what is not so, or is larger than its
// environment may be; and nothing of it is left.
func TestALyingWorkspaceIsNotKept(t *testing.T) {
	for name, test := range map[string]struct {
		source workspace
		code   reason.Code
	}{
		"nothing in it":         {workspace{{path: "empty", kind: artifact.Dir}}, reason.RetentionNothingLeft},
		"more bytes served":     {workspace{{path: "a", text: "12345", size: -1}}, reason.RetentionUnreadable},
		"fewer bytes served":    {workspace{{path: "a", text: "12345", size: 1}}, reason.RetentionUnreadable},
		"a negative size":       {workspace{{path: "a", text: "12345", size: -10}}, reason.RetentionUnreadable},
		"a path twice":          {workspace{{path: "a", text: "1"}, {path: "a", text: "2"}}, reason.RetentionUnreadable},
		"beneath a file":        {workspace{{path: "a", text: "1"}, {path: "a/b", text: "2"}}, reason.RetentionUnreadable},
		"a link":                {workspace{{path: "a", kind: artifact.Symlink}}, reason.RetentionUnreadable},
		"too many bytes":        {workspace{{path: "a", text: "1", size: 500}, {path: "b", text: "2", size: 500}}, reason.RetentionTooMuch},
		"bytes beyond counting": {workspace{{path: "a", text: "1"}, {path: "b", size: 1<<63 - 1}}, reason.RetentionTooMuch},
		"eleven entries":        {many(11), reason.RetentionTooMuch},
	} {
		t.Run(name, func(t *testing.T) {
			state, s := open(t)
			if _, err := s.Keep(t.Context(), order(), test.source); !reason.Is(err, test.code) {
				t.Errorf("got %v, want %s", err, test.code)
			}
			if got := names(t, state); len(got) > 0 {
				t.Errorf("left are %q", got)
			}
		})
	}
}

func many(n int) workspace {
	var w workspace
	for i := range n {
		w = append(w, file{path: fmt.Sprint(i), text: "x"})
	}
	return w
}

// Paths that are none do not lead out of the folder.
func TestHostilePathsStayInside(t *testing.T) {
	for _, path := range []string{"", ".", "..", "../x", "/etc/passwd", "a/../../x", "a//b", strings.Repeat("n", 300), "a\x00b"} {
		state, s := open(t)
		r, err := s.Keep(t.Context(), order(), workspace{{path: path, text: "x"}})
		if err != nil || r.Files != 1 {
			t.Errorf("%q: %+v, %v", path, r, err)
			continue
		}
		if got, want := names(t, state), []string{"R", "R/manifest.json", "R/odd", "R/odd/1"}; !slices.Equal(got, want) {
			t.Errorf("%q: there stand %q", path, got)
		}
	}
}

// A life can end before and after every step: the next one finds all of it or nothing, and
// nothing unfinished stays. What was not kept can be kept then, and what was is removed.
func TestEveryStepOfKeepingAndRemoving(t *testing.T) {
	killed := errors.New("killed")
	steps := func(do func(s *retention.Store) error) (n int) {
		_, s := open(t)
		if err := do(s.WithSteps(func(string) error { n++; return nil })); err != nil {
			t.Fatal(err)
		}
		return n
	}
	keep := func(s *retention.Store) error {
		_, err := s.Keep(t.Context(), order(), honest())
		return err
	}
	both := func(s *retention.Store) error { return errors.Join(keep(s), s.Remove(resource)) }
	total, kept := steps(both), steps(keep)
	if kept < 20 || total < kept+10 {
		t.Fatalf("%d steps, %d of them to keep", total, kept)
	}
	for i := range total {
		state, s := open(t)
		n, where := 0, ""
		dying := s.WithSteps(func(step string) error {
			if n++; n > i {
				where = step
				return killed // and every step after it: nothing is tidied up
			}
			return nil
		})
		if err := both(dying); err == nil {
			t.Fatalf("step %d of %d was not reached", i, total)
		}
		found, ok, err := s.Find(t.Context(), resource)
		if err != nil {
			t.Fatalf("killed %s (%d): %v", where, i, err)
		}
		want := []string(nil)
		if ok {
			want = complete()
			if i <= kept/2 {
				t.Errorf("killed %s (%d): found is %+v", where, i, found)
			}
		}
		if got := names(t, state); !slices.Equal(got, want) {
			t.Errorf("killed %s (%d): found %v, and there stand %q", where, i, ok, got)
		}
		if r, err := s.Keep(t.Context(), order(), honest()); err != nil || ok && r != found {
			t.Errorf("killed %s (%d): kept then is %+v, %v", where, i, r, err)
		}
		if err := s.Remove(resource); err != nil || len(names(t, state)) > 0 {
			t.Errorf("killed %s (%d): removed then: %v, %q", where, i, err, names(t, state))
		}
	}
}

// Where it is not known whether the folder survives a loss of power, nobody says that it
// does, and nobody that it does not.
func TestADoubtIsSaid(t *testing.T) {
	state, s := open(t)
	renamed := false
	_, err := s.WithSteps(func(step string) error {
		renamed = renamed || step == "after rename"
		if renamed && step == "before sync" {
			return unix.EIO
		}
		return nil
	}).Keep(t.Context(), order(), honest())
	var doubt *retention.DoubtError
	if !errors.As(err, &doubt) || !reason.Is(err, reason.RetentionIO) {
		t.Errorf("got %v", err)
	}
	if got := names(t, state); !slices.Equal(got, complete()) {
		t.Errorf("there stand %q", got)
	}
	if _, ok, err := s.WithSteps(func(step string) error {
		if step == "before sync" {
			return unix.EIO
		}
		return nil
	}).Find(t.Context(), resource); !errors.As(err, &doubt) || ok {
		t.Errorf("found: %v, %v", ok, err)
	}
	if _, ok, err := s.Find(t.Context(), resource); err != nil || !ok {
		t.Errorf("found: %v, %v", ok, err)
	}
}

// As long as somebody is at work on it, nobody can say whether it is kept.
func TestAKeepingUnderWayIsNoAnswer(t *testing.T) {
	state, s := open(t)
	asked := false
	dying := s.WithSteps(func(step string) error {
		if step != "before rename" {
			return nil
		}
		asked = true
		if _, ok, err := s.Find(t.Context(), resource); !reason.Is(err, reason.RetentionIO) || ok {
			t.Errorf("meanwhile found: %v, %v", ok, err)
		}
		return errors.New("killed")
	})
	if _, err := dying.Keep(t.Context(), order(), honest()); err == nil || !asked {
		t.Fatal("it was not under way")
	}
	if _, ok, err := s.Find(t.Context(), resource); err != nil || ok || len(names(t, state)) > 0 {
		t.Errorf("afterwards found: %v, %v; there stand %q", ok, err, names(t, state))
	}
}

func TestAFullDisk(t *testing.T) {
	state, s := open(t)
	full := s.WithSteps(func(step string) error {
		if step == "before write" {
			return unix.ENOSPC
		}
		return nil
	})
	if _, err := full.Keep(t.Context(), order(), honest()); !reason.Is(err, reason.RetentionFull) {
		t.Errorf("got %v", err)
	}
	if got := names(t, state); len(got) > 0 {
		t.Errorf("left are %q", got)
	}
}

// What stands under the name and is not what was kept is left alone.
func TestWhatWasChangedIsLeftAlone(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"another byte": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "files", "report.json"), []byte("[]"), 0o600)
		},
		"a file more": func(dir string) error { return os.WriteFile(filepath.Join(dir, "more"), nil, 0o600) },
		"a file less": func(dir string) error { return os.Remove(filepath.Join(dir, "odd", "1")) },
		"a link":      func(dir string) error { return os.Symlink("manifest.json", filepath.Join(dir, "link")) },
		"no manifest": func(dir string) error { return os.Remove(filepath.Join(dir, "manifest.json")) },
		"another's": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(`{"kind":"other"}`), 0o600)
		},
		"no folder": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
		"a link to one": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".moved"), os.Symlink(dir+".moved", dir))
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, s := open(t)
			if _, err := s.Keep(t.Context(), order(), honest()); err != nil {
				t.Fatal(err)
			}
			if err := change(retention.Where(state, resource)); err != nil {
				t.Fatal(err)
			}
			before := names(t, state)
			if _, ok, err := s.Find(t.Context(), resource); !reason.Is(err, reason.RetentionOccupied) || ok {
				t.Errorf("found: %v, %v", ok, err)
			}
			if _, err := s.Keep(t.Context(), order(), honest()); !reason.Is(err, reason.RetentionOccupied) {
				t.Errorf("kept: %v", err)
			}
			if got := names(t, state); !slices.Equal(got, before) {
				t.Errorf("there stand %q, and before %q", got, before)
			}
		})
	}
}

func TestNamesThatAreNone(t *testing.T) {
	_, s := open(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b", ".writ-x"} {
		o := order()
		o.Resource = name
		if _, err := s.Keep(t.Context(), o, honest()); !reason.Is(err, reason.InternalBug) {
			t.Errorf("keep %q: %v", name, err)
		}
		if err := s.Remove(name); !reason.Is(err, reason.InternalBug) {
			t.Errorf("remove %q: %v", name, err)
		}
		if _, _, err := s.Find(t.Context(), name); !reason.Is(err, reason.InternalBug) {
			t.Errorf("find %q: %v", name, err)
		}
	}
}
