package policy_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/compile"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/policies"
)

func TestFolderArchiveAndBinaryHoldTheSamePolicies(t *testing.T) {
	want := load(t, shipped(t), nil).Digests()
	dir := t.TempDir()
	if err := os.CopyFS(dir, policies.FS); err != nil {
		t.Fatal(err)
	}
	folder, err := policy.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := policy.ReadArchive(bytes.NewReader(regoBundle(t, compile.TargetRego, capability.PolicyLayers()...)))
	if err != nil {
		t.Fatal(err)
	}
	var apart []policy.Files
	for _, l := range capability.PolicyLayers() {
		one, err := policy.ReadArchive(bytes.NewReader(regoBundle(t, compile.TargetRego, l)))
		if err != nil {
			t.Fatal(err)
		}
		apart = append(apart, one)
	}
	archives, err := policy.Merge(apart...)
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]policy.Files{"folder": folder, "archive": archive, "an archive for each layer": archives} {
		got := load(t, files, nil)
		for i, d := range got.Digests() {
			if d != want[i] {
				t.Errorf("%s: %s is %s, in the binary %s", name, d.Layer, d.Digest, want[i].Digest)
			}
		}
		a, err := conclude(t, got, report(t)).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		b, err := conclude(t, load(t, shipped(t), nil), report(t)).Bytes()
		if err != nil || string(a) != string(b) {
			t.Errorf("%s: the record differs (%v)\n%s\n%s", name, err, a, b)
		}
	}
}

// regoBundle builds a bundle of some layers, as a release does.
func regoBundle(t *testing.T, target string, layers ...capability.Layer) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "policies"), policies.FS); err != nil {
		t.Fatal(err)
	}
	tree := os.DirFS(dir)
	paths, entrypoints := []string{"policies/lib/lib.rego"}, []string{}
	for _, l := range layers {
		paths = append(paths, "policies/"+string(l)+"/"+string(l)+".rego")
		if data := "policies/" + string(l) + "/data.json"; exists(tree, data) {
			paths = append(paths, data)
		}
		entrypoints = append(entrypoints, "writ/"+string(l)+"/decision")
	}
	var b bytes.Buffer
	err := compile.New().WithTarget(target).WithRegoVersion(ast.RegoV1).WithFS(tree).
		WithPaths(paths...).WithEntrypoints(entrypoints...).WithOutput(&b).Build(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func exists(tree fs.FS, path string) bool {
	_, err := fs.Stat(tree, path)
	return err == nil
}

func TestBadFoldersAndArchivesAreRefused(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "role.rego")
	if err := os.WriteFile(secret, []byte("package writ.role\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "role.rego")); err != nil {
		t.Fatal(err)
	}
	if _, err := policy.ReadDir(dir); err == nil {
		t.Error("a link was followed")
	}
	if _, err := policy.ReadDir(filepath.Join(dir, "absent")); !reason.Is(err, reason.PolicyLoad) {
		t.Errorf("absent folder: %v", err)
	}
	for name, b := range map[string][]byte{
		"not gzip":       []byte("policies"),
		"not tar":        gzipped(t, []byte("policies")),
		"cut":            regoBundle(t, compile.TargetRego, capability.ModeLayer)[:200],
		"built for Wasm": regoBundle(t, compile.TargetWasm, capability.ModeLayer),
		"outside":        tarred(t, &tar.Header{Name: "../x.rego", Typeflag: tar.TypeReg, Mode: 0o644}, "package writ.mode"),
		"deeper outside": tarred(t, &tar.Header{Name: "a/../../x.rego", Typeflag: tar.TypeReg, Mode: 0o644}, "package writ.mode"),
		"link":           tarred(t, &tar.Header{Name: "mode/mode.rego", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, ""),
		"large":          tarred(t, &tar.Header{Name: "mode/mode.rego", Typeflag: tar.TypeReg, Mode: 0o644}, strings.Repeat("#", 5<<20)),
	} {
		if _, err := policy.ReadArchive(bytes.NewReader(b)); !reason.Is(err, reason.PolicyLoad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := policy.Merge(policy.Files{"policies/a.rego": []byte("a")}, policy.Files{"/a.rego": []byte("b")}); !reason.Is(err, reason.PolicyLoad) {
		t.Errorf("merge: %v", err)
	}
}

func tarred(t *testing.T, h *tar.Header, body string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h.Size = int64(len(body))
	if err := w.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return gzipped(t, b.Bytes())
}

func gzipped(t *testing.T, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
