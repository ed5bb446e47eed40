package build_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/tools/walls/apply"
)

// Bazel refuses a dependency that crosses a wall only if each BUILD file says so.
func TestWallsStand(t *testing.T) {
	top := built.Source(t)
	files, err := apply.Files(top)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2 {
		t.Fatalf("only %d files to hold: where is go/?", len(files))
	}
	for path, want := range files {
		if !bytes.Equal(read(t, filepath.Join(top, path)), want) {
			t.Errorf("%s: wrong visibility; to mend it: go run ./tools/walls", path)
		}
	}
}
