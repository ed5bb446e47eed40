// Command check holds the promises of testing/requirements against what has just run. It
// fails when a requirement is absent, when one that is not open names no test, when a
// named test or step did not run and pass, and when a proven one is open again.
//
//	./bazelw test //... --build_event_json_file=EVENTS --test_env=GO_TEST_WRAP_TESTV=1
//	go run ./testing/requirements/check -events EVENTS -steps STEPS
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/writ-runtime/writ/testing/requirements"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "requirements:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("check", flag.ContinueOnError)
	events := fs.String("events", "", "the build event file of the Bazel run that tested")
	steps := fs.String("steps", "", "the file with a line `ok NAME` for each step that passed")
	verbose := fs.Bool("v", false, "say of each open requirement why it is open")
	if err := fs.Parse(args); err != nil {
		return err
	}
	set, err := requirements.Committed()
	if err != nil {
		return err
	}
	var e requirements.Evidence
	err = errors.Join(
		read(*events, func(r io.Reader) error { return e.ReadEvents(r, readURI) }),
		read(*steps, e.ReadSteps),
	)
	if err != nil {
		return err
	}
	report := requirements.Check(set, &e)
	for _, p := range report.Problems {
		fmt.Fprintln(out, p)
	}
	if *verbose {
		for _, id := range report.Open {
			fmt.Fprintf(out, "%s is open: %s\n", id, set.Requirements[id].Open)
		}
	}
	fmt.Fprintf(out, "%d requirements: %d proven, %d open (%s)\n", len(set.IDs), len(report.Proven), len(report.Open), strings.Join(report.Open, " "))
	if n := len(report.Problems); n > 0 {
		return fmt.Errorf("%d claims are not shown", n)
	}
	return nil
}

// read reads a file; none is no evidence.
func read(name string, into func(io.Reader) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := into(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readURI reads a log that lies on this machine.
func readURI(uri string) ([]byte, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "file" {
		return nil, fmt.Errorf("%s is not on this machine", uri)
	}
	return os.ReadFile(u.Path)
}
