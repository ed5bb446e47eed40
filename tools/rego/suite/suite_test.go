package suite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/tools/rego/suite"
)

const policy = `package p

default allow := false

allow if input.n == data.limits.n

allow if {
	input.name == "never tested"
}
`

// files writes texts by name and returns their paths, in the order given.
func files(t *testing.T, nameText ...string) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for i := 0; i < len(nameText); i += 2 {
		p := filepath.Join(dir, nameText[i])
		if err := os.WriteFile(p, []byte(nameText[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	return paths
}

func TestRun(t *testing.T) {
	pass := "package p_test\nimport data.p\ntest_limit if p.allow with input as {\"n\": 3}\n"
	for _, tt := range []struct {
		name    string
		paths   []string
		minimum float64
		err     string // "" when it must succeed
		out     string
	}{
		{"json data", files(t, "p.rego", policy, "p_test.rego", pass, "d.json", `{"limits":{"n":3}}`), 0, "", "1 passed, 0 failed"},
		{"yaml data", files(t, "p.rego", policy, "p_test.rego", pass, "d.yaml", "limits: {n: 3}\n"), 0, "", "not reached: 3, 7-8"},
		{"fails", files(t, "p.rego", policy, "p_test.rego", pass, "d.json", `{"limits":{"n":4}}`), 0, "1 of 1 policy tests failed", "FAIL"},
		{"no test", files(t, "p.rego", policy), 0, "no policy test", ""},
		{"coverage", files(t, "p.rego", policy, "p_test.rego", pass, "d.json", `{"limits":{"n":3}}`), 100, "below the minimum of 100.00%", ""},
		{"does not compile", files(t, "p.rego", "package p\nallow if x\n"), 0, "compile policies", ""},
		{"does not parse", files(t, "p.rego", "package"), 0, "load policies", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			err := suite.Run(t.Context(), &out, suite.Options{Paths: tt.paths, MinCoverage: tt.minimum})
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
			if !strings.Contains(out.String(), tt.out) {
				t.Errorf("no %q in\n%s", tt.out, out.String())
			}
		})
	}
}
