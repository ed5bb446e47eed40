package built

import (
	"os"
	"path/filepath"
	"testing"
)

// Root returns the root of the source tree: under Bazel that of the test's runfiles, where only what the test
// declares is to be seen.
func Root(t testing.TB) string {
	t.Helper()
	if runfiles := os.Getenv("TEST_SRCDIR"); runfiles != "" {
		return filepath.Join(runfiles, os.Getenv("TEST_WORKSPACE"))
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}

// Source returns the root of the source tree itself, for a test that reads what it does not declare. It has to
// declare //:MODULE.bazel, and to run outside of Bazel's sandbox.
func Source(t testing.TB) string {
	t.Helper()
	// A source file among the runfiles is a link into the tree.
	file, err := filepath.EvalSymlinks(filepath.Join(Root(t), "MODULE.bazel"))
	if err == nil {
		_, err = os.Stat(filepath.Join(filepath.Dir(file), "bazelw")) // which no test declares
	}
	if err != nil {
		t.Fatalf("find the source tree: %v", err)
	}
	return filepath.Dir(file)
}

// Copy copies a file or a folder, following links: under Bazel every runfile is one.
func Copy(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		raw, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return os.WriteFile(to, raw, info.Mode().Perm()|0o200)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if err := Copy(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// GoCommand puts the go command of the build on the PATH of a test that runs it. A Bazel test has none there: it
// names the toolchain's in GO_COMMAND (//tools/bzl:go), and gets a home and a cache of its own.
func GoCommand(t *testing.T) {
	t.Helper()
	if os.Getenv("GO_COMMAND") == "" {
		return
	}
	real, err := filepath.EvalSymlinks(Path(t, "GO_COMMAND", ""))
	if err != nil {
		t.Fatalf("find the go command: %v", err)
	}
	bin := filepath.Dir(real)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("GOROOT", filepath.Dir(bin))
	t.Setenv("GOTOOLCHAIN", "local")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GOCACHE", t.TempDir())
}
