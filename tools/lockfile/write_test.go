package lockfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/tools/lockfile"
)

// source writes text to a file and returns an entry that names it.
func source(t *testing.T, kind lockfile.Kind, name, path, text string) lockfile.Source {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return lockfile.Source{Kind: kind, Name: name, Version: "0.1.0", Platform: "linux/amd64", Path: path, File: file}
}

func TestWriteDir(t *testing.T) {
	worker := source(t, lockfile.Worker, "writ-wasm", "workers/writ-wasm", "w")
	adapter := source(t, lockfile.Adapter, "reference-local", "adapters/reference-local", "abc")
	adapter.Manifest = filepath.Join(t.TempDir(), "manifest.json")
	if err := os.WriteFile(adapter.Manifest, []byte("{\"z\": 1, \"a\": [\"<b>\"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tool := source(t, lockfile.Tool, "textstat", "tools/textstat.wasm", "")
	dir := filepath.Join(t.TempDir(), "dist")
	if err := lockfile.WriteDir(dir, []lockfile.Source{worker, tool, adapter}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"adapters.lock.json": `{"entries":[` +
			`{"kind":"adapter","manifest":{"a":["<b>"],"z":1},"name":"reference-local","path":"adapters/reference-local","platform":"linux/amd64","sha256":"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","size":3,"version":"0.1.0"},` +
			`{"kind":"worker","name":"writ-wasm","path":"workers/writ-wasm","platform":"linux/amd64","sha256":"sha256:50e721e49c013f00c62cf59f2163542a9d8df02464efeb615d31051b0fddc326","size":1,"version":"0.1.0"}` +
			`],"kind":"writ.lock.adapters.v1"}` + "\n",
		"policies.lock.json":       `{"entries":[],"kind":"writ.lock.policies.v1"}` + "\n",
		"tools/textstat.wasm":      "",
		"adapters/reference-local": "abc",
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(b) != want {
			t.Errorf("%s:\n got %s\nwant %s", name, b, want)
		}
	}
	for name, want := range map[string]os.FileMode{"adapters/reference-local": 0o755, "workers/writ-wasm": 0o755, "tools/textstat.wasm": 0o644} {
		fi, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, fi.Mode(), want)
		}
	}
	if err := lockfile.WriteDir(dir, []lockfile.Source{tool}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a second set in the same folder: %v", err)
	}
}

func TestRefused(t *testing.T) {
	ok := source(t, lockfile.Tool, "a", "tools/a.wasm", "x")
	tools := lockfile.Lock{Name: "tools", Kinds: []lockfile.Kind{lockfile.Tool}}
	for want, change := range map[string]func(*lockfile.Source){
		"a name is lower-case": func(s *lockfile.Source) { s.Name = "A b" },
		"no version":           func(s *lockfile.Source) { s.Version = "" },
		"no platform":          func(s *lockfile.Source) { s.Platform = "" },
		`path "../x"`:          func(s *lockfile.Source) { s.Path = "../x" },
		`path "/x"`:            func(s *lockfile.Source) { s.Path = "/x" },
		"no such file":         func(s *lockfile.Source) { s.File += ".gone" },
		"not a JSON object":    func(s *lockfile.Source) { s.Manifest = s.File },
	} {
		s := ok
		change(&s)
		if _, err := lockfile.Encode(tools, []lockfile.Source{s}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	if _, err := lockfile.Encode(tools, []lockfile.Source{ok, ok}); err == nil || !strings.Contains(err.Error(), "two entries") {
		t.Errorf("one name twice: %v", err)
	}
}
