package main

import (
	"context"
	"fmt"
	"io"

	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/projection"
)

// shownOrder is what `writ show` prints of a work order.
type shownOrder struct {
	projection.Order
	Made []projection.Attempt `json:"made"`
	// InDoubt are the operations of its last attempt of which a person has to say what became.
	InDoubt []operation.Key `json:"in_doubt"`
	// Decided is what people have decided of it.
	Decided []decided    `json:"decided"`
	Events  []shownEvent `json:"events"`
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
	if row.State == "unknown_terminal" {
		s, _, err := r.Attempt(ctx, string(row.Last))
		if err != nil {
			return err
		}
		out.InDoubt = s.InDoubt()
	}
	if out.Decided, err = decisions(ctx, r, out.Events); err != nil {
		return err
	}
	return c.print(out, func(w io.Writer) { out.write(w, c.style()) })
}

func (o shownOrder) write(w io.Writer, s style) {
	fmt.Fprintf(w, "\n%s  %s\n\n", s.bold(plain(o.Title)), o.State)
	section(w, s, "order", string(o.ID), s.faint(fmt.Sprintf("event %d is the newest, for --expected-version", len(o.Events))))
	if o.Waits != "" {
		waits := []string{"for " + plain(o.Waits)}
		switch {
		case o.Doubted && o.State != "unknown_terminal":
			waits = append(waits, "writ command '/writ resume-work "+string(o.ID)+" --expected-version "+fmt.Sprint(len(o.Events))+" --reason …' lets it be attempted, cancel-work ends it")
		case o.Retry != nil:
			waits = append(waits, "not before "+moment(o.Retry.NotBefore.UnixMilli)+" UTC")
		}
		for _, key := range o.InDoubt {
			waits = append(waits, "in doubt: "+string(key))
		}
		section(w, s, "waits", waits...)
	}
	if m := o.Raised; m != nil {
		section(w, s, "raised", fmt.Sprintf("to mode %s by %s, who looked at %s in mode %s", m.Mode, plain(m.Principal), m.Evidence.Attempt, m.Evidence.Mode), plain(m.Reason))
	}
	section(w, s, "decided", decidedLines(o.Decided, s)...)
	if d := o.Dependency; d != nil {
		section(w, s, "why", plain(d.Why), s.faint(string(d.Code)))
	}
	if b := o.Budget; b != nil {
		section(w, s, "why", plain(b.Why), "asked for "+amounts(b.Asked), s.faint(string(b.Code)+"  writ show "+accountPrefix+b.Account))
	}
	if f := o.Failure; f != nil {
		section(w, s, "why", plain(f.Detail), plain(f.Remedy), s.faint(string(f.Code)))
	}
	var rows [][]string
	for _, a := range o.Made {
		rows = append(rows, []string{string(a.ID), moment(a.Begun), standing(a, s)})
	}
	section(w, s, "attempts", columns(rows)...)
	fmt.Fprintln(w)
	writeEvents(w, s, o.Events)
}
