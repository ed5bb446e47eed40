// Package zeropermit forbids making a ledger.Permit outside package ledger.
//
// A Permit is the only way to an effect, and the ledger mints one only after its intent is
// durable. Its fields are not exported, so what others can write is the zero Permit; the
// ledger refuses that one when it runs, this says so when it is written. Tests are exempt:
// they prove the refusal.
package zeropermit

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"

	"github.com/writ-runtime/writ/tools/lint/source"
	"github.com/writ-runtime/writ/tools/lint/walls"
)

const ledger = walls.Module + "/go/ledger"

// Analyzer reports ledger.Permit{}, new(ledger.Permit) and variables that start as a zero
// Permit.
//
//writ:immutable nogo and multichecker look for a variable of this name
var Analyzer = &analysis.Analyzer{
	Name: "zeropermit",
	Doc:  "forbids making a ledger.Permit outside package ledger",
	Run:  run,
}

func run(pass *analysis.Pass) (any, error) {
	if pass.Pkg.Path() == ledger {
		return nil, nil
	}
	for _, f := range pass.Files {
		if source.IsTest(pass, f) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				report(pass, n, n)
			case *ast.CallExpr:
				if id, ok := ast.Unparen(n.Fun).(*ast.Ident); ok && len(n.Args) == 1 {
					if b, ok := pass.TypesInfo.Uses[id].(*types.Builtin); ok && b.Name() == "new" {
						report(pass, n, n.Args[0])
					}
				}
			case *ast.ValueSpec:
				if n.Type != nil && len(n.Values) == 0 {
					report(pass, n, n.Type)
				}
			}
			return true
		})
	}
	return nil, nil
}

// report complains at n when typed has the type ledger.Permit.
func report(pass *analysis.Pass, n ast.Node, typed ast.Expr) {
	named, ok := types.Unalias(pass.TypesInfo.TypeOf(typed)).(*types.Named)
	if !ok {
		return
	}
	if o := named.Obj(); o.Name() == "Permit" && o.Pkg() != nil && o.Pkg().Path() == ledger {
		pass.Reportf(n.Pos(), "a zero ledger.Permit: only the ledger hands out Permits, after it has made the intent durable")
	}
}
