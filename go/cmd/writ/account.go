package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/dispatcher"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
)

// account is what `writ run` says about one attempt.
type account struct {
	WorkOrder   workorder.ID             `json:"work_order"`
	Attempt     workorder.AttemptID      `json:"attempt"`
	Title       string                   `json:"title"`
	Conclusion  workorder.Conclusion     `json:"conclusion"`
	Result      *workorder.Result        `json:"result"`
	Bundle      canonical.Digest         `json:"bundle"`
	Mode        capability.Mode          `json:"mode"`
	Role        string                   `json:"role"`
	Environment string                   `json:"environment"`
	Isolation   string                   `json:"isolation_class"`
	Executor    string                   `json:"executor"`
	Tool        string                   `json:"tool"`
	ToolVersion string                   `json:"tool_version"`
	ToolDigest  canonical.Digest         `json:"tool_digest"`
	Inputs      []inputLine              `json:"inputs"`
	Allowed     []allowance              `json:"allowed"`
	Outputs     []protocol.ArtifactEntry `json:"outputs"`
	Omitted     []protocol.Exclusion     `json:"omitted"`
	Proposals   []proposal               `json:"proposals"`
	Kept        *kept                    `json:"kept"`
	Steps       []step                   `json:"steps"`
	Receipts    int                      `json:"receipts"`
	State       string                   `json:"state"`
	Waits       string                   `json:"waits,omitempty"`
}

type inputLine struct {
	Name  string `json:"name"`
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
}

// allowance is one effective grant and the rules that allow it.
type allowance struct {
	Action   string `json:"action"`
	Resource string `json:"resource"`
	// Rules are the rules that allow it, one for each layer; Why is what the first says.
	Rules []string `json:"rules"`
	Why   string   `json:"why"`
}

type step struct {
	Operation operation.Key       `json:"operation"`
	Kind      operation.Kind      `json:"kind"`
	Knowledge operation.Knowledge `json:"knowledge"`
	Micros    int64               `json:"elapsed_us"`
	Receipt   canonical.Digest    `json:"receipt"`
}

// account prints what came of an attempt. Its error is the exit status of one that did
// not succeed.
func (c *command) account(ctx context.Context, h *host.Host, s kernel.State, a *admission.Admitted, sent map[string]dispatcher.Sent) error {
	acc := newAccount(s, a.Decision)
	acc.Proposals = newProposals(s, sent)
	acc.State, acc.Kept = c.state, newKept(c.state, s)
	if plan, err := h.Ledger.Kernel().Next(s); err == nil {
		acc.Waits = plan.Wait
	}
	manifest, err := environment.ReadManifest(ctx, h.Artifacts, s)
	if err != nil {
		return err
	}
	acc.Outputs, acc.Omitted = manifest.Entries, manifest.Omitted
	if err := c.print(acc, func(w io.Writer) { acc.write(w, c.style()) }); err != nil {
		return err
	}
	if acc.Conclusion != workorder.Succeeded {
		return concluded{exitOf(s)}
	}
	return unsent(acc.Proposals)
}

// newAccount gathers what the state and the decision say.
func newAccount(s kernel.State, d policy.Record) *account {
	b := s.Bundle.Bundle()
	var w workorder.WorkOrder
	// The order was read before it was recorded.
	_ = canonical.Decode(s.Order.Order, &w)
	acc := &account{
		WorkOrder: s.WorkOrder, Attempt: s.Attempt, Title: w.Title, Result: s.Result, Bundle: s.Bundle.Digest(),
		Mode: b.Mode, Role: w.Role, Environment: b.Environment.Provider.Name, Isolation: b.Environment.Isolation,
		Executor: b.Pins.Adapter.Name, Tool: b.Execution.Tool,
	}
	if s.Result != nil {
		acc.Conclusion = s.Result.Conclusion
	}
	for _, t := range b.Pins.Tools {
		if t.Name == acc.Tool {
			acc.ToolVersion, acc.ToolDigest = t.Version, t.Digest
		}
	}
	for _, in := range b.Inputs.Inputs {
		files, bytes := protocol.InputManifest{Inputs: []protocol.InputMount{in}}.Totals()
		acc.Inputs = append(acc.Inputs, inputLine{in.Name, files, bytes})
	}
	for _, g := range b.Grants {
		rules, why := d.Allowing(g)
		acc.Allowed = append(acc.Allowed, allowance{g.Action, g.Resource.String(), rules, why})
	}
	for _, o := range s.Operations() {
		if o.Intent.Kind.OfOutbox() {
			continue
		}
		acc.Steps = append(acc.Steps, step{
			Operation: o.Intent.Key, Kind: o.Intent.Kind, Knowledge: o.Record.Outcome.Knowledge,
			Micros: o.ElapsedMicros, Receipt: canonical.Sum(o.Record.Receipt),
		})
	}
	acc.Receipts = len(s.Operations())
	slices.SortStableFunc(acc.Steps, func(a, b step) int { return place(a.Kind) - place(b.Kind) })
	return acc
}

