package policy

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The codes under which lints appear among the errors of the compiler.
const (
	lintBuiltin  = "writ_forbidden_builtin"
	lintNumber   = "writ_integers_only"
	lintNegation = "writ_undefined_negation"
)

// lint is a stage of the compiler, after references were resolved and before expressions are taken apart.
type lint struct{ forbidden map[string]string }

func newLint() lint {
	l := lint{forbidden: map[string]string{}}
	for _, b := range ast.CapabilitiesForThisVersion().Builtins {
		if why := forbiddenBuiltin(b); why != "" {
			l.forbidden[b.Name] = why
		}
	}
	return l
}

func (l lint) stage(c *ast.Compiler) *ast.Error {
	names := make([]string, 0, len(c.Modules))
	for name := range c.Modules {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := l.module(c, c.Modules[name]); err != nil {
			return err
		}
	}
	return nil
}

func (l lint) module(c *ast.Compiler, m *ast.Module) (found *ast.Error) {
	report := func(code string, at *ast.Location, format string, args ...any) {
		if found == nil {
			found = ast.NewError(code, at, format, args...)
		}
	}
	called := func(operator string, at *ast.Location) {
		if why, bad := l.forbidden[operator]; bad {
			report(lintBuiltin, at, "policies may not call %s: %s", operator, why)
		}
	}
	ast.WalkTerms(m, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Number:
			if _, integer := v.Int64(); !integer {
				report(lintNumber, t.Location, "policies hold integers only, not %s", v)
			}
		case ast.Ref:
			called(v.String(), t.Location)
		case ast.Call:
			called(v[0].Value.String(), t.Location)
		}
		return found != nil
	})
	ast.WalkExprs(m, func(e *ast.Expr) bool {
		if e.Negated {
			if ref := hiddenBehind(c, e); ref != nil {
				report(lintNegation, e.Location, "when %s is undefined this negation is not true but undefined too; "+
					"bind it to a variable before, give it a default, or negate a helper rule", asWritten(c, ref))
			}
		}
		return found != nil
	})
	return found
}

// hiddenBehind returns a reference that OPA evaluates before a negated expression and outside the negation, so
// that its absence makes a rule silent instead of true. Rules that are always defined are no such reference.
func hiddenBehind(c *ast.Compiler, e *ast.Expr) ast.Ref {
	switch terms := e.Terms.(type) {
	case *ast.Term:
		return hiddenInTerm(c, terms)
	case []*ast.Term:
		equality := e.IsEquality() || terms[0].Value.String() == ast.Equal.Name
		for _, operand := range terms[1:] {
			if ref, ok := operand.Value.(ast.Ref); ok && !equality && !alwaysDefined(c, ref) {
				return ref
			}
			if ref := hiddenInTerm(c, operand); ref != nil {
				return ref
			}
		}
	}
	return nil
}

// hiddenInTerm looks below the outermost reference of a term.
func hiddenInTerm(c *ast.Compiler, t *ast.Term) ast.Ref {
	var parts []*ast.Term
	switch v := t.Value.(type) {
	case ast.Ref:
		parts = v[1:]
	case ast.Call:
		parts = v[1:]
	case *ast.Array:
		v.Foreach(func(x *ast.Term) { parts = append(parts, x) })
	case ast.Set:
		v.Foreach(func(x *ast.Term) { parts = append(parts, x) })
	case ast.Object:
		v.Foreach(func(k, x *ast.Term) { parts = append(parts, k, x) })
	}
	for _, p := range parts {
		if ref, ok := p.Value.(ast.Ref); ok && !alwaysDefined(c, ref) {
			return ref
		}
		if ref := hiddenInTerm(c, p); ref != nil {
			return ref
		}
	}
	return nil
}

// alwaysDefined reports whether ref names a rule that has a value for every input: a set or object that may be
// empty, a rule with a default, a constant.
func alwaysDefined(c *ast.Compiler, ref ast.Ref) bool {
	if !ref.IsGround() {
		return false
	}
	for _, r := range c.GetRulesExact(ref) {
		constant := r.Head.Value != nil && r.Head.Value.IsGround() && len(r.Body) == 1 &&
			r.Body[0].Equal(ast.NewExpr(ast.BooleanTerm(true))) && plainValue(r.Head.Value)
		if r.Default || r.Head.RuleKind() == ast.MultiValue || constant {
			return true
		}
	}
	return false
}

func plainValue(t *ast.Term) bool {
	plain := true
	ast.WalkTerms(t, func(x *ast.Term) bool {
		switch x.Value.(type) {
		case ast.Ref, ast.Call, *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
			plain = false
		}
		return !plain
	})
	return plain
}

// asWritten gives local variables, which the compiler has renamed by now, the names of the source.
func asWritten(c *ast.Compiler, ref ast.Ref) string {
	head, ok := ref[0].Value.(ast.Var)
	if !ok {
		return ref.String()
	}
	name, renamed := c.RewrittenVars[head]
	if !renamed {
		return ref.String()
	}
	source := ref.Copy()
	source[0] = ast.NewTerm(name)
	return source.String()
}
