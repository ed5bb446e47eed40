// Command walls writes Bazel's visibility under go/ from tools/lint/walls.
//
//	go run ./tools/walls          writes
//	go run ./tools/walls -check   says what is wrong, and fails
//
// Run it after `./bazelw run //:gazelle` has made a BUILD file; a test of //testing/build
// fails when it was forgotten.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/writ-runtime/writ/tools/walls/apply"
)

func main() {
	check := flag.Bool("check", false, "write nothing, fail when something would be written")
	flag.Parse()
	root := os.Getenv("BUILD_WORKSPACE_DIRECTORY") // set by `bazel run`
	if root == "" {
		root = "."
	}
	if err := run(root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "walls:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	files, err := apply.Files(root)
	if err != nil {
		return err
	}
	stale := 0
	for _, path := range slices.Sorted(maps.Keys(files)) {
		name := filepath.Join(root, filepath.FromSlash(path))
		old, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if bytes.Equal(old, files[path]) {
			continue
		}
		stale++
		if check {
			fmt.Fprintln(os.Stderr, "wrong visibility:", path)
			continue
		}
		if err := os.WriteFile(name, files[path], 0o644); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		fmt.Println("wrote", path)
	}
	if check && stale > 0 {
		return fmt.Errorf("%d files need `go run ./tools/walls`", stale)
	}
	return nil
}
