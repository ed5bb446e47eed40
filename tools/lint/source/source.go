// Package source answers what every analyzer here asks about a file: is it a test, is it
// generated, and does a declaration carry a //writ: comment?
package source

import (
	"go/ast"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Written returns the files that people wrote and that are no tests: those that the
// style rules are about.
func Written(pass *analysis.Pass) []*ast.File {
	var files []*ast.File
	for _, f := range pass.Files {
		if !IsTest(pass, f) && !ast.IsGenerated(f) {
			files = append(files, f)
		}
	}
	return files
}

// IsTest reports whether f is a _test.go file, or the main that a test runner generates.
func IsTest(pass *analysis.Pass, f *ast.File) bool {
	name := pass.Fset.File(f.FileStart).Name()
	return strings.HasSuffix(name, "_test.go") || strings.HasSuffix(pass.Pkg.Path(), ".test")
}

// Directive looks for a comment line "//writ:NAME why" and returns its why.
func Directive(name string, groups ...*ast.CommentGroup) (why string, found bool) {
	for _, g := range groups {
		if g == nil {
			continue
		}
		for _, c := range g.List {
			if rest, ok := strings.CutPrefix(c.Text, "//writ:"+name); ok && (rest == "" || rest[0] == ' ') {
				return strings.TrimSpace(rest), true
			}
		}
	}
	return "", false
}
