// Package nopanic forbids calls of panic outside package main.
//
// Who calls us cannot be asked to recover: a refusal is an error with a reason code. Tests
// and generated code are exempt.
package nopanic

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"

	"github.com/writ-runtime/writ/tools/lint/source"
)

// Analyzer reports each call of the built-in panic.
//
//writ:immutable nogo and multichecker look for a variable of this name
var Analyzer = &analysis.Analyzer{
	Name: "nopanic",
	Doc:  "forbids panic outside package main",
	Run:  run,
}

func run(pass *analysis.Pass) (any, error) {
	if pass.Pkg.Name() == "main" {
		return nil, nil
	}
	for _, f := range source.Written(pass) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			id, ok := ast.Unparen(call.Fun).(*ast.Ident)
			if !ok || id.Name != "panic" {
				return true
			}
			if _, builtin := pass.TypesInfo.Uses[id].(*types.Builtin); builtin {
				pass.Reportf(call.Pos(), "no panic outside package main: return an error")
			}
			return true
		})
	}
	return nil, nil
}
