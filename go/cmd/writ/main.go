// Command writ runs work orders and explains what came of them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/reason"
)

func main() {
	if err := confine.CloseInherited(); err != nil {
		fmt.Fprintln(os.Stderr, "writ:", err)
		os.Exit(reason.ExitInternal.Status())
	}
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs one command line and returns the exit status.
func execute(args []string, out, errs io.Writer) int {
	ctx, stop := interruptible()
	defer stop()
	c := &command{out: out, errs: errs, interrupted: func() bool { return errors.Is(context.Cause(ctx), errInterrupted) }}
	root := c.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	// A command line that was not understood has not set the flag.
	c.json = c.json || !c.started && slices.Contains(args, "--json")
	return c.report(err)
}

// errInterrupted is the cause of a context that a person ended.
var errInterrupted = errors.New("interrupted by the operator")

// interruptible returns a context that the first Ctrl-C ends with a reason. The second
// one ends the process at once: what it leaves open, the next start closes.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		// The terminal closes; under nohup that means nothing.
		ends = append(ends, syscall.SIGHUP)
	}
	signal.Notify(signals, ends...)
	go func() {
		<-signals
		cancel(errInterrupted)
		<-signals
		fmt.Fprintln(os.Stderr, "writ: left at once; what is open, the next `writ run` closes")
		os.Exit(reason.ExitCancellationRequested.Status())
	}()
	return ctx, func() { cancel(nil) }
}
