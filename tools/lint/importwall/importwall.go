// Package importwall holds imports to the order of package walls. Bazel's visibility
// holds the same walls; this says so sooner, in the quick loop, and in words.
//
// Tests are held too, a little less strictly (walls.CheckTest).
package importwall

import (
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/writ-runtime/writ/tools/lint/source"
	"github.com/writ-runtime/writ/tools/lint/walls"
)

// Analyzer reports each import that crosses a wall.
//
//writ:immutable nogo and multichecker look for a variable of this name
var Analyzer = &analysis.Analyzer{
	Name: "importwall",
	Doc:  "holds imports to the order of tools/lint/walls",
	Run:  run,
}

func run(pass *analysis.Pass) (any, error) {
	// An external test package, x_test, is inside the walls of x.
	from := strings.TrimSuffix(pass.Pkg.Path(), "_test")
	if strings.HasSuffix(from, ".test") {
		return nil, nil // the main that `go test` generates
	}
	for _, f := range pass.Files {
		for _, spec := range f.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue // the compiler says it
			}
			check := walls.Check
			if source.IsTest(pass, f) {
				check = walls.CheckTest
			}
			if err := check(from, to); err != nil {
				pass.Reportf(spec.Pos(), "%v", err)
			}
		}
	}
	return nil, nil
}
