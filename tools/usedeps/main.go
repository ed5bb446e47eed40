// Command usedeps writes the direct dependencies of go.mod into MODULE.bazel, as
// `bazel mod tidy` would; the Bazel that many machines have knows no such command.
//
//	go mod tidy && go run ./tools/usedeps
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"github.com/writ-runtime/writ/tools/usedeps/bazelmod"
)

func main() {
	root := os.Getenv("BUILD_WORKSPACE_DIRECTORY") // set by `bazel run`
	if root == "" {
		root = "."
	}
	if err := run(root); err != nil {
		fmt.Fprintln(os.Stderr, "usedeps:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	b, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return fmt.Errorf("read go.mod: %w", err)
	}
	f, err := modfile.Parse("go.mod", b, nil)
	if err != nil {
		return fmt.Errorf("parse go.mod: %w", err)
	}
	name := filepath.Join(root, "MODULE.bazel")
	old, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read MODULE.bazel: %w", err)
	}
	text, err := bazelmod.Rewrite("MODULE.bazel", old, bazelmod.Direct(f))
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, text, 0o644); err != nil {
		return fmt.Errorf("write MODULE.bazel: %w", err)
	}
	return nil
}
