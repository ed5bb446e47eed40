// Command lockfile is what the rules of //tools/bzl:dist.bzl run.
//
//	lockfile -spec FILE -dir DIR           the release set
//	lockfile -spec FILE -lock NAME -o FILE one lock file
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/writ-runtime/writ/tools/lockfile"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lockfile:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	fs := flag.NewFlagSet("lockfile", flag.ContinueOnError)
	specFile := fs.String("spec", "", "the entries (lockfile.Spec as JSON)")
	dir := fs.String("dir", "", "the folder to make")
	name := fs.String("lock", "", "adapters, policies or tools")
	out := fs.String("o", "", "the lock file to write")
	if err := fs.Parse(args); err != nil {
		return err
	}
	b, err := os.ReadFile(*specFile)
	if err != nil {
		return fmt.Errorf("read spec: %w", err)
	}
	var spec lockfile.Spec
	if err := json.Unmarshal(b, &spec); err != nil {
		return fmt.Errorf("read spec %s: %w", *specFile, err)
	}
	if *dir != "" {
		return lockfile.WriteDir(*dir, spec.Entries)
	}
	for _, l := range lockfile.Locks() {
		if l.Name != *name {
			continue
		}
		b, err := lockfile.Encode(l, spec.Entries)
		if err != nil {
			return err
		}
		return os.WriteFile(*out, b, 0o644)
	}
	return fmt.Errorf("no lock is named %q", *name)
}
