// Package purity keeps the pure packages (walls.Pure) pure: they ask no clock, no random
// source and no operating system. Time enters them as a recorded observation, randomness
// as an argument; that is why a decision can be replayed byte for byte.
//
// Tests are exempt.
package purity

import (
	"go/ast"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/writ-runtime/writ/tools/lint/source"
	"github.com/writ-runtime/writ/tools/lint/walls"
)

// Analyzer reports impure imports, and uses of the clock, in pure packages.
//
//writ:immutable nogo and multichecker look for a variable of this name
var Analyzer = &analysis.Analyzer{
	Name: "purity",
	Doc:  "forbids clock, randomness and operating system in the pure packages",
	Run:  run,
}

// forbiddenImports are refused with all packages below them.
func forbiddenImports() []string {
	return []string{
		"crypto/rand",
		"database/sql",
		"golang.org/x/sys",
		"log",
		"math/rand", // and math/rand/v2
		"net",
		"os", // and os/exec, os/signal, os/user
		"plugin",
		"runtime/debug",
		"syscall",
		"unsafe",
	}
}

// pureBelow are exceptions to forbiddenImports: text in, values out.
func pureBelow() []string {
	return []string{"net/netip", "net/url", "net/mail"}
}

// clock are the functions of package time that look at the clock or wait for it. Types,
// formats and arithmetic of package time are fine.
func clock() []string {
	return []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}
}

func run(pass *analysis.Pass) (any, error) {
	if !slices.Contains(walls.Pure(), walls.Unit(pass.Pkg.Path())) {
		return nil, nil
	}
	for _, f := range pass.Files {
		if source.IsTest(pass, f) {
			continue
		}
		for _, spec := range f.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err == nil && impure(p) {
				pass.Reportf(spec.Pos(), "%s is a pure package: it may not import %s; take what it needs as an argument", pass.Pkg.Name(), p)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			fn, ok := pass.TypesInfo.Uses[id].(*types.Func)
			if ok && fn.Pkg() != nil && fn.Pkg().Path() == "time" && fn.Signature().Recv() == nil && slices.Contains(clock(), fn.Name()) {
				pass.Reportf(id.Pos(), "%s is a pure package: it may not use time.%s; take the time as an argument", pass.Pkg.Name(), fn.Name())
			}
			return true
		})
	}
	return nil, nil
}

func impure(importPath string) bool {
	if slices.Contains(pureBelow(), importPath) {
		return false
	}
	for _, p := range forbiddenImports() {
		if importPath == p || strings.HasPrefix(importPath, p+"/") {
			return true
		}
	}
	return false
}
