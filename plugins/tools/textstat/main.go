// Command textstat measures a folder of texts and writes report.json and report.md to its workspace.
//
// It is a reference tool of Writ: built for wasip1/wasm, it sees its inputs under /inputs and its workspace as the
// current directory, and nothing else.
//
//	textstat --input docs [--top 10]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/writ-runtime/writ/plugins/tools/textstat/corpus"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "textstat: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("textstat", flag.ContinueOnError)
	input := flags.String("input", "docs", "name of the input to measure")
	top := flags.Int("top", 10, "how many of the longest lines to name, 0 to 1000")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *top < 0 || *top > 1000 {
		return fmt.Errorf("--top is %d, outside 0 to 1000", *top)
	}
	if !filepath.IsLocal(*input) {
		return fmt.Errorf("--input is %q, which is no name of an input", *input)
	}
	report, err := corpus.Measure(*input, os.DirFS(filepath.Join("/inputs", *input)), *top)
	if err != nil {
		return fmt.Errorf("measure input %s: %w", *input, err)
	}
	data, err := report.JSON()
	if err != nil {
		return err
	}
	if err := os.WriteFile("report.json", data, 0o600); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.WriteFile("report.md", report.Markdown(), 0o600); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	fmt.Printf("%d files, %d bytes, %d groups of duplicates, %d files with encoding problems\n",
		report.Totals.Files, report.Totals.Bytes, len(report.Duplicates), report.Totals.ProblemFiles)
	return nil
}
