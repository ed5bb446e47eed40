package main

import (
	"context"
	"fmt"
	"io"

	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/projection"
)

// shownOrder is what `writ show` prints of a work order.
type shownOrder struct {
	projection.Order
	Made   []projection.Attempt `json:"made"`
	Events []shownEvent         `json:"events"`
}

func (c *command) showOrder(ctx context.Context, r *host.Reading, id string) error {
	row, index, err := r.Order(ctx, id)
	if err != nil {
		return err
	}
	out := shownOrder{Order: row, Made: index.Of(row.ID)}
	if out.Events, err = events(ctx, r, []lifecycle.Subject{lifecycle.Of(kernel.WorkOrderMachine, string(row.ID))}); err != nil {
		return err
	}
	return c.print(out, func(w io.Writer) { out.write(w, c.style()) })
}

func (o shownOrder) write(w io.Writer, s style) {
	fmt.Fprintf(w, "\n%s  %s\n\n", s.bold(plain(o.Title)), o.State)
	section(w, s, "order", string(o.ID), s.faint(fmt.Sprintf("event %d is the newest, for --expected-version", len(o.Events))))
	if o.State == "unknown_terminal" {
		section(w, s, "waits", "for a person to say what became of it: docs/recovery.md")
	}
	if o.Doubted {
		section(w, s, "waits", "for a person: turns were left out when the journal was recovered, and what became of the order may stand in them",
			"writ command '/writ resume-work "+string(o.ID)+" --expected-version "+fmt.Sprint(len(o.Events))+" --reason …' lets it be attempted, cancel-work ends it")
	}
	if m := o.Raised; m != nil {
		section(w, s, "raised", fmt.Sprintf("to mode %s by %s, who looked at %s in mode %s", m.Mode, plain(m.Principal), m.Evidence.Attempt, m.Evidence.Mode), plain(m.Reason))
	}
	if o.Blocked != "" {
		section(w, s, "why", plain(o.Blocked))
	}
	if d := o.Dependency; d != nil {
		section(w, s, "why", plain(d.Why), s.faint(string(d.Code)))
	}
	if b := o.Budget; b != nil {
		section(w, s, "why", plain(b.Why), "asked for "+amounts(b.Asked), s.faint(string(b.Code)+"  writ show "+accountPrefix+b.Account))
	}
	if f := o.Failure; f != nil {
		section(w, s, "why", plain(f.Detail), plain(f.Remedy), s.faint(string(f.Code)))
	}
	if o.Retry != nil {
		section(w, s, "waits", "for its next attempt, not before "+moment(o.Retry.NotBefore.UnixMilli)+" UTC")
	}
	var rows [][]string
	for _, a := range o.Made {
		rows = append(rows, []string{string(a.ID), moment(a.Begun), standing(a, s)})
	}
	section(w, s, "attempts", columns(rows)...)
	fmt.Fprintln(w)
	writeEvents(w, s, o.Events)
}
