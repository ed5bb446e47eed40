package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/canonical"
)

func (c *command) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a work order without running or recording anything",
		Long:  "Checks the document against its schema. What it names (inputs, tools, policies) is looked for when it runs.",
		Args:  exact("FILE"),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.validate(cmd.Context(), args[0]) },
	}
}

func (c *command) validate(_ context.Context, file string) error {
	doc, _, err := c.load(file)
	if err != nil {
		return err
	}
	return c.print(struct {
		Kind   string           `json:"kind"`
		Digest canonical.Digest `json:"digest"`
	}{doc.Kind, doc.Digest}, func(w io.Writer) {
		fmt.Fprintf(w, "%s is a valid work order (%s, %s).\n", file, doc.Kind, doc.Digest)
	})
}
