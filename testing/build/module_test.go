package build_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bazelbuild/buildtools/build"
	"golang.org/x/mod/modfile"

	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/tools/usedeps/bazelmod"
)

// module is what MODULE.bazel says, as far as another file says the same.
type module struct {
	deps  map[string]dep      // module name -> bazel_dep
	use   map[string][]string // extension variable -> repositories taken from it
	paths []string            // go.mod paths in *_override tags
}

type dep struct{ version, repo string }

func readModule(t *testing.T) module {
	t.Helper()
	f := parse(t, filepath.Join(built.Source(t), "MODULE.bazel"))
	m := module{deps: map[string]dep{}, use: map[string][]string{}}
	for _, s := range f.Stmt {
		call, ok := s.(*build.CallExpr)
		if !ok {
			continue
		}
		r := f.Rule(call)
		switch r.Kind() {
		case "bazel_dep":
			repo := r.AttrString("repo_name")
			if repo == "" {
				repo = r.Name()
			}
			m.deps[r.Name()] = dep{r.AttrString("version"), repo}
		case "use_repo":
			var from string
			for i, arg := range call.List {
				switch arg := arg.(type) {
				case *build.Ident:
					from = arg.Name
				case *build.StringExpr:
					m.use[from] = append(m.use[from], arg.Value)
				default:
					t.Fatalf("use_repo: argument %d is neither a name nor a string; teach this test", i)
				}
			}
		}
		if strings.HasSuffix(r.Kind(), "_override") {
			m.paths = append(m.paths, r.AttrString("path"))
		}
	}
	if len(m.deps) == 0 || len(m.use) == 0 {
		t.Fatal("MODULE.bazel: no bazel_dep or no use_repo found")
	}
	return m
}

func readGoMod(t *testing.T) *modfile.File {
	t.Helper()
	f, err := modfile.Parse("go.mod", read(t, filepath.Join(built.Source(t), "go.mod")), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// versions returns the constants of tools/bzl/versions.bzl.
func versions(t *testing.T) map[string]string {
	t.Helper()
	v := map[string]string{}
	for _, s := range parse(t, filepath.Join(built.Source(t), "tools/bzl/versions.bzl")).Stmt {
		if a, ok := s.(*build.AssignExpr); ok {
			if value, ok := a.RHS.(*build.StringExpr); ok {
				v[a.LHS.(*build.Ident).Name] = value.Value
			}
		}
	}
	return v
}

// The Bazels build with the same rules.
func TestRuleVersions(t *testing.T) {
	m, v := readModule(t), versions(t)
	for name, constant := range map[string]string{"rules_go": "RULES_GO_VERSION", "gazelle": "GAZELLE_VERSION"} {
		if got, want := "v"+m.deps[name].version, v[constant]; got != want {
			t.Errorf("MODULE.bazel has %s %s, tools/bzl/versions.bzl has %s", name, got, want)
		}
	}
	for _, r := range readGoMod(t).Require {
		if r.Mod.Path == "github.com/bazelbuild/rules_go" && r.Mod.Version != v["RULES_GO_VERSION"] {
			t.Errorf("go.mod has rules_go %s, tools/bzl/versions.bzl has %s", r.Mod.Version, v["RULES_GO_VERSION"])
		}
	}
}

// The oldest Go that bazelw lets through is the one that go.mod names.
func TestGoVersion(t *testing.T) {
	have, want := readGoMod(t).Go.Version, versions(t)["GO_MINIMUM"]
	if have != want && have != want+".0" {
		t.Errorf("go.mod says go %s, tools/bzl/versions.bzl says GO_MINIMUM = %s: anyone with Go %s must be able to build", have, want, want)
	}
}

// Bazel 7 and newer builds with the modules of go.mod: the direct ones are visible to
// BUILD files, no more and no less.
func TestUseRepo(t *testing.T) {
	want := bazelmod.Direct(readGoMod(t))
	got := slices.Clone(readModule(t).use["go_deps"])
	slices.Sort(got)
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("MODULE.bazel: use_repo(go_deps) lacks %s, which go.mod requires directly", name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("MODULE.bazel: use_repo(go_deps) has %s, which go.mod does not require directly", name)
		}
	}
	if t.Failed() {
		t.Log("to mend it: go mod tidy, then go run ./tools/usedeps")
	}
}

func TestOverridesNameModules(t *testing.T) {
	for _, path := range readModule(t).paths {
		known := slices.ContainsFunc(readGoMod(t).Require, func(r *modfile.Require) bool { return r.Mod.Path == path })
		if !known {
			t.Errorf("MODULE.bazel overrides %s, which go.mod does not require", path)
		}
	}
}

// Every @repository that a BUILD file names exists in both worlds.
func TestLabels(t *testing.T) {
	m := readModule(t)
	known := map[string]bool{"bazel_tools": true, "platforms": true}
	for _, d := range m.deps {
		known[d.repo] = true
	}
	for _, repos := range m.use {
		for _, repo := range repos {
			known[repo] = true
		}
	}
	for _, name := range buildFiles(t) {
		build.Walk(parse(t, name), func(e build.Expr, _ []build.Expr) {
			s, ok := e.(*build.StringExpr)
			if !ok || !strings.HasPrefix(s.Value, "@") {
				return
			}
			repo, _, _ := strings.Cut(strings.TrimLeft(s.Value, "@"), "//")
			if repo != "" && !known[repo] {
				start, _ := s.Span()
				t.Errorf("%s:%d: %s: MODULE.bazel makes no @%s visible; is it a direct dependency of go.mod?", name, start.Line, s.Value, repo)
			}
		})
	}
}
