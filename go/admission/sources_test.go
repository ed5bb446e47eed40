package admission_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// folder makes a folder with the given files, and returns it.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestScan(t *testing.T) {
	dir := folder(t, map[string]string{"docs/b.txt": "b", "docs/a/deep.txt": "deep", "single.json": "{}"})
	s := admission.NewSources(dir, []workorder.Input{{Name: "docs", Source: "docs"}, {Name: "one", Source: "single.json"}})
	m, err := s.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, in := range m.Inputs {
		for _, f := range in.Files {
			got = append(got, in.Name+":"+f.Path)
			r, err := s.Open(t.Context(), in.Name, f.Path)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if err != nil || canonical.Sum(b) != f.Digest || int64(len(b)) != f.Size {
				t.Errorf("%s: %v, the bytes are not those of the manifest", f.Path, err)
			}
		}
	}
	if want := "docs:a/deep.txt docs:b.txt one:single.json"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if files, bytes := m.Totals(); files != 3 || bytes != 7 {
		t.Errorf("%d files, %d bytes", files, bytes)
	}
}

func TestScanRefuses(t *testing.T) {
	secret := folder(t, map[string]string{"secret": "s"})
	for name, tc := range map[string]struct {
		code    reason.Code
		input   workorder.Input
		prepare func(dir string) error
	}{
		"missing folder": {reason.MaterializeMissing, workorder.Input{Source: "nowhere"}, nil},
		"link to a file": {reason.MaterializeUnsupportedEntry, workorder.Input{Source: "in"}, func(d string) error { return os.Symlink(filepath.Join(secret, "secret"), d+"/in/link") }},
		"link to folder": {reason.MaterializeUnsupportedEntry, workorder.Input{Source: "in"}, func(d string) error { return os.Symlink(secret, d+"/in/link") }},
		"link inside":    {reason.MaterializeUnsupportedEntry, workorder.Input{Source: "in"}, func(d string) error { return os.Symlink("a", d+"/in/link") }},
		"queue":          {reason.MaterializeUnsupportedEntry, workorder.Input{Source: "in"}, func(d string) error { return unix.Mkfifo(d+"/in/queue", 0o600) }},
		"too many files": {reason.MaterializeTooLarge, workorder.Input{Source: "in", MaxFiles: 1}, nil},
		"too many bytes": {reason.MaterializeTooLarge, workorder.Input{Source: "in", MaxBytes: 3}, nil},
		"backslash":      {reason.MaterializeUnsupportedEntry, workorder.Input{Source: "in"}, func(d string) error { return os.WriteFile(d+`/in/a\b`, nil, 0o600) }},
		"not UTF-8":      {reason.MaterializeUnsupportedEntry, workorder.Input{Source: "in"}, func(d string) error { return os.WriteFile(d+"/in/\xff", nil, 0o600) }},
		"a decomposed é": {reason.MaterializeUnsupportedEntry, workorder.Input{Source: "in"}, func(d string) error { return os.WriteFile(d+"/in/e\u0301", nil, 0o600) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"in/a": "aa", "in/b": "bb"})
			if tc.prepare != nil {
				if err := tc.prepare(dir); err != nil {
					t.Fatal(err)
				}
			}
			tc.input.Name = "in"
			_, err := admission.NewSources(dir, []workorder.Input{tc.input}).Scan(t.Context())
			r, ok := reason.As(err)
			if !ok || r.Code != tc.code {
				t.Fatalf("got %v, want %s", err, tc.code)
			}
			if r.What == "" || r.Where == "" || r.Remedy == "" {
				t.Errorf("the refusal leaves something out: %v", err)
			}
		})
	}
}

// A file that becomes a link between scan and materialization is not followed.
func TestOpenFollowsNoLink(t *testing.T) {
	dir := folder(t, map[string]string{"in/a": "a"})
	secret := folder(t, map[string]string{"secret": "s"})
	s := admission.NewSources(dir, []workorder.Input{{Name: "in", Source: "in"}})
	if _, err := s.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir + "/in/a"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret+"/secret", dir+"/in/a"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), "in", "a"); !reason.Is(err, reason.MaterializeUnsupportedEntry) {
		t.Errorf("opened a link: %v", err)
	}
	for _, path := range []string{"../in/a", "/etc/passwd", "nowhere"} {
		if _, err := s.Open(t.Context(), "in", path); err == nil {
			t.Errorf("opened %s", path)
		}
	}
	if _, err := s.Open(t.Context(), "other", "a"); !reason.Is(err, reason.MaterializeMissing) {
		t.Errorf("opened an input that is not there: %v", err)
	}
}
