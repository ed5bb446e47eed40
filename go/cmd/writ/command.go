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
	answer, _, err := c.deliver(ctx, id, text)
	if err != nil {
		return err
	}
	if refusal := answer.Refusal(); refusal != nil {
		if c.json {
			if err := c.print(answer, nil); err != nil {
				return err
			}
			return concluded{answer.Failure.Code.Exit()}
		}
		return refusal
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

// deliver hands a command to the host that holds the state folder, or is that host itself;
// served says which.
func (c *command) deliver(ctx context.Context, id, text string) (answer host.CommandAnswer, served bool, err error) {
	request := ingress.Request{ID: id, Verb: ingress.Command, Content: text}
	answer, served, err = host.Ask[host.CommandAnswer](ctx, c.state, request)
	if served || err != nil {
		return answer, served, err
	}
	h, err := c.openHost(ctx, "writ command")
	if err != nil {
		return answer, false, err
	}
	answer, err = h.Command(ctx, ingress.Person(os.Getuid()), ingress.Delivery{ID: id, Channel: ingress.LocalChannel, Verb: ingress.Command, Content: []byte(text)})
	return answer, false, errors.Join(err, h.Close())
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
