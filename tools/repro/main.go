// Command repro proves that the build is reproducible: it builds the release set and writ
// itself twice, from two copies of the tree in folders of different names, in separate
// Bazel output bases without a disk cache, and compares the digests of every file.
//
//	./bazelw run //tools/repro
//	go run ./tools/repro
//
// Exit code 1 and a line marked DIFFERENT mean that something of the machine, the path or
// the hour got into a file.
//
// The price is two cold builds, so about ten minutes and 3 GB of disk on two cores: with
// any cache between them, the second build would copy the first one's answers and prove
// nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/writ-runtime/writ/tools/repro/compare"
)

// targets are what is shipped, and below bazel-bin where it lies.
func targets() map[string]string {
	return map[string]string{
		"//:dist":       "dist",
		"//go/cmd/writ": "go/cmd/writ/writ_/writ",
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "repro:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	fs := flag.NewFlagSet("repro", flag.ContinueOnError)
	keep := fs.Bool("keep", false, "keep both builds, to look at a difference")
	if err := fs.Parse(args); err != nil {
		return err
	}
	root := os.Getenv("BUILD_WORKSPACE_DIRECTORY") // set by `bazel run`
	if root == "" {
		root = "."
	}
	work, err := os.MkdirTemp("", "writ-repro-")
	if err != nil {
		return fmt.Errorf("make work folder: %w", err)
	}
	if *keep {
		fmt.Fprintln(stderr, "repro: both builds stay in", work)
	} else {
		defer func() { err = errors.Join(err, removeAll(work)) }()
	}
	names := []string{"first", "a-second-one-with-a-longer-name"}
	// Both are copied before either is built: whoever works on meanwhile changes neither.
	for _, name := range names {
		if err := copyTree(root, filepath.Join(work, name, "tree")); err != nil {
			return fmt.Errorf("copy the tree: %w", err)
		}
	}
	var sums []map[string]string
	for i, name := range names {
		fmt.Fprintf(stderr, "repro: build %d of 2, without a cache: some minutes\n", i+1)
		s, err := buildOnce(ctx, filepath.Join(work, name), stderr)
		if err != nil {
			return fmt.Errorf("build %d: %w", i+1, err)
		}
		sums = append(sums, s)
	}
	differ, err := compare.Report(stdout, sums[0], sums[1])
	if err != nil {
		return err
	}
	if differ > 0 {
		return fmt.Errorf("%d of %d files differ: the build is not reproducible (-keep keeps both)", differ, len(sums[0]))
	}
	fmt.Fprintf(stdout, "%d files, all the same: the build is reproducible\n", len(sums[0]))
	return nil
}
