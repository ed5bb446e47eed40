package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

func (c *command) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain ATTEMPT | OPERATION",
		Short: "Say what an attempt was allowed and why, or what became of one operation",
		Long:  "ATTEMPT is an id or the beginning of one; OPERATION is a key as `writ receipts` prints it.",
		Args:  exact("ID"),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.explain(cmd.Context(), args[0]) },
	}
}

func (c *command) explain(ctx context.Context, id string) error {
	r, err := host.Read(ctx, c.state)
	if err != nil {
		return err
	}
	defer r.Close()
	if strings.Contains(id, "/") {
		return c.explainOperation(ctx, r, id)
	}
	s, row, err := r.Attempt(ctx, id)
	if err != nil {
		return err
	}
	record, decided, err := r.Decision(ctx, s)
	if err != nil {
		return err
	}
	e := explanation{Attempt: row, Budget: newShownBudget(s)}
	if decided {
		e.Decision = &record
	}
	all, err := events(ctx, r, s.Subjects())
	if err != nil {
		return err
	}
	if e.Decided, err = decisions(ctx, r, all); err != nil {
		return err
	}
	if plan, err := r.Kernel.Next(s); err == nil {
		e.Next = next(plan, atWork(r))
		if plan.Done && s.Retained != nil && !s.Retained.Ended {
			e.Next = "nothing: the attempt is closed; left of its workspace: " + count(s.Retained.Files, "file") + ", kept until " + moment(s.Retained.Until.UnixMilli)
		}
		if plan.Done && row.Order == "retry_wait" && !row.Doubted && s.Retry != nil && s.Retry.Attempt == s.Attempt {
			e.Next += "; `writ tick` makes another attempt at the work order"
		}
	}
	return c.print(e, func(w io.Writer) { e.write(w, c.style()) })
}

// explanation is what `writ explain ATTEMPT` prints.
type explanation struct {
	projection.Attempt
	// Next says what happens next, or that nothing does.
	Next string `json:"next"`
	// Budget is nil for an attempt of which nothing is counted.
	Budget   *shownBudget   `json:"budget"`
	Decision *policy.Record `json:"decision"`
	// Decided is what people have decided of it.
	Decided []decided `json:"decided"`
}

// next says in words what a plan is.
func next(p kernel.Plan, ifNobody string) string {
	switch {
	case p.Done:
		return "nothing: the attempt is closed and nothing of it is left"
	case p.Wait != "":
		return "it waits for " + p.Wait
	case len(p.Resolve) > 0:
		return ifNobody + "asks what became of " + count(len(p.Resolve), "operation")
	case p.Reconcile:
		return ifNobody + "looks for what is left of its environment"
	case p.Reduce:
		return ifNobody + "reduces its result"
	}
	var kinds []string
	for _, in := range p.Begin {
		kinds = append(kinds, string(in.Kind))
	}
	return ifNobody + "begins " + strings.Join(kinds, ", ")
}

// atWork begins what is said of an open attempt: who may be carrying it out.
func atWork(r *host.Reading) string {
	switch who := r.Writer(); {
	case !who.Known:
		return "if no process is carrying it out now, the next `writ tick` "
	case who.PID == 0:
		return "no process is at work here: the next `writ tick` "
	default:
		return fmt.Sprintf("process %d is at work here, %q; should it end, the next `writ tick` ", who.PID, who.Activity)
	}
}

func (e explanation) write(w io.Writer, s style) {
	fmt.Fprintf(w, "\n%s  %s\n\n", s.bold(plain(e.Title)), standing(e.Attempt, s))
	section(w, s, "attempt", string(e.ID))
	if r := e.Result; r != nil && r.Detail != "" && e.Denied == "" {
		section(w, s, "why", why(answered(e.Attempt, e.Decided), s)...)
	}
	section(w, s, "decided", decidedLines(e.Decided, s)...)
	section(w, s, "next", e.Next)
	e.Budget.write(w, s, e.ID)
	if e.Decision == nil {
		section(w, s, "policy", "no decision was made: the attempt ended before the policies were asked")
		fmt.Fprintln(w)
		return
	}
	fmt.Fprintln(w)
	writeDecision(w, s, *e.Decision)
}

// writeDecision prints a tree: each requested action, and what each layer says of it.
func writeDecision(w io.Writer, s style, d policy.Record) {
	denied := map[string]capability.Denial{}
	for _, x := range d.Denials {
		denied[x.Grant().String()] = x
	}
	for _, x := range d.Denials {
		if x.Action == capability.AnyAction {
			fmt.Fprintf(w, "  %s  everything\n", s.bad("denied"))
			writeDenial(w, s, x)
		}
	}
	for i, q := range d.Requested {
		x, no := denied[q.Grant.String()]
		if !no {
			verdict := s.good("allowed")
			if len(d.Denials) > 0 {
				verdict = s.faint("allowed")
			}
			fmt.Fprintf(w, "  %s  %s\n", verdict, q.Grant)
			rules, _ := d.Allowing(q.Grant)
			fmt.Fprintf(w, "           %s\n", s.faint(strings.Join(rules, ", ")))
			continue
		}
		fmt.Fprintf(w, "  %s   %s\n", s.bad("denied"), q.Grant)
		if i+1 < len(d.Requested) {
			// What is refused for the same reason is listed above one explanation.
			if y, no := denied[d.Requested[i+1].Grant.String()]; no && same(x, y) {
				continue
			}
		}
		writeDenial(w, s, x)
	}
	fmt.Fprintln(w)
	for _, p := range d.Policies {
		fmt.Fprintf(w, "  %s\n", s.faint(fmt.Sprintf("%-12s %s", p.Layer, p.Digest)))
	}
	fmt.Fprintln(w)
}

