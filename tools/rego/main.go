// Command rego compiles and tests Rego policies with OPA's Go API, for the rules of
// rego.bzl. By hand, from the root of the tree:
//
//	go run ./tools/rego build -o bundle.tar.gz -e constitution/decision policies/constitution/*.rego
//	go run ./tools/rego test policies/constitution
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/writ-runtime/writ/tools/rego/bundle"
	"github.com/writ-runtime/writ/tools/rego/suite"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rego:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, w io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "build":
			return build(ctx, args[1:])
		case "test":
			return test(ctx, args[1:], w)
		}
	}
	return errors.New("usage: rego build -o FILE -e ENTRYPOINT[,...] FILE... | rego test [-min PERCENT] FILE...")
}

func build(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("build", flag.ContinueOnError)
	out := fs.String("o", "", "the bundle to write")
	target := fs.String("target", "wasm", "wasm, rego or plan")
	entrypoints := fs.String("e", "", "entrypoints, separated by commas")
	if err := fs.Parse(args); err != nil {
		return err
	}
	b, err := bundle.Build(ctx, bundle.Options{
		Target:      *target,
		Entrypoints: strings.FieldsFunc(*entrypoints, func(r rune) bool { return r == ',' }),
		Paths:       fs.Args(),
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(*out, b, 0o644); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}

func test(ctx context.Context, args []string, w io.Writer) error {
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	minimum := fs.Float64("min", 0, "coverage that the tests must reach, in percent of lines")
	if err := fs.Parse(args); err != nil {
		return err
	}
	return suite.Run(ctx, w, suite.Options{Paths: fs.Args(), MinCoverage: *minimum})
}
