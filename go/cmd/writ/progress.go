package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/supervisor"
)

// progress shows on standard error what an attempt is at: one line that changes on a
// terminal, a plain line a step elsewhere, nothing beside JSON.
type progress struct {
	out      io.Writer
	terminal bool
	shown    bool
}

func (c *command) progress() *progress {
	if c.json {
		return &progress{}
	}
	return &progress{out: c.errs, terminal: isTerminal(c.errs)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"
}

// step implements supervisor.Attempt.Observe.
func (p *progress) step(s supervisor.Step) {
	switch {
	case p.out == nil:
	case p.terminal && !s.Done:
		p.shown = true
		fmt.Fprintf(p.out, "\r\x1b[K· %s", doing(s.Operation))
	case !p.terminal && s.Done:
		fmt.Fprintf(p.out, "writ: %s: %s in %s\n", s.Operation, s.Outcome.Knowledge, duration(s.Micros))
	}
}

// cancelling says that Ctrl-C was heard: stopping and removing take their time.
func (p *progress) cancelling() {
	if p.out != nil {
		fmt.Fprintf(p.out, "%swrit: cancelling; once more leaves at once\n", p.clear())
	}
}

// end takes the changing line away.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.out, p.clear())
	}
}

// clear moves to the beginning of an empty line.
func (p *progress) clear() string {
	if !p.terminal {
		return ""
	}
	return "\r\x1b[K"
}

// doing says in words what a step does.
func doing(k operation.Kind) string {
	switch k {
	case operation.Provision:
		return "building and measuring the environment"
	case operation.Materialize:
		return "copying the inputs in"
	case operation.Prepare:
		return "handing the order to the executor"
	case operation.Start, operation.Launch, operation.Checkpoint:
		return "running"
	case operation.Freeze:
		return "freezing the declared outputs"
	case operation.Collect:
		return "checking the result"
	case operation.Cancel:
		return "cancelling"
	}
	return "cleaning up"
}

// duration renders microseconds for a person.
func duration(micros int64) string {
	d := time.Duration(micros) * time.Microsecond
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", micros)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