// place orders the steps as they follow each other.
func place(k operation.Kind) int {
	return slices.Index([]operation.Kind{
		operation.Provision, operation.Materialize, operation.Prepare, operation.Start, operation.Launch, operation.Checkpoint,
		operation.Freeze, operation.Collect, operation.Cancel, operation.Cleanup, operation.Destroy,
	}, k)
}

func (a *account) write(w io.Writer, s style) {
	verdict := s.bad(string(a.Conclusion))
	if a.Conclusion == workorder.Succeeded {
		verdict = s.good(string(a.Conclusion))
	}
	fmt.Fprintf(w, "\n%s  %s\n\n", s.bold(plain(a.Title)), verdict)
	if a.Result != nil && a.Conclusion != workorder.Succeeded {
		section(w, s, "why", why(*a.Result, s)...)
	}
	section(w, s, "ran", fmt.Sprintf("%s %s by %s, in %s (%s)", a.Tool, a.ToolVersion, a.Executor, a.Environment, a.Isolation),
		fmt.Sprintf("role %s, mode %s", a.Role, a.Mode))
	var inputs []string
	for _, in := range a.Inputs {
		inputs = append(inputs, fmt.Sprintf("%s: %s, %s", in.Name, count(in.Files, "file"), size(in.Bytes)))
	}
	section(w, s, "read", inputs...)
	section(w, s, "allowed", few(a.allowed(s), "writ explain "+string(a.Attempt))...)
	var outputs [][]string
	for _, o := range a.Outputs {
		outputs = append(outputs, []string{s.bold(plain(o.Path)), size(o.Size), o.MediaType, s.faint(short(string(o.Digest)))})
	}
	section(w, s, "produced", few(columns(outputs), "writ artifacts list "+string(a.Attempt))...)
	section(w, s, "left", a.left()...)
	section(w, s, "sent", proposalLines(a.Proposals, s)...)
	section(w, s, "kept", a.Kept.lines(s)...)
	var steps []string
	checkpoints := 0
	for i, st := range a.Steps {
		if st.Kind == operation.Checkpoint {
			if checkpoints++; i+1 == len(a.Steps) || a.Steps[i+1].Kind != operation.Checkpoint {
				steps = append(steps, count(int64(checkpoints), "checkpoint"))
			}
			continue
		}
		text := fmt.Sprintf("%s %s", st.Kind, duration(st.Micros))
		if st.Knowledge != operation.Applied {
			text += " (" + string(st.Knowledge) + ")"
		}
		steps = append(steps, text)
	}
	section(w, s, "steps", wrap(steps, 78)...)
	section(w, s, "receipts", fmt.Sprintf("%d in %s", a.Receipts, a.State),
		"writ receipts "+string(a.Attempt), "writ explain "+string(a.Attempt))
	if a.Waits != "" {
		section(w, s, "waits", a.Waits)
	}
	fmt.Fprintln(w)
}

// left lists what did not leave the environment.
func (a *account) left() []string {
	if len(a.Omitted) == 0 {
		return nil
	}
	var paths []string
	for _, o := range a.Omitted {
		paths = append(paths, plain(o.Path))
	}
	lines := few(paths, "writ run --json lists them all")
	verb := "was"
	if len(a.Omitted) > 1 {
		verb = "were"
	}
	return append(lines, verb+" not declared and did not leave the environment; declare under outputs.paths what to keep")
}

// why renders the reason of a result: what, how to mend it, and the code and step.
func why(r workorder.Result, s style) []string {
	lines := []string{plain(r.Detail)}
	if r.Remedy != "" {
		lines = append(lines, plain(r.Remedy))
	}
	return append(lines, s.faint(joined(", at ", string(r.Code), r.Stage)))
}

// allowed renders the grants, those of one action and reason in one line.
func (a *account) allowed(s style) []string {
	var rows [][]string
	for i, g := range a.Allowed {
		resource := g.Resource
		if resource == "none" {
			resource = ""
		}
		if i > 0 && a.Allowed[i-1].Action == g.Action && a.Allowed[i-1].Why == g.Why {
			rows[len(rows)-1][1] += ", " + resource
			continue
		}
		rows = append(rows, []string{g.Action, resource, s.faint(g.Why)})
	}
	return columns(rows)
}

// wrap joins items by " · " into lines of at most width.
func wrap(items []string, width int) []string {
	var lines []string
	line := ""
	for _, item := range items {
		switch {
		case line == "":
			line = item
		case len(line)+3+len(item) > width:
			lines = append(lines, line)
			line = item
		default:
			line += " · " + item
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// tellClosed says on standard error what became of an attempt of an earlier life.
func (c *command) tellClosed(one dispatcher.Closed) {
	var said []string
	if r := one.State.Result; r != nil {
		said = append(said, "ended "+string(r.Conclusion))
	}
	switch {
	case one.Err != nil:
		said = append(said, "could not be closed: "+one.Err.Error())
	case one.Waits != "":
		said = append(said, "waits for "+one.Waits)
	case one.State.Retry != nil:
		said = append(said, "`writ tick` makes another attempt")
	}
	how := strings.Join(said, ", and ")
	fmt.Fprintf(c.errs, "writ: an earlier start left %s open; it %s (writ explain %s)\n", one.Attempt, how, one.Attempt)
}
