package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/go/workorder"
)

func (c *command) submitCommand() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "submit FILE",
		Short: "Record a work order, to be carried out by the next tick",
		Long: "Checks the work order in FILE and everything it names, and records it. Nothing runs yet, and the policies are\n" +
			"asked when it does. What counts are the inputs as they are now: if they change before, the attempt is refused.\n" +
			"Under the same --id it is recorded once.",
		Args: exact("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.submit(cmd.Context(), id, args[0]) },
	}
	cmd.Flags().StringVar(&id, "id", "", "the id of the delivery: dlv_ and a UUIDv7 (default: a new one)")
	return cmd
}

// submitted is what `writ submit` prints.
type submitted struct {
	WorkOrder workorder.ID     `json:"work_order"`
	Title     string           `json:"title"`
	Digest    canonical.Digest `json:"digest"`
	// Served says that a host holds the state folder, and attempts the order by itself.
	Served bool `json:"served"`
	// Replayed says that the delivery had been recorded before.
	Replayed bool `json:"replayed"`
}

func (c *command) submit(ctx context.Context, id, file string) error {
	doc, origin, err := c.load(file)
	if err != nil {
		return err
	}
	id, err = c.deliveryID(id)
	if err != nil {
		return err
	}
	request := ingress.Request{ID: id, Verb: ingress.Submit, Content: string(doc.Canonical), Name: file, Origin: origin}
	answer, served, err := host.Ask[host.SubmitAnswer](ctx, c.state, request)
	if err != nil {
		return err
	}
	if !served {
		if answer, err = c.submitHere(ctx, id, doc, file, origin); err != nil {
			return err
		}
	}
	next := []string{"writ tick", "writ show " + string(answer.WorkOrder)}
	if answer.Ticks {
		next = next[1:]
	}
	return c.tellSubmitted(doc, answer, "submitted", next)
}

// ranBefore says of a delivery that was carried out before which work order it was: nothing
// is done again.
func (c *command) ranBefore(doc *schema.Document, answer host.SubmitAnswer) error {
	return c.tellSubmitted(doc, answer, "ran before under this id, and does not run again", []string{"writ show " + string(answer.WorkOrder)})
}

func (c *command) tellSubmitted(doc *schema.Document, answer host.SubmitAnswer, what string, next []string) error {
	var w workorder.WorkOrder
	if err := doc.Decode(&w); err != nil {
		return err
	}
	out := submitted{WorkOrder: answer.WorkOrder, Title: w.Title, Digest: doc.Digest, Served: answer.Ticks, Replayed: answer.Replayed}
	return c.print(out, func(w io.Writer) {
		s := c.style()
		fmt.Fprintf(w, "\n%s  %s\n\n", s.bold(plain(out.Title)), what)
		section(w, s, "order", string(out.WorkOrder))
		section(w, s, "next", next...)
		fmt.Fprintln(w)
	})
}

// submitHere records a work order in a state folder that no host holds.
func (c *command) submitHere(ctx context.Context, id string, doc *schema.Document, file, origin string) (_ host.SubmitAnswer, err error) {
	h, err := c.openHost(ctx, "writ submit "+file)
	if err != nil {
		return host.SubmitAnswer{}, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return h.Submit(ctx, ingress.Person(os.Getuid()), id, doc, origin)
}

// openHost opens the state folder for writing.
func (c *command) openHost(ctx context.Context, activity string) (*host.Host, error) {
	dist, err := c.findDist()
	if err != nil {
		return nil, err
	}
	return host.Open(ctx, host.Options{State: c.state, Dist: dist, Activity: activity})
}
