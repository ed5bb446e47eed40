package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/evidence"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
)

func (c *command) replayCommand() *cobra.Command {
	var at uint64
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Build everything that is shown anew from the journal",
		Long: "Carries every turn of the journal, every work order and every attempt through the transition registry, as the\n" +
			"first time, and prints the digest of the index that comes of it. The same journal has the same digest, whenever and\n" +
			"wherever it is replayed. With --at the index is that of an earlier turn, and is shown. Exit status 7 means that an\n" +
			"event was refused.",
		Args: exact(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("at") && at == 0 {
				return reason.New(reason.UsageInvalid, "--at is 0, and turns count from 1", "", "name a turn, as `writ show` prints it")
			}
			return c.replay(cmd.Context(), at)
		},
	}
	cmd.Flags().Uint64Var(&at, "at", 0, "the last turn to replay (default: the newest)")
	return cmd
}

// replayed is what `writ replay` prints.
type replayed struct {
	Turns    uint64           `json:"turns"`
	Events   uint64           `json:"events"`
	Orders   int              `json:"work_orders"`
	Attempts int              `json:"attempts"`
	Chain    canonical.Digest `json:"chain,omitempty"`
	// Index is the digest of the index's canonical JSON; empty where an event was refused.
	Index      canonical.Digest  `json:"index,omitempty"`
	Projection *projection.Index `json:"projection,omitempty"`
	Refused    *refusedEvent     `json:"refused,omitempty"`
}

// refusedEvent is the first event that the registry, or the kernel, refuses.
type refusedEvent struct {
	Turn    uint64            `json:"turn"`
	Subject lifecycle.Subject `json:"subject"`
	Version uint64            `json:"version"`
	Family  lifecycle.Family  `json:"family"`
	Code    reason.Code       `json:"code,omitempty"`
	Why     string            `json:"why"`
}

func (c *command) replay(ctx context.Context, at uint64) error {
	r, err := host.Read(ctx, c.state)
	if err != nil {
		return err
	}
	defer r.Close()
	done, err := evidence.Replay(ctx, r.Journal, r.Kernel, at, evidence.Watch{})
	if err != nil {
		return err
	}
	if at > done.Turns {
		return reason.New(reason.IDUnknown, fmt.Sprintf("there is no turn %d: the journal ends at turn %d", at, done.Turns), c.state, "name an earlier one with --at")
	}
	out := replayed{Turns: done.Turns, Events: done.Events, Orders: done.Orders, Attempts: done.Attempts}
	if x := done.Index; x != nil {
		out.Chain = x.Chain
		if out.Index, err = canonical.DigestOf(x); err != nil {
			return err
		}
		if at > 0 {
			out.Projection = x
		}
	}
	if f := done.Refused; f != nil {
		out.Refused = &refusedEvent{f.Sequence, f.Event.Subject, f.Event.Version, f.Event.Family, reason.CodeOf(f.Err), f.Err.Error()}
		out.Index, out.Projection = "", nil
	}
	if err := c.print(out, func(w io.Writer) { c.writeReplayed(w, out) }); err != nil {
		return err
	}
	if out.Refused != nil {
		return concluded{reason.ExitVerify}
	}
	return nil
}

func (c *command) writeReplayed(w io.Writer, r replayed) {
	s := c.style()
	if f := r.Refused; f != nil {
		fmt.Fprintf(w, "%s  turn %d, event %d of %s, %s: %s\n", s.bad("refused"), f.Turn, f.Version, plain(string(f.Subject)), plain(string(f.Family)), plain(f.Why))
		return
	}
	if r.Projection != nil {
		c.writeIndex(w, r.Projection)
	}
	fmt.Fprintf(w, "%s  %s, %d events, %s, %s\n", s.good("replayed"), count(int64(r.Turns), "turn"), r.Events,
		count(r.Orders, "work order"), count(r.Attempts, "attempt"))
	fmt.Fprintf(w, "          turn %s, %s\n          %s\n", strconv.FormatUint(r.Turns, 10), s.faint("chain "+string(r.Chain)), s.faint("index "+string(r.Index)))
}
