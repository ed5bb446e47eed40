// Package release reads what belongs into the release set out of the dist() call of the
// root BUILD file, so that there is one list, whoever builds.
package release

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bazelbuild/buildtools/build"

	"github.com/writ-runtime/writ/tools/lockfile"
)

// Item is one entry of the dist() call.
type Item struct {
	Kind     lockfile.Kind
	Name     string
	Version  string
	Label    Label  // the program, module or bundle
	Manifest string // a path inside the tree; "" for none
}

// Bundle is a rego_bundle of a BUILD file.
type Bundle struct {
	Target      string
	Entrypoints []string
	Paths       []string // inside the tree
}

// Label is a Bazel label of this tree.
type Label struct{ Package, Target string }

// ParseLabel understands //package, //package:target and, for rules of package from, :target.
func ParseLabel(s, from string) (Label, error) {
	rest, ok := strings.CutPrefix(s, "//")
	if !ok {
		if strings.HasPrefix(s, "@") || strings.HasPrefix(s, "/") {
			return Label{}, fmt.Errorf("label %q is not of this tree", s)
		}
		return Label{Package: from, Target: strings.TrimPrefix(s, ":")}, nil
	}
	pkg, target, ok := strings.Cut(rest, ":")
	if !ok {
		target = path.Base(pkg)
	}
	return Label{Package: pkg, Target: target}, nil
}

// Items returns the entries of dist(name = "dist") in the BUILD file of root.
func Items(root string) ([]Item, error) {
	f, err := parse(root, "")
	if err != nil {
		return nil, err
	}
	for _, r := range f.Rules("dist") {
		if r.Name() != "dist" {
			continue
		}
		list, ok := r.Attr("entries").(*build.ListExpr)
		if !ok {
			return nil, fmt.Errorf("%s: entries of dist is no list", f.Path)
		}
		var items []Item
		for _, e := range list.List {
			item, err := item(f, e)
			if err != nil {
				start, _ := e.Span()
				return nil, fmt.Errorf("%s:%d: %w", f.Path, start.Line, err)
			}
			items = append(items, item)
		}
		return items, nil
	}
	return nil, fmt.Errorf(`%s: no dist(name = "dist")`, f.Path)
}

// item reads one adapter(), worker(), tool() or policy() call.
func item(f *build.File, e build.Expr) (Item, error) {
	call, ok := e.(*build.CallExpr)
	if !ok {
		return Item{}, fmt.Errorf("an entry is a call of adapter, worker, tool or policy")
	}
	r := f.Rule(call)
	file, ok := map[string]string{"adapter": "binary", "policy": "bundle", "tool": "module", "worker": "binary"}[r.Kind()]
	if !ok {
		return Item{}, fmt.Errorf("no kind of entry is called %q", r.Kind())
	}
	for _, name := range []string{"name", "version", file} {
		if r.AttrString(name) == "" {
			return Item{}, fmt.Errorf("%s: %s must be a string", r.Kind(), name)
		}
	}
	label, err := ParseLabel(r.AttrString(file), "")
	if err != nil {
		return Item{}, err
	}
	it := Item{Kind: lockfile.Kind(r.Kind()), Name: r.Name(), Version: r.AttrString("version"), Label: label}
	if m := r.AttrString("manifest"); m != "" {
		l, err := ParseLabel(m, "")
		if err != nil {
			return Item{}, err
		}
		it.Manifest = path.Join(l.Package, l.Target)
	}
	return it, nil
}

// ReadBundle returns the rego_bundle that l names.
func ReadBundle(root string, l Label) (Bundle, error) {
	f, err := parse(root, l.Package)
	if err != nil {
		return Bundle{}, err
	}
	for _, r := range f.Rules("rego_bundle") {
		if r.Name() != l.Target {
			continue
		}
		b := Bundle{Target: r.AttrString("target"), Entrypoints: r.AttrStrings("entrypoints")}
		if b.Target == "" {
			b.Target = "wasm" // the rule's default
		}
		if b.Paths, err = files(root, l.Package, r.Attr("srcs")); err != nil {
			return Bundle{}, fmt.Errorf("%s: srcs of %s: %w", f.Path, l.Target, err)
		}
		return b, nil
	}
	return Bundle{}, fmt.Errorf("%s: no rego_bundle is named %s", f.Path, l.Target)
}

// files evaluates a list of labels, a glob, or a sum of such.
func files(root, pkg string, e build.Expr) ([]string, error) {
	switch e := e.(type) {
	case *build.ListExpr:
		var paths []string
		for _, item := range e.List {
			s, ok := item.(*build.StringExpr)
			if !ok {
				return nil, fmt.Errorf("only strings are understood")
			}
			l, err := ParseLabel(s.Value, pkg)
			if err != nil {
				return nil, err
			}
			more, err := expand(root, l)
			if err != nil {
				return nil, err
			}
			paths = append(paths, more...)
		}
		return paths, nil
	case *build.BinaryExpr:
		left, err := files(root, pkg, e.X)
		if err != nil {
			return nil, err
		}
		right, err := files(root, pkg, e.Y)
		return append(left, right...), err
	case *build.CallExpr:
		return glob(root, pkg, e)
	}
	return nil, fmt.Errorf("only lists and globs are understood")
}

// expand returns the file that l names, or the files of the filegroup that it names.
func expand(root string, l Label) ([]string, error) {
	name := path.Join(l.Package, l.Target)
	if fi, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err == nil && !fi.IsDir() {
		return []string{name}, nil
	}
	f, err := parse(root, l.Package)
	if err != nil {
		return nil, err
	}
	for _, r := range f.Rules("filegroup") {
		if r.Name() == l.Target {
			return files(root, l.Package, r.Attr("srcs"))
		}
	}
	return nil, fmt.Errorf("//%s:%s is neither a file nor a filegroup", l.Package, l.Target)
}

func parse(root, pkg string) (*build.File, error) {
	name := path.Join(pkg, "BUILD.bazel")
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("read BUILD file: %w", err)
	}
	f, err := build.ParseBuild(name, b)
	if err != nil {
		return nil, fmt.Errorf("parse BUILD file: %w", err)
	}
	return f, nil
}
