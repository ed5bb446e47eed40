package crash_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestNothingOfItShips looks into the command as it ships, and into every file of the
// release set: no kill point can be reached there, for nothing of them is in it.
func TestNothingOfItShips(t *testing.T) {
	s := ready(t)
	traces := []string{"WRIT_KILL_AT", "WRIT_KILLPOINTS_LOG", "go/killpoint.", "commit.before", "store.inserted"}
	found := func(path string) (found []string) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, trace := range traces {
			if bytes.Contains(raw, []byte(trace)) {
				found = append(found, trace)
			}
		}
		return found
	}
	if got := found(s.writ); len(got) != len(traces) {
		t.Fatalf("the command that is tested has only %q of %q: this test would not see them", got, traces)
	}
	shipped := []string{s.built.Path(t, "WRIT_TEST_WRIT", "github.com/writ-runtime/writ/go/cmd/writ", "CGO_ENABLED=0")}
	err := filepath.WalkDir(s.dist, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			shipped = append(shipped, path)
		}
		return err
	})
	if err != nil || len(shipped) < 10 {
		t.Fatalf("%d files: %v", len(shipped), err)
	}
	for _, path := range shipped {
		if got := found(path); len(got) > 0 {
			t.Errorf("%s has %q", path, got)
		}
	}
}
