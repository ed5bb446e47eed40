package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
)

func (c *command) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show an attempt, a work order or an account, event by event",
		Long:  "ID is that of an attempt or of a work order, or the beginning of one; account/NAME is an account.",
		Args:  exact("ID"),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.show(cmd.Context(), args[0]) },
	}
}

// shown is what `writ show` prints.
type shown struct {
	projection.Attempt
	Bundle canonical.Digest `json:"bundle,omitempty"`
	// Lease is nil for an attempt that is under none.
	Lease *kernel.Lease `json:"lease"`
	// Budget is nil for an attempt of which nothing is counted.
	Budget *shownBudget `json:"budget"`
	// StartsFrom is the checkpoint that the attempt started from, Checkpoints are its own.
	StartsFrom  *attemptbundle.StartingPoint `json:"starts_from"`
	Checkpoints []shownCheckpoint            `json:"checkpoints"`
	Outputs     []protocol.ArtifactEntry     `json:"outputs"`
	// Proposals are what was to leave of the accepted result.
	Proposals []proposal `json:"proposals"`
	// Kept is what is kept of the workspace, nil where nothing is to be.
	Kept *kept `json:"kept"`
	// Decided is what people have decided of it.
	Decided []decided    `json:"decided"`
	Events  []shownEvent `json:"events"`
}

type shownEvent struct {
	Sequence  uint64            `json:"sequence"`
	UnixMilli int64             `json:"unix_ms"`
	Subject   lifecycle.Subject `json:"subject"`
	Family    lifecycle.Family  `json:"family"`
	Actor     string            `json:"actor"`
	Guards    []lifecycle.Guard `json:"guards"`

	body canonical.Raw
}

func (c *command) show(ctx context.Context, id string) error {
	r, err := host.Read(ctx, c.state)
	if err != nil {
		return err
	}
	defer r.Close()
	if strings.HasPrefix(id, workorder.IDPrefix) {
		return c.showOrder(ctx, r, id)
	}
	if name, ok := strings.CutPrefix(id, accountPrefix); ok {
		return c.showAccount(ctx, r, name)
	}
	s, row, err := r.Attempt(ctx, id)
	if err != nil {
		return err
	}
	out := shown{Attempt: row, Budget: newShownBudget(s), Proposals: newProposals(s, nil), Kept: newKept(c.state, s)}
	if s.Bundle != nil {
		out.Bundle, out.StartsFrom = s.Bundle.Digest(), s.Bundle.Bundle().StartsFrom
	}
	if s.Leased() {
		out.Lease = &s.Lease
	}
	if out.Checkpoints, err = checkpoints(ctx, r, s); err != nil {
		return err
	}
	manifest, err := environment.ReadManifest(ctx, r.Artifacts, s)
	if err != nil {
		return err
	}
	out.Outputs = manifest.Entries
	if out.Events, err = events(ctx, r, s.Subjects()); err != nil {
		return err
	}
	if out.Decided, err = decisions(ctx, r, out.Events); err != nil {
		return err
	}
	return c.print(out, func(w io.Writer) { out.write(w, c.style()) })
}

// events returns every event of the subjects, in the order they were recorded.
func events(ctx context.Context, r *host.Reading, subjects []lifecycle.Subject) ([]shownEvent, error) {
	var all []journal.Recorded
	for _, subject := range subjects {
		events, err := r.Journal.Events(ctx, subject)
		if err != nil {
			return nil, err
		}
		all = append(all, events...)
	}
	slices.SortFunc(all, journal.Order)
	var shown []shownEvent
	for _, e := range all {
		shown = append(shown, shownEvent{e.Sequence, e.At.UnixMilli, e.Subject, e.Family, e.Actor, e.Guards, e.Body})
	}
	return shown, nil
}

func (o shown) write(w io.Writer, s style) {
	fmt.Fprintf(w, "\n%s  %s\n\n", s.bold(plain(o.Title)), standing(o.Attempt, s))
	section(w, s, "attempt", string(o.ID))
	section(w, s, "order", fmt.Sprintf("%s, %s", o.WorkOrder, o.Order))
	section(w, s, "states", fmt.Sprintf("attempt %s, execution %s, environment %s", word(o.State), word(o.Execution), word(o.Environment)))
	if o.Bundle != "" {
		section(w, s, "bundle", string(o.Bundle))
	}
	if l := o.Lease; l != nil {
		section(w, s, "lease", fmt.Sprintf("until %s UTC, last renewed %s UTC", moment(l.Until.UnixMilli), moment(l.At.UnixMilli)))
	}
	section(w, s, "started", startLines(o.StartsFrom, s)...)
	section(w, s, "progress", few(checkpointLines(o.Checkpoints, s), "writ show --json "+string(o.ID))...)
	if r := o.Result; r != nil && r.Detail != "" {
		section(w, s, "why", why(answered(o.Attempt, o.Decided), s)...)
	}
	section(w, s, "decided", decidedLines(o.Decided, s)...)
	o.Budget.write(w, s, o.ID)
	var outputs [][]string
	for _, e := range o.Outputs {
		outputs = append(outputs, []string{plain(e.Path), size(e.Size), string(e.Digest)})
	}
	section(w, s, "outputs", few(columns(outputs), "writ artifacts list "+string(o.ID))...)
	section(w, s, "sent", proposalLines(o.Proposals, s)...)
	section(w, s, "kept", o.Kept.lines(s)...)
	fmt.Fprintln(w)
	writeEvents(w, s, o.Events)
}

// writeEvents prints events, with the turn and the time at which each turn was recorded.
func writeEvents(w io.Writer, s style, events []shownEvent) {
	var rows [][]string
	last := uint64(0)
	for _, e := range events {
		at, turn := "", ""
		if e.Sequence != last {
			at, turn, last = moment(e.UnixMilli), fmt.Sprintf("turn %d", e.Sequence), e.Sequence
		}
		about := ""
		if e.Subject.Machine() == kernel.OperationMachine {
			parts := strings.Split(e.Subject.ID(), "/")
			about = strings.Join(parts[max(0, len(parts)-2):], "/")
		}
		if e.Subject.Machine() == kernel.OutboxMachine {
			_, about, _ = strings.Cut(e.Subject.ID(), "/")
		}
		rows = append(rows, []string{s.faint(at), s.faint(turn), string(e.Family), about})
	}
	for _, line := range columns(rows) {
		fmt.Fprintln(w, "  "+line)
	}
}

func word(s lifecycle.State) string {
	if s == "" {
		return "not begun"
	}
	return string(s)
}
