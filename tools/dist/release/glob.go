package release

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bazelbuild/buildtools/build"
)

// glob evaluates glob(include, exclude = ...) of a BUILD file in pkg, as Bazel does: *
// stays inside a folder, ** does not, and folders with a BUILD file of their own are
// another package's.
func glob(root, pkg string, call *build.CallExpr) ([]string, error) {
	if id, ok := call.X.(*build.Ident); !ok || id.Name != "glob" {
		return nil, fmt.Errorf("only lists and globs are understood")
	}
	var include, exclude []string
	for i, arg := range call.List {
		if a, ok := arg.(*build.AssignExpr); ok {
			switch name := a.LHS.(*build.Ident).Name; name {
			case "include":
				include = build.Strings(a.RHS)
			case "exclude":
				exclude = build.Strings(a.RHS)
			default:
				return nil, fmt.Errorf("glob(%s) is not understood", name)
			}
		} else if i == 0 {
			include = build.Strings(arg)
		}
	}
	dir := filepath.Join(root, filepath.FromSlash(pkg))
	var paths []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(name, "BUILD.bazel")); err == nil && name != dir {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if matchAny(include, rel) && !matchAny(exclude, rel) {
			paths = append(paths, path.Join(pkg, rel))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("glob in %s: %w", pkg, err)
	}
	return paths, nil
}

func matchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if match(strings.Split(p, "/"), strings.Split(name, "/")) {
			return true
		}
	}
	return false
}

func match(pattern, name []string) bool {
	switch {
	case len(pattern) == 0:
		return len(name) == 0
	case pattern[0] == "**":
		return match(pattern[1:], name) || len(name) > 0 && match(pattern, name[1:])
	case len(name) == 0:
		return false
	}
	ok, err := path.Match(pattern[0], name[0])
	return ok && err == nil && match(pattern[1:], name[1:])
}
