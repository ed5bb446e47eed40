// Command lifecycledoc writes docs/lifecycles.md from schemas/transitions. Run it from the
// root of the repository after an entry was changed:
//
//	go run ./tools/lifecycledoc
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"

	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/schemas"
)

func main() {
	out := flag.String("out", "docs/lifecycles.md", "document to write")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintf(os.Stderr, "lifecycledoc: %v\n", err)
		os.Exit(1)
	}
}

func run(out string) error {
	r, err := registry()
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, Generate(r), 0o644); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

// registry is that of this release.
func registry() (*lifecycle.Registry, error) {
	names, err := fs.Glob(schemas.FS, "transitions/*.json")
	if err != nil {
		return nil, err
	}
	var files [][]byte
	for _, name := range names {
		b, err := fs.ReadFile(schemas.FS, name)
		if err != nil {
			return nil, err
		}
		files = append(files, b)
	}
	return lifecycle.NewRegistry(files...)
}
