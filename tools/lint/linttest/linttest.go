// Package linttest runs an analyzer over its testdata, with `go test` and under Bazel.
package linttest

import (
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/writ-runtime/writ/testing/built"
)

// Run checks that the analyzer reports what the "// want" comments of the packages say.
// Packages are import paths below testdata/src.
// The analysis loads packages with the go command.
func Run(t *testing.T, a *analysis.Analyzer, packages ...string) {
	t.Helper()
	built.GoCommand(t)
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
