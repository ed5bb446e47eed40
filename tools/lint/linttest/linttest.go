// Package linttest runs an analyzer over its testdata, with `go test` and under Bazel.
package linttest

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/writ-runtime/writ/testing/built"
)

// Run checks that the analyzer reports what the "// want" comments of the packages say.
// Packages are import paths below testdata/src.
//
// The analysis loads packages with the go command. A Bazel test has none on its PATH:
// it names the toolchain's in GO_COMMAND (go_command in //tools/bzl:go_command.bzl).
func Run(t *testing.T, a *analysis.Analyzer, packages ...string) {
	t.Helper()
	if os.Getenv("GO_COMMAND") != "" {
		real, err := filepath.EvalSymlinks(built.Path(t, "GO_COMMAND", ""))
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
	results := analysistest.Run(reporter{t}, analysistest.TestData(), a, packages...)
	if len(results) < len(packages) {
		t.Errorf("%d packages named, %d analysed", len(packages), len(results))
	}
}

// reporter hides the rest of testing.T: analysistest would skip the test where it thinks
// that the go command is missing, and a skipped test is a green one.
type reporter struct{ t *testing.T }

func (r reporter) Errorf(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf(format, args...)
}
