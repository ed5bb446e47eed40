package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
)

func (c *command) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List every attempt, and every work order that waits or never had one",
		Args:  exact(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.status(cmd.Context())
		},
	}
}

func (c *command) status(ctx context.Context) error {
	index, writer, err := c.readIndex(ctx)
	if err != nil {
		return err
	}
	return c.print(struct {
		*projection.Index
		Writer sqlite.Writer `json:"writer"`
	}{index, writer}, func(w io.Writer) {
		c.writeIndex(w, index)
		c.writeWriter(w, index, writer)
	})
}

// writeWriter says who is at work where an attempt is under way, or that it was left behind.
func (c *command) writeWriter(w io.Writer, index *projection.Index, who sqlite.Writer) {
	open := slices.ContainsFunc(index.Attempts, func(a projection.Attempt) bool { return a.Result == nil })
	switch {
	case who.PID > 0:
		fmt.Fprintf(w, "process %d is at work here: %q\n", who.PID, plain(who.Activity))
	case open && who.Known:
		fmt.Fprintln(w, "no process is at work here: `writ tick` closes what was left open")
	}
}

// writeIndex prints every attempt, and every work order that waits or never had one.
func (c *command) writeIndex(w io.Writer, index *projection.Index) {
	if len(index.Orders) == 0 {
		fmt.Fprintf(w, "Nothing has run in %s yet. Start with `writ run FILE`.\n", c.state)
		return
	}
	s := c.style()
	rows := [][]string{{s.faint("attempt"), s.faint("began (UTC)"), s.faint("state"), s.faint("title")}}
	for _, a := range index.Attempts {
		rows = append(rows, []string{string(a.ID), moment(a.Begun), standing(a, s), plain(a.Title)})
	}
	for _, o := range index.Orders {
		if o.Attempts == 0 || o.Waits != "" {
			rows = append(rows, []string{string(o.ID), moment(o.Submitted), string(o.State), plain(o.Title)})
		}
	}
	for _, line := range columns(rows) {
		fmt.Fprintln(w, line)
	}
}

// readIndex builds the index; a state folder without a journal has an empty one.
func (c *command) readIndex(ctx context.Context) (*projection.Index, sqlite.Writer, error) {
	r, err := host.Read(ctx, c.state)
	if reason.Is(err, reason.JournalMissing) {
		return &projection.Index{Orders: []projection.Order{}, Attempts: []projection.Attempt{}, Pending: []string{}}, sqlite.Writer{Known: true}, nil
	}
	if err != nil {
		return nil, sqlite.Writer{}, err
	}
	defer r.Close()
	index, err := r.Index(ctx)
	return index, r.Writer(), err
}

// standing is one word, or a few, on where an attempt stands.
func standing(a projection.Attempt, s style) string {
	switch {
	case a.Denied != "":
		return s.bad("denied")
	case a.Result == nil:
		return string(a.State)
	case a.Result.Conclusion == "succeeded":
		said := s.good(string(a.Result.Conclusion))
		if a.Given > 0 {
			said += s.bad(fmt.Sprintf(", %d did not leave", a.Given))
		}
		if a.Unsent > 0 {
			said += s.bad(fmt.Sprintf(", %d to be sent", a.Unsent))
		}
		return said
	}
	return s.bad(string(a.Result.Conclusion))
}

// moment renders a recorded clock reading.
func moment(unixMilli int64) string {
	return time.UnixMilli(unixMilli).UTC().Format("2006-01-02 15:04:05")
}
