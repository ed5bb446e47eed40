// Package noinit forbids func init().
//
// An init runs before main can say what went wrong, in an order that nobody reads, and
// does it for every program that imports the package. Build the value where it is used.
package noinit

import (
	"go/ast"

	"golang.org/x/tools/go/analysis"

	"github.com/writ-runtime/writ/tools/lint/source"
)

// Analyzer reports each func init() of a file that is no test and not generated.
//
//writ:immutable nogo and multichecker look for a variable of this name
var Analyzer = &analysis.Analyzer{
	Name: "noinit",
	Doc:  "forbids func init()",
	Run:  run,
}

func run(pass *analysis.Pass) (any, error) {
	for _, f := range source.Written(pass) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				pass.Reportf(fn.Name.Pos(), "no init(): make the value in a constructor, or in main")
			}
		}
	}
	return nil, nil
}
