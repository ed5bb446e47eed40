// Command mutate disables each guard that testing/requirements/requirements.json names, one
// at a time, and demands that the tests which claim to hold it fail. Run it from the root of
// the repository:
//
//	go run ./tools/mutate [-short] [-only B11,K1/chain] [-list]
//
// The tree is never changed: the go command gets the changed file as an overlay, in each
// build that a test makes too. It is an error when a guard does not stand exactly once in its
// file, when the changed file does not compile, when a test stays green without the guard or
// was not green with it, and when a test passes its bounds of time or disk. Nothing of a run
// needs a network.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/writ-runtime/writ/testing/requirements"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("mutate", flag.ContinueOnError)
	root := fs.String("root", startFolder(), "the root of the tree")
	only := fs.String("only", "", "run these mutations only: requirements (B11) or single ones (B11/fence), by commas")
	short := fs.Bool("short", false, "run the mutations of the short form only")
	list := fs.Bool("list", false, "list the mutations, and run none")
	jobs := fs.Int("jobs", max(1, runtime.NumCPU()/2), "how many run beside each other")
	bounds := Bounds{}
	fs.DurationVar(&bounds.Time, "time", 10*time.Minute, "the time that one test run may take, building it included")
	fs.Int64Var(&bounds.Folder, "folder", 4<<30, "how many bytes the temporary files of one test run may have")
	fs.Int64Var(&bounds.File, "file", 1<<40, "how long one file may be that a test run writes; there are tests that make a sparse one")
	if err := fs.Parse(args); err != nil {
		return err
	}
	set, err := requirements.Committed()
	if err != nil {
		return err
	}
	trials, err := Choose(set, *only, *short)
	if err != nil {
		return err
	}
	if *list {
		for _, t := range trials {
			fmt.Fprintf(out, "%s\t%s\n", t.Name, t.File)
		}
		return nil
	}
	m := Machine{Root: *root, Bounds: bounds, Jobs: *jobs, Progress: os.Stderr}
	begun := time.Now()
	verdicts, err := m.Run(ctx, trials)
	if err != nil {
		return err
	}
	survived := Table(out, verdicts)
	fmt.Fprintf(out, "%d guards were disabled, %d of them as they should not have been, in %s\n", len(verdicts), survived, time.Since(begun).Round(time.Second))
	if survived > 0 {
		return errors.New("a guard without a test that notices, or a mutation that says nothing: see the table")
	}
	return nil
}

// startFolder is where the command was started from.
func startFolder() string {
	if dir := os.Getenv("BUILD_WORKSPACE_DIRECTORY"); dir != "" { // set by `bazel run`
		return dir
	}
	return "."
}
