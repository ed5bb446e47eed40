package requirements_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/built"
)

// betweenParts are refusals that one part of Writ gives another, by file and code. No user
// can cause one, or mend it: whoever passes it on to a person says what to do.
func betweenParts() map[string]string {
	return map[string]string{
		"go/broker/local.go KernelPhaseForbids":                          "the host asked too late",
		"go/broker/token.go KernelPhaseForbids":                          "the host asked too late",
		"go/broker/token.go BrokerGrantInvalid":                          "the host holds the token",
		"go/capability/registry.go CapabilityRegistry":                   "the registry is part of the release",
		"go/cmd/writ-wasm/internal/serve/input.go EnvironmentProtocol":   "only the host talks to a worker",
		"go/cmd/writ-wasm/internal/serve/provision.go PinDigestMismatch": "only the host talks to a worker",
		"go/cmd/writ-wasm/internal/serve/server.go EnvironmentProtocol":  "only the host talks to a worker",
		"go/canonical/errors.go Code":                                    "readers of documents wrap it",
		"go/environment/wasm/worker/resolve.go InternalBug":              "the kernel names resources",
		"go/policy/engine.go InternalBug":                                "the caller forgot the registry",
		"go/policy/record.go SchemaWrongKind":                            "the host stored the record",
		"go/sdk/serve.go IDUnknown":                                      "the adapter asked for what was not recorded",
	}
}

// Every refusal in the source says what is wrong and how to mend it (T3). Where it is
// wrong may be empty: some refusals are about the whole of what was asked.
func TestRefusalsSayHowToMend(t *testing.T) {
	top := built.Source(t)
	calls, exempt := 0, betweenParts()
	used := map[string]bool{}
	for _, folder := range []string{"go", "plugins"} {
		err := filepath.WalkDir(filepath.Join(top, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(top, path)
			if err != nil {
				return err
			}
			return refusals(path, func(line int, call *ast.CallExpr) {
				calls++
				if says(call.Args[1]) && says(call.Args[3]) {
					return
				}
				key := name + " " + codeName(call.Args[0])
				if exempt[key] == "" {
					t.Errorf("%s:%d: the refusal does not say what is wrong, or how to mend it", name, line)
				}
				used[key] = true
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if calls < 100 {
		t.Fatalf("only %d refusals found", calls)
	}
	for key := range exempt {
		if !used[key] {
			t.Errorf("%s is exempt, and there is no such refusal", key)
		}
	}
}

// refusals visits every reason.New(code, what, where, remedy) of a file.
func refusals(path string, visit func(line int, call *ast.CallExpr)) error {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 4 && isReasonNew(call.Fun) {
			visit(files.Position(call.Pos()).Line, call)
		}
		return true
	})
	return nil
}

func isReasonNew(fun ast.Expr) bool {
	sel, ok := fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "New" {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && pkg.Name == "reason"
}

// says reports whether an argument can be anything but empty.
func says(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return !ok || lit.Value != `""`
}

// codeName is the last word of a code: PolicyDenied of reason.PolicyDenied.
func codeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// The README's table of exit statuses is that of the registry, row by row (T3).
func TestExitStatusesAreDocumented(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(built.Source(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(raw)
	for _, e := range reason.Exits() {
		if row := fmt.Sprintf("| %d | %s |", e.Status(), e); !strings.Contains(readme, row) {
			t.Errorf("README.md does not document exit status %d (%s) in a row that begins with %q", e.Status(), e, row)
		}
	}
}
