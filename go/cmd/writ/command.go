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
	"github.com/writ-runtime/writ/go/reason"
)

func (c *command) commandCommand() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "command '/writ VERB …'",
		Short: "Give one command, as a person on this machine",
		Long: "Takes one command in the words of the grammar, every flag, in this order:\n\n" +
			ingress.Grammar() +
			"\nA value with a space is a JSON string, \"…\". Nothing is abbreviated or repaired. The process that holds the state\n" +
			"folder takes the command where there is one. A command under the same --id is applied once.",
		Args: exact("COMMAND"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.give(cmd.Context(), id, args[0]) },
	}
	cmd.Flags().StringVar(&id, "id", "", "the id of the delivery: dlv_ and a UUIDv7 (default: a new one)")
	return cmd
}

// give gives one command and prints what it came to.
func (c *command) give(ctx context.Context, id, text string) error {
	id, err := c.deliveryID(id)
	if err != nil {
		return err
	}
	if text == wakeText {
		return c.wake(ctx, id)
	}
	answer, err := c.deliver(ctx, id, text)
	if err != nil {
		return err
	}
	if err := c.refused(answer); err != nil {
		return err
	}
	return c.print(answer, func(w io.Writer) {
		s := c.style()
		if answer.Index != nil {
			c.writeIndex(w, answer.Index)
			return
		}
		word := "applied"
		if answer.Replayed {
			word = "applied before"
		}
		fmt.Fprintf(w, "%s  %s\n", s.good(word), answer.Delivery)
		if b := answer.Became; b != nil {
			fmt.Fprintf(w, "%s\n", s.faint(fmt.Sprintf("event %d of %s", b.Version, b.Subject)))
		}
	})
}

// refused says of a command that was not applied why; a program is given the whole answer.
func (c *command) refused(answer host.CommandAnswer) error {
	refusal := answer.Refusal()
	if refusal == nil || !c.json {
		return refusal
	}
	if err := c.print(answer, nil); err != nil {
		return err
	}
	return concluded{answer.Failure.Code.Exit()}
}

// ask hands a command to the host that holds the state folder; served is false where none
// does.
func (c *command) ask(ctx context.Context, id, text string) (answer host.CommandAnswer, served bool, err error) {
	return host.Ask[host.CommandAnswer](ctx, c.state, ingress.Request{ID: id, Verb: ingress.Command, Content: text})
}

// deliver hands a command to the host that holds the state folder, or is that host itself.
func (c *command) deliver(ctx context.Context, id, text string) (host.CommandAnswer, error) {
	answer, served, err := c.ask(ctx, id, text)
	if served || err != nil {
		return answer, err
	}
	h, err := c.openHost(ctx, "writ command")
	if err != nil {
		return answer, err
	}
	answer, err = h.Command(ctx, ingress.Person(os.Getuid()), ingress.Delivery{ID: id, Channel: ingress.LocalChannel, Verb: ingress.Command, Content: []byte(text)})
	return answer, errors.Join(err, h.Close())
}

// deliveryID checks the id that a person gave, or mints one.
func (c *command) deliveryID(id string) (string, error) {
	if id == "" {
		minted, err := host.NewIDs().Mint(ingress.DeliveryPrefix)
		return string(minted), err
	}
	if _, err := canonical.ParseID(ingress.DeliveryPrefix, id); err != nil {
		return "", reason.New(reason.UsageInvalid, "--id is no id of a delivery", id, "write dlv_ and a UUIDv7 in lower case, or leave it out")
	}
	return id, nil
}
