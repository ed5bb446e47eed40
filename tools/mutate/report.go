package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// report is how the tests of one run ended.
type report struct {
	// ended holds the last thing that is known of each test: run, pass, fail or skip.
	ended map[string]string
	// built is false where the package or its tests did not compile.
	built bool
	// err is not nil where the run did not pass.
	err error
	// output is what everything said, in the order of its coming.
	output string
}

// test runs tests of the package in a folder of the tree.
func (m Machine) test(ctx context.Context, overlay, folder, run string) *report {
	out, err := m.command(ctx, overlay, "test", "-json", "-count=1", "-vet=off", "-timeout", m.Bounds.Time.String(), "-run", run, "./"+filepath.ToSlash(folder))
	r := &report{ended: map[string]string{}, built: true, err: err}
	r.read(out)
	return r
}

// read takes the lines of `go test -json`, and those that the go command writes beside them.
func (r *report) read(out []byte) {
	var text strings.Builder
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, len(out)+1)
	for lines.Scan() {
		var e struct{ Action, Test, Output, FailedBuild string }
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			text.Write(append(lines.Bytes(), '\n'))
			continue
		}
		switch e.Action {
		case "run", "pass", "fail", "skip":
			if e.Test != "" {
				r.ended[e.Test] = e.Action
			}
		case "output", "build-output":
			text.WriteString(e.Output)
		case "build-fail":
			r.built = false
		}
		r.built = r.built && e.FailedBuild == ""
	}
	r.output = text.String()
}

// judge says what the run shows of one test. One that began and did not end, in a run that
// failed, broke the run off: that is red too.
func (r *report) judge(test string) (Ending, string) {
	var beyond errBounds
	switch {
	case errors.As(r.err, &beyond):
		return Unbounded, beyond.what + "\n" + r.last()
	case !r.built:
		return Unbuilt, r.last()
	case strings.Contains(r.output, "panic: test timed out after"):
		return Unbounded, "it took longer than its time\n" + r.last()
	}
	switch ended := r.ended[test]; {
	case ended == "fail", ended == "run" && r.err != nil:
		return Red, ""
	case ended == "pass":
		return Green, "it passes without the guard"
	case ended == "skip":
		return NeverRan, "it was skipped\n" + r.last()
	}
	return NeverRan, fmt.Sprintf("no test of the name ran (%v)\n%s", r.err, r.last())
}

// summary is one line on the whole run.
func (r *report) summary() string {
	passed := 0
	for _, e := range r.ended {
		if e == "pass" {
			passed++
		}
	}
	switch {
	case !r.built:
		return "it does not compile\n" + r.last()
	case r.err != nil:
		return fmt.Sprintf("%v\n%s", r.err, r.last())
	}
	return fmt.Sprintf("%d tests pass", passed)
}

// last is the end of the output, which is where a failure speaks.
func (r *report) last() string {
	const most = 2000
	if len(r.output) <= most {
		return r.output
	}
	return "…" + r.output[len(r.output)-most:]
}
