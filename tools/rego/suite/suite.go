// Package suite runs the test_ rules of Rego files, as `opa test` does, and measures
// which lines they reach.
package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/loader"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
)

// Options says what is tested.
type Options struct {
	// Paths are .rego, .json and .yaml files; data files are merged at the root of `data`.
	Paths []string
	// MinCoverage is the share of lines, in percent, that the tests must reach; 0 asks for none.
	MinCoverage float64
}

// Run writes a line for each test and one for each policy file's coverage. It fails when a
// test fails, when there is no test, and when coverage is below the minimum.
func Run(ctx context.Context, w io.Writer, o Options) error {
	files, err := loader.NewFileLoader().WithRegoVersion(ast.RegoV1).WithProcessAnnotation(true).All(o.Paths)
	if err != nil {
		return fmt.Errorf("load policies: %w", err)
	}
	modules := map[string]*ast.Module{}
	for _, m := range files.Modules {
		modules[m.Name] = m.Parsed
	}
	store := inmem.NewFromObject(files.Documents)
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return fmt.Errorf("open policy data: %w", err)
	}
	defer store.Abort(ctx, txn)

	coverage := cover.New()
	results, err := tester.NewRunner().
		SetStore(store).
		SetModules(modules).
		SetCoverageQueryTracer(coverage).
		RunTests(ctx, txn)
	if err != nil {
		return fmt.Errorf("compile policies: %w", err)
	}
	var pass, fail int
	for r := range results {
		fmt.Fprintln(w, r)
		if r.Pass() {
			pass++
		} else {
			fail++
		}
	}
	fmt.Fprintf(w, "%d passed, %d failed\n", pass, fail)
	if fail > 0 {
		return fmt.Errorf("%d of %d policy tests failed", fail, pass+fail)
	}
	if pass == 0 {
		return errors.New("no policy test: a test is a rule whose name starts with test_")
	}
	return report(w, coverage.Report(modules), o.MinCoverage)
}

// report prints coverage of the policies; a test file is not counted, it covers itself.
func report(w io.Writer, r cover.Report, minimum float64) error {
	var reached, lines int
	for _, name := range sortedKeys(r.Files) {
		f := r.Files[name]
		if f.CoveredLines+f.NotCoveredLines == 0 || strings.HasSuffix(name, "_test.rego") {
			continue
		}
		reached += f.CoveredLines
		lines += f.CoveredLines + f.NotCoveredLines
		fmt.Fprintf(w, "coverage %6.2f%% %s%s\n", percent(f.CoveredLines, f.CoveredLines+f.NotCoveredLines), name, missed(f))
	}
	total := percent(reached, lines)
	fmt.Fprintf(w, "coverage %6.2f%% total\n", total)
	if total < minimum {
		return fmt.Errorf("policy coverage is %.2f%%, below the minimum of %.2f%%", total, minimum)
	}
	return nil
}