// same reports whether two denials say the same of different grants.
func same(a, b capability.Denial) bool {
	return a.Layer == b.Layer && a.Rule == b.Rule && a.Reason == b.Reason && a.Remedy == b.Remedy && a.Code == b.Code && a.Where() == b.Where()
}

func writeDenial(w io.Writer, s style, x capability.Denial) {
	fmt.Fprintf(w, "           %s layer: %s\n", x.Layer, plain(x.Reason))
	if x.Remedy != "" {
		fmt.Fprintf(w, "           %s %s\n", s.bold("instead:"), plain(x.Remedy))
	}
	fmt.Fprintf(w, "           %s\n", s.faint(joined("  ", x.Rule, x.Where(), "["+string(x.Code)+"]")))
}

// denied prints a refusal of the policies and returns its exit status.
func (c *command) denied(e *admission.DeniedError) error {
	out := struct {
		WorkOrder workorder.ID        `json:"work_order"`
		Attempt   workorder.AttemptID `json:"attempt"`
		Decision  policy.Record       `json:"decision"`
	}{e.WorkOrder, e.Attempt, e.Decision}
	err := c.print(out, func(w io.Writer) {
		s := c.style()
		fmt.Fprintf(w, "\n%s  nothing was run\n\n", s.bad("denied"))
		writeDecision(w, s, e.Decision)
		section(w, s, "again", "writ explain "+string(e.Attempt))
		fmt.Fprintln(w)
	})
	if err != nil {
		return err
	}
	return concluded{e.Decision.Denials[0].Code.Exit()}
}

// explainOperation says what is known of one operation.
func (c *command) explainOperation(ctx context.Context, r *host.Reading, id string) error {
	key, err := operation.ParseKey(id)
	if err != nil {
		return err
	}
	s, _, err := r.Attempt(ctx, key.Scope())
	if err != nil {
		return err
	}
	o, ok := s.Operation(key)
	if !ok {
		return reason.New(reason.IDUnknown, "the attempt has no such operation", id, "list them with `writ receipts "+string(s.Attempt)+"`")
	}
	out := struct {
		Intent  operation.Intent  `json:"intent"`
		State   lifecycle.State   `json:"state"`
		Outcome operation.Outcome `json:"outcome"`
		Result  json.RawMessage   `json:"result"`
		Receipt canonical.Digest  `json:"receipt,omitempty"`
		Late    int               `json:"late_answers"`
		Micros  int64             `json:"elapsed_us"`
		Decided []decided         `json:"decided"`
	}{o.Intent, o.State, o.Record.Outcome, json.RawMessage("null"), "", o.Late, o.ElapsedMicros, nil}
	if len(o.Record.Outcome.Result) > 0 {
		// As a document of its own: inside the outcome it would be printed as base64.
		out.Result, out.Outcome.Result = json.RawMessage(o.Record.Outcome.Result), nil
	}
	if len(o.Record.Receipt) > 0 {
		out.Receipt = canonical.Sum(o.Record.Receipt)
	}
	found, err := events(ctx, r, []lifecycle.Subject{lifecycle.Of(kernel.OperationMachine, string(key))})
	if err != nil {
		return err
	}
	if out.Decided, err = decisions(ctx, r, found); err != nil {
		return err
	}
	return c.print(out, func(w io.Writer) {
		st := c.style()
		fmt.Fprintf(w, "\n%s  %s\n\n", st.bold(string(key)), meaning(o, len(out.Decided) > 0))
		section(w, st, "decided", decidedLines(out.Decided, st)...)
		section(w, st, "resource", o.Intent.Resource)
		section(w, st, "class", string(o.Intent.Class)+": "+classMeaning(o.Intent.Class))
		section(w, st, "digest", string(o.Intent.Digest))
		if out.Receipt != "" {
			section(w, st, "receipt", string(out.Receipt))
		}
		if d := o.Record.Outcome.Detail; d != "" {
			section(w, st, "why", plain(d))
		}
		if len(o.Record.Outcome.Result) > 0 {
			section(w, st, "result", plain(string(o.Record.Outcome.Result)))
		}
		fmt.Fprintln(w)
	})
}

func meaning(o kernel.Operation, decided bool) string {
	switch o.State {
	case "applied":
		if decided {
			return "took place, as a person found"
		}
		return "took place, in " + duration(o.ElapsedMicros)
	case "not_applied":
		if decided {
			return "did not take place, as a person found"
		}
		return "did not take place"
	case "unknown":
		return "may or may not have taken place"
	case "abandoned_unknown":
		return "may or may not have taken place: a person gave it up"
	}
	return "was begun, and its outcome is not known yet"
}

func classMeaning(c operation.EffectClass) string {
	switch c {
	case operation.ProviderIdempotent:
		return "asking again with the same key has no second effect"
	case operation.Reconcilable:
		return "whether it took place can be asked by name"
	}
	return "nobody can tell afterwards"
}
