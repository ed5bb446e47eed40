// Command reasongen writes go/reason/codes.go from schemas/reasons.v1.json. Run it from the root of the
// repository after a row was added:
//
//	go run ./tools/reasongen
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	in := flag.String("in", "schemas/reasons.v1.json", "registry of reasons")
	out := flag.String("out", "go/reason/codes.go", "Go file to write")
	flag.Parse()
	if err := run(*in, *out); err != nil {
		fmt.Fprintf(os.Stderr, "reasongen: %v\n", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	data, err := os.ReadFile(in)
	if err != nil {
		return fmt.Errorf("read registry: %w", err)
	}
	src, err := Generate(data)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	if err := os.WriteFile(out, src, 0o644); err != nil {
		return fmt.Errorf("write constants: %w", err)
	}
	return nil
}
