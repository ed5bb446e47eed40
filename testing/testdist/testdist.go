// Package testdist makes the release set that tests run: the ordinary one, and beside it
// tools that misbehave, with a deployment policy that lists them.
package testdist

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/policies"
	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/tools/dist/gobuild"
	"github.com/writ-runtime/writ/tools/lockfile"
	"github.com/writ-runtime/writ/tools/rego/bundle"
)

// distEnv names the runfile that is the ordinary release set, under Bazel.
const distEnv = "WRIT_TEST_DIST"

// tool is a tool that only tests run.
type tool struct{ name, env, goPackage string }

func tools() []tool {
	const from = "github.com/writ-runtime/writ/testing/tools/"
	return []tool{
		{"badtools", "WRIT_TEST_BADTOOLS", from + "badtools"},
		{"empty", "WRIT_TEST_EMPTY", from + "empty"},
	}
}

// adapters are the names under which badadapter is pinned: each is a way to misbehave.
func adapters() []string {
	return []string{"dies", "oldversion", "liestart", "lieclaim", "liereport", "otherlaunch", "otherdigest", "foreignfence", "foreignbundle"}
}

// Make makes the release set of tests in the folder work, which may be missing, and
// returns where it is. root is the root of the source tree; under Bazel it is not looked
// at. Tests may share one set; one that needs a broken set breaks a copy.
func Make(t testing.TB, b *built.Builder, root, work string) string {
	t.Helper()
	sources := ordinary(t, root, work)
	for _, tl := range tools() {
		sources = append(sources, lockfile.Source{
			Kind: lockfile.Tool, Name: tl.name, Version: "0.0.1", Platform: "wasip1/wasm", Path: "tools/" + tl.name + ".wasm",
			File: b.Path(t, tl.env, tl.goPackage, "GOOS=wasip1", "GOARCH=wasm"),
		})
	}
	const bad = "github.com/writ-runtime/writ/testing/adapters/badadapter"
	manifest := filepath.Join(root, "testing", "adapters", "badadapter", "manifest.json")
	for _, name := range adapters() {
		sources = append(sources, lockfile.Source{
			Kind: lockfile.Adapter, Name: name, Version: "0.0.1", Platform: runtime.GOOS + "/" + runtime.GOARCH, Path: "adapters/" + name,
			File: b.Path(t, "WRIT_TEST_BADADAPTER", bad, "CGO_ENABLED=0"), Manifest: manifest,
		})
	}
	return set(t, work, sources, func(_ string, raw []byte) []byte { return raw })
}

// Variant makes another release set of one that Make made, under policies that edit has changed: it is given the path and
// text of each file, below the folder of policies, and returns the text that takes its place.
func Variant(t testing.TB, dist, work string, edit func(path string, raw []byte) []byte) string {
	t.Helper()
	return set(t, work, entries(t, dist, work), edit)
}

// set writes a release set of sources into the folder work, with the policies of the release as edit changes them.
func set(t testing.TB, work string, sources []lockfile.Source, edit func(path string, raw []byte) []byte) string {
	t.Helper()
	for i, s := range sources {
		if s.Kind == lockfile.Policy {
			sources[i].File = policy(t, work, edit)
		}
	}
	out := filepath.Join(work, "dist")
	if err := lockfile.WriteDir(out, sources); err != nil {
		t.Fatal(err)
	}
	return out
}

// ordinary returns the entries of the ordinary release set, which is built first where
// Bazel has not done so.
func ordinary(t testing.TB, root, work string) []lockfile.Source {
	t.Helper()
	dir := filepath.Join(work, "ordinary")
	if os.Getenv(distEnv) != "" {
		dir = built.Path(t, distEnv, "")
	} else if err := gobuild.Release(context.Background(), root, dir); err != nil {
		t.Fatal(err)
	}
	return entries(t, dir, work)
}

// entries returns the entries of a release set. Manifests are written into the folder work.
func entries(t testing.TB, dir, work string) []lockfile.Source {
	t.Helper()
	var sources []lockfile.Source
	for _, l := range lockfile.Locks() {
		raw, err := os.ReadFile(filepath.Join(dir, l.Name+".lock.json"))
		if err != nil {
			t.Fatal(err)
		}
		var lock struct{ Entries []lockfile.Entry }
		if err := json.Unmarshal(raw, &lock); err != nil {
			t.Fatalf("%s.lock.json: %v", l.Name, err)
		}
		for _, e := range lock.Entries {
			s := lockfile.Source{Kind: e.Kind, Name: e.Name, Version: e.Version, Platform: e.Platform, Path: e.Path, File: filepath.Join(dir, e.Path)}
			if len(e.Manifest) > 0 {
				s.Manifest = filepath.Join(work, e.Name+".manifest.json")
				write(t, s.Manifest, e.Manifest)
			}
			sources = append(sources, s)
		}
	}
	return sources
}

// policy compiles the policies of the release with the tests' tools among those that the
// deployment lists, and returns the archive.
func policy(t testing.TB, work string, edit func(path string, raw []byte) []byte) string {
	t.Helper()
	root := filepath.Join(work, "policies")
	var paths, entrypoints []string
	err := fs.WalkDir(policies.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.rego") {
			return err
		}
		raw, err := policies.FS.ReadFile(path)
		if err != nil {
			return err
		}
		if path == "deployment/data.json" {
			raw = deployment(t, raw)
		}
		write(t, filepath.Join(root, path), edit(path, raw))
		paths = append(paths, path)
		layer, _, _ := strings.Cut(path, "/")
		if layer != "lib" && strings.HasSuffix(path, ".rego") {
			entrypoints = append(entrypoints, "writ/"+layer+"/decision")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	archive, err := bundle.Build(context.Background(), bundle.Options{Target: "rego", Entrypoints: entrypoints, Root: root, Paths: paths})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(work, "policies.tar.gz")
	write(t, out, archive)
	return out
}

// deployment adds the tests' tools and adapters to the lists of each deployment.
func deployment(t testing.TB, data []byte) []byte {
	t.Helper()
	var names []string
	for _, tl := range tools() {
		names = append(names, tl.name)
	}
	for listed, more := range map[string][]string{`"tools": [`: names, `"executors": [`: adapters()} {
		if !bytes.Contains(data, []byte(listed)) {
			t.Fatalf("deployment/data.json has no %s", listed)
		}
		var text string
		for _, name := range more {
			text += fmt.Sprintf("%q, ", name)
		}
		data = bytes.ReplaceAll(data, []byte(listed), []byte(listed+text))
	}
	return data
}

func write(t testing.TB, name string, raw []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}
