package compare_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/tools/repro/compare"
)

func TestCompare(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(a, "same"): "x", filepath.Join(b, "same"): "x",
		filepath.Join(a, "sub", "other"): "x", filepath.Join(b, "sub", "other"): "y",
		filepath.Join(a, "gone"): "x",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	da, err := compare.Digests(a)
	if err != nil {
		t.Fatal(err)
	}
	db, err := compare.Digests(b)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	differ, err := compare.Report(&out, da, db)
	if err != nil {
		t.Fatal(err)
	}
	if differ != 2 {
		t.Errorf("%d differ, want 2:\n%s", differ, out.String())
	}
	for _, want := range []string{
		"same       same       2d711642b726b044  2d711642b726b044",
		"DIFFERENT  sub/other  2d711642b726b044  a1fce4363854ff88",
		"DIFFERENT  gone       2d711642b726b044  missing",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line %q in\n%s", want, out.String())
		}
	}
	if _, err := compare.Digests(filepath.Join(a, "nowhere")); err == nil {
		t.Error("a folder that does not exist is accepted")
	}
}
