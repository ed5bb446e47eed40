package walls_test

import (
	"slices"
	"testing"

	"github.com/writ-runtime/writ/tools/lint/walls"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		ok       bool
	}{
		{"go/kernel", "go/lifecycle", true},
		{"go/kernel", "go/kernel/sub", true},
		{"go/journal/sqlite", "go/journal", true},
		{"go/journal", "go/journal/sqlite", true},
		{"go/lifecycle", "go/kernel", false},
		{"go/kernel", "go/journal", false},
		{"go/kernel", "go/journal/sqlite", false},
		{"go/kernel", "schemas", true},
		{"go/policy", "policies/constitution", true},
		{"go/policy", "plugins/tools/textstat", false},
		{"go/policy", "testing/modelserver", false},
		{"go/policy", "tools/lockfile", false},
		{"go/cmd/writ", "go/ingress", true},
		{"go/cmd/writ", "go/sdk", true},
		{"go/admission", "go/ingress", true},
		{"go/ingress", "go/admission", false},
		{"go/ingress", "go/cmd/writ", false},
		{"go/ingress", "go/sdk", false},
		{"go/sdk", "go/protocol", true},
		{"go/sdk", "go/api", true},
		{"go/sdk", "go/schema", false},
		{"go/sdk", "go/ledger", false},
		{"go/unheard", "go/reason", false},
		{"go/cmd/writ", "go/unheard", false},
		{"plugins/adapters/a", "go/sdk", true},
		{"plugins/adapters/a", "go/protocol", true},
		{"plugins/adapters/a", "go/ledger", false},
		{"plugins/adapters/a", "plugins/adapters/a/internal/x", true},
		{"plugins/adapters/a/internal/x", "plugins/adapters/a/internal/y", true},
		{"plugins/adapters/a", "plugins/adapters/b", false},
		{"plugins/adapters/a", "schemas", false},
		{"plugins/tools/t", "go/canonical", false},
		{"schemas", "go/reason", false},
		{"testing/e2e", "go/ledger", true},
		{"tools/dist", "go/pin", true},
	} {
		err := walls.Check(walls.Module+"/"+tt.from, walls.Module+"/"+tt.to)
		if (err == nil) != tt.ok {
			t.Errorf("%s -> %s: got %v, want ok = %v", tt.from, tt.to, err, tt.ok)
		}
	}
	if err := walls.Check(walls.Module+"/go/kernel", "example.com/other"); err != nil {
		t.Errorf("another module: %v", err)
	}
}

func TestCheckTest(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		ok       bool
	}{
		{"go/kernel", "testing/fixture", true},
		{"go/policy", "tools/rego/bundle", true},
		{"go/kernel", "go/journal", false},
		{"policies", "go/policy", true},
		{"schemas", "go/schema", true},
		{"plugins/tools/textstat", "go/schema", true},
		{"plugins/adapters/a", "go/schema", false},
		{"go/kernel", "plugins/tools/textstat", false},
	} {
		err := walls.CheckTest(walls.Module+"/"+tt.from, walls.Module+"/"+tt.to)
		if (err == nil) != tt.ok {
			t.Errorf("%s -> %s: got %v, want ok = %v", tt.from, tt.to, err, tt.ok)
		}
	}
}

// Bazel's walls and the analyzer's must be the same ones.
func TestVisibilityAgreesWithCheck(t *testing.T) {
	units := append(walls.Order(), "cmd", "sdk")
	for _, b := range units {
		visible := walls.Visibility(b)
		for _, a := range units {
			err := walls.Check(walls.Module+"/go/"+a, walls.Module+"/go/"+b)
			if got := slices.Contains(visible, "//go/"+a+":__subpackages__"); got != (err == nil) {
				t.Errorf("go/%s -> go/%s: visible = %v, analyzer says %v", a, b, got, err)
			}
		}
		err := walls.Check(walls.Module+"/plugins/adapters/x", walls.Module+"/go/"+b)
		if got := slices.Contains(visible, "//plugins/adapters:__subpackages__"); got != (err == nil) {
			t.Errorf("plugins/adapters/x -> go/%s: visible = %v, analyzer says %v", b, got, err)
		}
	}
}

func TestListsAgree(t *testing.T) {
	for name, list := range map[string][]string{"SDK": walls.SDK(), "Vendor": walls.Vendor(), "Pure": walls.Pure()} {
		for _, unit := range list {
			if unit != "sdk" && !slices.Contains(walls.Order(), unit) {
				t.Errorf("%s names %s, which has no place in Order", name, unit)
			}
		}
	}
}
