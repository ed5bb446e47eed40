package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/ingress"
)

func (c *command) wakeCommand() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "wake",
		Short: "Cause one tick, as a scheduler does",
		Long: "Wakes the host that holds the state folder, or carries out the tick itself where there is none. A wake carries an\n" +
			"identity and nothing else; under the same --id it causes one tick, however often it comes.",
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.wake(cmd.Context(), id) },
	}
	cmd.Flags().StringVar(&id, "id", "", "the id of the delivery: dlv_ and a UUIDv7 (default: a new one)")
	return cmd
}

// wakeText is the command of every wake.
const wakeText = "/writ " + ingress.Wake

func (c *command) wake(ctx context.Context, id string) error {
	id, err := c.deliveryID(id)
	if err != nil {
		return err
	}
	answer, served, err := c.ask(ctx, id, wakeText)
	if err != nil {
		return err
	}
	if err := c.refused(answer); err != nil {
		return err
	}
	if !served {
		return c.tick(ctx, id)
	}
	return c.woken(answer)
}

// woken says what a wake came to.
func (c *command) woken(answer host.CommandAnswer) error {
	id := answer.Delivery
	return c.print(answer, func(w io.Writer) {
		if answer.Replayed {
			fmt.Fprintf(w, "%s woke it before.\n", id)
			return
		}
		fmt.Fprintf(w, "%s woke the host that holds the state folder.\n", id)
	})
}
