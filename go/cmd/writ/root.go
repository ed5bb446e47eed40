package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
)

// command is one invocation: where it prints, and what its global flags say.
type command struct {
	out, errs io.Writer
	state     string
	dist      string
	json      bool
	// cwd is where the person stands, which is not where `bazel run` starts a program.
	cwd string
	// started is set once the command line was understood.
	started bool
	// interrupted says whether a person has asked the process to end.
	interrupted func() bool
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "writ",
		Short: "Run work under a written order, and explain what came of it",
		Long: "Writ takes one immutable order for a piece of work, works out what it may do from policies, runs it in a\n" +
			"measured environment, collects only what was declared, and leaves receipts.",
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return c.stand() },
	}
	root.SetOut(c.out)
	root.SetErr(c.errs)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return reason.New(reason.UsageInvalid, err.Error(), "", "see `"+cmd.CommandPath()+" --help`")
	})
	flags := root.PersistentFlags()
	flags.StringVar(&c.state, "state", ".writ", "the folder of the runtime's state")
	flags.StringVar(&c.dist, "dist", "", "the folder of the release set (default: the one this program was built with)")
	flags.BoolVar(&c.json, "json", false, "print JSON")
	root.AddCommand(c.runCommand(), c.submitCommand(), c.tickCommand(), c.wakeCommand(), c.serveCommand(), c.commandCommand(), c.validateCommand(), c.statusCommand(), c.showCommand(), c.receiptsCommand(),
		c.explainCommand(), c.verifyCommand(), c.recoverCommand(), c.replayCommand(), c.artifactsCommand(), c.versionCommand())
	nameShell(root)
	return root
}

// nameShell has cobra's completion command refuse a shell that it does not know; left
// alone it prints its help and counts that as success.
func nameShell(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, sub := range root.Commands() {
		if sub.Name() != "completion" {
			continue
		}
		sub.Args = cobra.ArbitraryArgs
		sub.RunE = func(_ *cobra.Command, args []string) error {
			what := "completion needs the name of a shell"
			if len(args) > 0 {
				what = fmt.Sprintf("completion knows no shell %q", args[0])
			}
			return reason.New(reason.UsageInvalid, what, "", "write `writ completion bash`, zsh, fish or powershell")
		}
	}
}

// stand finds out where the person stands, and takes the global paths from there.
func (c *command) stand() error {
	c.started = true
	c.cwd = os.Getenv("BUILD_WORKING_DIRECTORY")
	if c.cwd == "" {
		var err error
		if c.cwd, err = os.Getwd(); err != nil {
			return fmt.Errorf("find the working directory: %w", err)
		}
	}
	if c.state == "" {
		return reason.New(reason.UsageInvalid, "--state is empty", "", "name a folder, or leave it out for .writ")
	}
	c.state = c.path(c.state)
	if info, err := os.Stat(c.state); err == nil && !info.IsDir() {
		return reason.New(reason.UsageInvalid, "the state folder is no folder", c.state, "name a folder with --state, or a new one")
	}
	if c.dist != "" {
		c.dist = c.path(c.dist)
	}
	return nil
}

// path takes a path from where the person stands.
func (c *command) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(c.cwd, p)
}

// exact is cobra's check of the number of arguments, as a refusal of ours.
func exact(names ...string) cobra.PositionalArgs { return between(len(names), len(names)) }

// between is exact for a command that takes a range of arguments.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if least <= len(args) && len(args) <= most {
			return nil
		}
		takes := count(most, "argument")
		switch {
		case most == 0:
			takes = "no arguments"
		case least == 0 && most > 0:
			takes = "at most " + takes
		case least < most:
			takes = fmt.Sprintf("%d to %s", least, takes)
		}
		return reason.New(reason.UsageInvalid, fmt.Sprintf("`%s` takes %s and was given %d", cmd.CommandPath(), takes, len(args)),
			"", "write `"+cmd.UseLine()+"`")
	}
}

// print writes v as JSON for a program, or lets text write for a person.
func (c *command) print(v any, text func(w io.Writer)) error {
	var b bytes.Buffer
	if c.json {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(v); err != nil {
			return err
		}
	} else {
		text(&b)
	}
	_, err := c.out.Write(b.Bytes())
	return unprinted(err)
}

// unprinted is the refusal of output that nobody can have received whole.
func unprinted(err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil // Whoever read it has read enough.
	}
	return reason.New(reason.ArtifactIO, "the output cannot be written", "standard output", "free some space, or send it elsewhere").Because(err)
}

// concluded is the error of a command that did its work on an attempt that did not
// succeed: everything has been said, only the exit status is left.
type concluded struct {
	exit reason.Exit
}

func (c concluded) Error() string { return "the attempt ended " + string(c.exit) }

// failure is what --json prints of an error.
type failure struct {
	Code     reason.Code `json:"code"`
	Exit     reason.Exit `json:"exit"`
	Message  string      `json:"message"`
	Where    string      `json:"where,omitempty"`
	Remedy   string      `json:"remedy,omitempty"`
	Problems []problem   `json:"problems,omitempty"`
}

// problem is one thing that is wrong with a document.
type problem struct {
	File    string      `json:"file"`
	Line    int         `json:"line"`
	Column  int         `json:"column"`
	Path    string      `json:"path"`
	Rule    string      `json:"rule"`
	Message string      `json:"message"`
	Remedy  string      `json:"remedy,omitempty"`
	Code    reason.Code `json:"code"`
}

// report tells a person, or a program, what went wrong, and returns the exit status.
func (c *command) report(err error) int {
	var done concluded
	if errors.As(err, &done) {
		return done.exit.Status()
	}
	exit := reason.ExitInternal
	var invalid *schema.InvalidError
	refusal, isRefusal := reason.As(err)
	switch {
	case c.interrupted != nil && c.interrupted() && errors.Is(err, context.Canceled):
		// Whatever it was that noticed first, it is not at fault.
		refusal, exit = reason.New(reason.AttemptCancelled, errInterrupted.Error(), "", "see with `writ status` what was recorded"), reason.ExitCancelled
	case isRefusal:
		exit = refusal.Code.Exit()
	case !c.started:
		// cobra has no type for a command line that it refuses.
		exit = reason.ExitUsage
		refusal = reason.New(reason.UsageInvalid, err.Error(), "", "see `writ --help`")
	default:
		refusal = reason.New(reason.InternalBug, err.Error(), "", "this is a fault of Writ: please report it")
	}
	if c.json {
		f := failure{Code: refusal.Code, Exit: exit, Message: refusal.What, Where: refusal.Where, Remedy: refusal.Remedy}
		if errors.As(err, &invalid) {
			for _, p := range invalid.Problems {
				f.Problems = append(f.Problems, problem{p.File, p.Line, p.Column, p.Path, p.Rule, p.Message, p.Remedy, p.Code})
			}
		}
		e := json.NewEncoder(c.errs)
		e.SetEscapeHTML(false)
		_ = e.Encode(map[string]failure{"error": f})
		return exit.Status()
	}
	if errors.As(err, &invalid) {
		fmt.Fprintln(c.errs, lines(invalid.Error()))
		return exit.Status()
	}
	fmt.Fprintln(c.errs, "writ: "+lines(refusal.Detail()))
	return exit.Status()
}
