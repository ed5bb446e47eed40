// Command dist makes the release set with the go command alone: the same files and lock
// files as `./bazelw build //:dist`, in a folder of your choice.
//
//	go run ./tools/dist -o DIR
//	WRIT_DIST=DIR go run ./go/cmd/writ run ...
//
// Tests use it under `go test`, where nothing has been built for them. DIR is replaced as
// a whole. The bytes of a binary differ from those of Bazel's; each lock names its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/writ-runtime/writ/tools/dist/gobuild"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("dist", flag.ContinueOnError)
	out := fs.String("o", "", "the folder to make")
	root := fs.String("root", ".", "the root of the source tree")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *out == "" {
		return fmt.Errorf("usage: dist -o DIR")
	}
	return gobuild.Release(ctx, *root, *out)
}
