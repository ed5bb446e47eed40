package noglobals

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// checkUses reports what changes a package-level variable, or could later.
func checkUses(pass *analysis.Pass, f *ast.File, caches map[types.Object]bool) {
	changed := func(e ast.Expr, how string) { changed(pass, e, how, caches) }
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, l := range n.Lhs {
					changed(l, "assigned to")
				}
			}
		case *ast.IncDecStmt:
			changed(n.X, "assigned to")
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				for _, l := range []ast.Expr{n.Key, n.Value} {
					if l != nil {
						changed(l, "assigned to")
					}
				}
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				changed(n.X, "its address is taken")
			}
		case *ast.CallExpr:
			checkCall(pass, n, changed)
		}
		return true
	})
}

func checkCall(pass *analysis.Pass, call *ast.CallExpr, changed func(ast.Expr, string)) {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		b, ok := pass.TypesInfo.Uses[fun].(*types.Builtin)
		if ok && (b.Name() == "delete" || b.Name() == "clear" || b.Name() == "copy") && len(call.Args) > 0 {
			changed(call.Args[0], b.Name()+" is called with it")
		}
	case *ast.SelectorExpr:
		// v.M() where M has a pointer receiver and v is no pointer takes the address of v.
		sel := pass.TypesInfo.Selections[fun]
		if sel == nil || sel.Kind() != types.MethodVal {
			return
		}
		_, pointer := types.Unalias(sel.Recv()).(*types.Pointer)
		recv := sel.Obj().(*types.Func).Signature().Recv()
		if recv == nil {
			return
		}
		_, wants := types.Unalias(recv.Type()).(*types.Pointer)
		if wants && !pointer && !sel.Indirect() {
			changed(fun.X, "a method that can change it is called")
		}
	}
}

// changed reports e when it is a package-level variable, or an element or field of one, and
// no cache.
func changed(pass *analysis.Pass, e ast.Expr, how string, caches map[types.Object]bool) {
	v := root(pass, e)
	if v == nil || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() || caches[v] {
		return
	}
	name := v.Name()
	if v.Pkg() != pass.Pkg {
		name = v.Pkg().Name() + "." + name
	}
	pass.Reportf(e.Pos(), "package-level variable %s must not change: %s", name, how)
}

// root returns the variable that e is, or is stored in.
func root(pass *analysis.Pass, e ast.Expr) *types.Var {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			v, _ := pass.TypesInfo.Uses[x].(*types.Var)
			return v
		case *ast.SelectorExpr:
			if sel := pass.TypesInfo.Selections[x]; sel == nil {
				v, _ := pass.TypesInfo.Uses[x.Sel].(*types.Var) // pkg.Var
				return v
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}
