package release_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/tools/dist/release"
	"github.com/writ-runtime/writ/tools/lockfile"
)

// tree writes files into a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestItems(t *testing.T) {
	root := tree(t, map[string]string{"BUILD.bazel": `
dist(
    name = "dist",
    entries = [
        adapter(name = "a", binary = "//plugins/adapters/a", manifest = "//plugins/adapters/a:manifest.json", version = "1"),
        policy(name = "p", bundle = "//policies/p:bundle", version = "2"),
    ],
)
`})
	got, err := release.Items(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []release.Item{
		{Kind: lockfile.Adapter, Name: "a", Version: "1", Label: release.Label{Package: "plugins/adapters/a", Target: "a"}, Manifest: "plugins/adapters/a/manifest.json"},
		{Kind: lockfile.Policy, Name: "p", Version: "2", Label: release.Label{Package: "policies/p", Target: "bundle"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestItemsRefuses(t *testing.T) {
	for want, text := range map[string]string{
		"no dist":               ``,
		"entries of dist is no": `dist(name = "dist", entries = ENTRIES)`,
		"no kind of entry":      `dist(name = "dist", entries = [thing(name = "a")])`,
		"version must be":       `dist(name = "dist", entries = [tool(name = "a", module = "//a", version = V)])`,
		"not of this tree":      `dist(name = "dist", entries = [tool(name = "a", module = "@b//a", version = "1")])`,
		"parse BUILD file":      `dist(`,
	} {
		_, err := release.Items(tree(t, map[string]string{"BUILD.bazel": text}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestReadBundle(t *testing.T) {
	root := tree(t, map[string]string{
		"policies/p/BUILD.bazel": `
rego_bundle(
    name = "bundle",
    srcs = glob(["**/*.rego"], exclude = ["*_test.rego"]) + ["data.json", "//policies/lib:lib"],
    entrypoints = ["p/decision"],
)
`,
		"policies/p/p.rego":               "",
		"policies/p/p_test.rego":          "",
		"policies/p/deep/d.rego":          "",
		"policies/p/other/BUILD.bazel":    "",
		"policies/p/other/not-there.rego": "",
		"policies/p/data.json":            "{}",
		"policies/lib/BUILD.bazel":        `filegroup(name = "lib", srcs = ["lib.rego"])`,
		"policies/lib/lib.rego":           "",
	})
	got, err := release.ReadBundle(root, release.Label{Package: "policies/p", Target: "bundle"})
	if err != nil {
		t.Fatal(err)
	}
	want := release.Bundle{
		Target:      "wasm",
		Entrypoints: []string{"p/decision"},
		Paths:       []string{"policies/p/deep/d.rego", "policies/p/p.rego", "policies/p/data.json", "policies/lib/lib.rego"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
