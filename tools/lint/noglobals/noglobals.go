// Package noglobals forbids package-level state that can change.
//
// Two runtimes in one process, or two tests, must not meet in a variable; what a function
// depends on stands in its arguments. A package-level var may be only
//
//   - a name for an error made by errors.New or fmt.Errorf, or for a regexp made by
//     regexp.MustCompile;
//   - an interface assertion, var _ I = T{};
//   - the target of a //go:embed line;
//   - a value whose type holds no reference: numbers, strings, bools, and arrays and
//     structs of them (a digest, a version);
//   - anything else whose comment says, in a line of its own, why nothing can change it:
//     //writ:immutable why
//   - a cache, whose answers are the same whatever was asked before, with a comment that
//     says why that holds: //writ:cache why
//
// and no code assigns to a package-level variable, writes to an element or field of one, or
// takes its address, be it of its own package or of another; a cache alone may change. Lists and tables without
// a comment are functions that return a literal.
//
// Tests and generated code are exempt.
package noglobals

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"

	"github.com/writ-runtime/writ/tools/lint/source"
)

// Analyzer reports package-level variables that can change, and what changes one.
//
//writ:immutable nogo and multichecker look for a variable of this name
var Analyzer = &analysis.Analyzer{
	Name: "noglobals",
	Doc:  "forbids package-level state that can change",
	Run:  run,
}

func run(pass *analysis.Pass) (any, error) {
	caches := map[types.Object]bool{}
	for _, f := range source.Written(pass) {
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				for _, s := range g.Specs {
					checkSpec(pass, g, s.(*ast.ValueSpec), caches)
				}
			}
		}
	}
	for _, f := range source.Written(pass) {
		checkUses(pass, f, caches)
	}
	return nil, nil
}

// checkSpec checks one declaration, and enters what it declares as a cache into caches.
func checkSpec(pass *analysis.Pass, g *ast.GenDecl, s *ast.ValueSpec, caches map[types.Object]bool) {
	groups := []*ast.CommentGroup{s.Doc, s.Comment}
	if !g.Lparen.IsValid() {
		groups = append(groups, g.Doc)
	}
	if embeds(groups) {
		return
	}
	if why, found := source.Directive("immutable", groups...); found {
		if why == "" {
			pass.Reportf(s.Pos(), "//writ:immutable must say why nothing can change it")
		}
		return
	}
	if why, found := source.Directive("cache", groups...); found {
		if why == "" {
			pass.Reportf(s.Pos(), "//writ:cache must say why its answers do not depend on what was asked before")
		}
		for _, name := range s.Names {
			caches[pass.TypesInfo.Defs[name]] = true
		}
		return
	}
	for i, name := range s.Names {
		if name.Name == "_" || plain(pass.TypesInfo.TypeOf(name), nil) {
			continue
		}
		if len(s.Values) == len(s.Names) && sentinel(pass, s.Values[i]) {
			continue
		}
		pass.Reportf(name.Pos(), "package-level variable %s can change: make it a constant, a function that returns it, or an argument; if nothing can change it, say why in a comment line //writ:immutable why; if it is a cache, //writ:cache why", name.Name)
	}
}

func embeds(groups []*ast.CommentGroup) bool {
	for _, g := range groups {
		if g == nil {
			continue
		}
		for _, c := range g.List {
			if len(c.Text) > len("//go:embed ") && c.Text[:len("//go:embed ")] == "//go:embed " {
				return true
			}
		}
	}
	return false
}

// sentinel reports whether e is a call whose result has no state.
func sentinel(pass *analysis.Pass, e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	fn, ok := pass.TypesInfo.Uses[sel.Sel].(*types.Func)
	if !ok {
		return false
	}
	switch fn.FullName() {
	case "errors.New", "fmt.Errorf", "regexp.MustCompile":
		return true
	}
	return false
}

// plain reports whether a value of type t holds no reference that could lead to state.
func plain(t types.Type, within []types.Type) bool {
	for _, w := range within {
		if w == t {
			return true // a recursive type, which only a reference can close
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Kind() != types.UnsafePointer
	case *types.Array:
		return plain(u.Elem(), append(within, t))
	case *types.Struct:
		for f := range u.Fields() {
			if !plain(f.Type(), append(within, t)) {
				return false
			}
		}
		return true
	}
	return false
}
