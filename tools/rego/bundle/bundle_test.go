package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/tools/rego/bundle"
)

func options(t *testing.T) bundle.Options {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"policies/p/p.rego":    "package p\n\ndefault allow := false\n\nallow if input.n == data.limits.n\n",
		"policies/p/data.json": `{"limits": {"n": 3}}`,
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return bundle.Options{
		Root:        root,
		Target:      "wasm",
		Entrypoints: []string{"p/allow"},
		Paths:       []string{"policies/p/p.rego", "policies/p/data.json"},
	}
}

func TestBuild(t *testing.T) {
	// Two roots: the path of a tree must not get into the bundle.
	first, err := bundle.Build(t.Context(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	second, err := bundle.Build(t.Context(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("the same policies in another folder give other bytes")
	}
	z, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Name == "/data.json" {
			b, err := io.ReadAll(r)
			if err != nil || strings.TrimSpace(string(b)) != `{"limits":{"n":3}}` {
				t.Errorf("data.json is %s (%v)", b, err)
			}
		}
	}
	for _, want := range []string{"/data.json", "/policy.wasm", "/.manifest"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s in %v", want, names)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	for want, change := range map[string]func(*bundle.Options){
		"no entrypoint":        func(o *bundle.Options) { o.Entrypoints = nil },
		"no files":             func(o *bundle.Options) { o.Paths = nil },
		"p/decision":           func(o *bundle.Options) { o.Entrypoints = []string{"p/decision"} },
		"policies/p/gone":      func(o *bundle.Options) { o.Paths = []string{"policies/p/gone.rego"} },
		"invalid target \"x\"": func(o *bundle.Options) { o.Target = "x" },
	} {
		o := options(t)
		change(&o)
		if _, err := bundle.Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
