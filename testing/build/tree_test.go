// Package build_test tests the build itself: that the two descriptions of the dependencies
// (MODULE.bazel, WORKSPACE) agree, and that the walls stand in Bazel's visibility.
//
// The tests read the source tree, not declared inputs, so Bazel runs them outside of the
// sandbox and each time.
package build_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bazelbuild/buildtools/build"

	"github.com/writ-runtime/writ/testing/built"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t *testing.T, name string) *build.File {
	t.Helper()
	f, err := build.Parse(name, read(t, name))
	if err != nil {
		t.Fatalf("parse %s: %v", name, err)
	}
	return f
}

// buildFiles returns every BUILD.bazel of the tree.
func buildFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	top := built.Source(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != top && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "bazel-")) {
			return fs.SkipDir
		}
		if !d.IsDir() && d.Name() == "BUILD.bazel" {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("only %d BUILD files found", len(files))
	}
	return files
}
