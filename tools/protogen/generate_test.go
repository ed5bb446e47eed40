package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/testing/built"
)

func TestGeneratedFilesAreFresh(t *testing.T) {
	root, plugin := built.Root(t), built.Path(t, "WRIT_TEST_PROTOC_GEN_GO_GRPC", grpcPlugin)
	files, err := Generate(t.Context(), filepath.Join(root, protoRoot), plugin, Sources()...)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2*len(Sources()) {
		t.Errorf("%d files from %d sources", len(files), len(Sources()))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Errorf("%v: run go run ./tools/protogen", err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run go run ./tools/protogen", name)
		}
	}
}

func TestCompileNamesTheMistake(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.proto"), []byte("syntax = \"proto3\";\nmessage A { Missing m = 1; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Generate(t.Context(), dir, "", "a.proto"); err == nil || !strings.Contains(err.Error(), "a.proto:2") {
		t.Errorf("got %v", err)
	}
}
