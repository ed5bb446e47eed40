package bazelmod_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/writ-runtime/writ/tools/usedeps/bazelmod"
)

func TestRepoName(t *testing.T) {
	for path, want := range map[string]string{
		"github.com/cespare/xxhash/v2": "com_github_cespare_xxhash_v2",
		"modernc.org/sqlite":           "org_modernc_sqlite",
		"github.com/Foo/go-plugin":     "com_github_foo_go_plugin",
		"pgregory.net/rapid":           "net_pgregory_rapid",
	} {
		if got := bazelmod.RepoName(path); got != want {
			t.Errorf("RepoName(%s) = %s, want %s", path, got, want)
		}
	}
}

func TestDirectAndRewrite(t *testing.T) {
	f, err := modfile.Parse("go.mod", []byte(`module m
require (
	example.com/b v1.0.0
	example.com/a v1.0.0
	example.com/c v1.0.0 // indirect
	github.com/bazelbuild/rules_go v0.65.0
)
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	direct := bazelmod.Direct(f)
	if want := []string{"com_example_a", "com_example_b"}; !slices.Equal(direct, want) {
		t.Fatalf("Direct = %v, want %v", direct, want)
	}
	got, err := bazelmod.Rewrite("MODULE.bazel", []byte(`# kept
use_repo(
    go_deps,
    "old",
)
`), direct)
	if err != nil {
		t.Fatal(err)
	}
	want := `# kept
use_repo(
    go_deps,
    "com_example_a",
    "com_example_b",
)
`
	if string(got) != want {
		t.Errorf("Rewrite:\n%s", got)
	}
	if _, err := bazelmod.Rewrite("MODULE.bazel", nil, direct); err == nil || !strings.Contains(err.Error(), "no use_repo") {
		t.Errorf("an empty file: %v", err)
	}
}
