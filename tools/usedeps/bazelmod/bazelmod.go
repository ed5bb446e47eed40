// Package bazelmod says which repositories of Go modules MODULE.bazel must take from
// gazelle's go_deps, and writes them there.
package bazelmod

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bazelbuild/buildtools/build"
	"golang.org/x/mod/modfile"
)

// Direct returns the repositories of the modules that go.mod requires directly, sorted.
// rules_go is not among them: it comes as a Bazel module.
func Direct(f *modfile.File) []string {
	var names []string
	for _, r := range f.Require {
		if !r.Indirect && r.Mod.Path != "github.com/bazelbuild/rules_go" {
			names = append(names, RepoName(r.Mod.Path))
		}
	}
	slices.Sort(names)
	return names
}

// RepoName returns the name that gazelle gives to a module's repository.
func RepoName(modulePath string) string {
	host, rest, _ := strings.Cut(strings.ToLower(modulePath), "/")
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	if rest != "" {
		parts = append(parts, rest)
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.Join(parts, "_"))
}

// Rewrite returns MODULE.bazel with the repositories in its use_repo(go_deps, ...).
func Rewrite(name string, old []byte, repos []string) ([]byte, error) {
	f, err := build.ParseModule(name, old)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	for _, r := range f.Rules("use_repo") {
		id, ok := r.Call.List[0].(*build.Ident)
		if !ok || id.Name != "go_deps" {
			continue
		}
		r.Call.List = r.Call.List[:1]
		for _, repo := range repos {
			r.Call.List = append(r.Call.List, &build.StringExpr{Value: repo})
		}
		return build.Format(f), nil
	}
	return nil, fmt.Errorf("%s: no use_repo(go_deps, ...)", name)
}
