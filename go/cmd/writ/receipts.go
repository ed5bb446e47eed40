package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

func (c *command) receiptsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "receipts ATTEMPT",
		Short: "List the receipts of an attempt",
		Long: "With --json prints each receipt and each domain result as it was recorded. Receipts are not\n" +
			"signed in this release; `writ verify` checks them against the journal's hash chain.",
		Args: exact("ATTEMPT"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.receipts(cmd.Context(), args[0]) },
	}
}

// receiptLine is one receipt.
type receiptLine struct {
	Name      string              `json:"name"`
	Operation operation.Key       `json:"operation"`
	Knowledge operation.Knowledge `json:"knowledge"`
	Code      reason.Code         `json:"code,omitempty"`
	Digest    canonical.Digest    `json:"digest"`
	Receipt   json.RawMessage     `json:"receipt"`
	Result    json.RawMessage     `json:"result"`
}

func (c *command) receipts(ctx context.Context, id string) error {
	r, err := host.Read(ctx, c.state)
	if err != nil {
		return err
	}
	defer r.Close()
	s, _, err := r.Attempt(ctx, id)
	if err != nil {
		return err
	}
	lines := receiptLines(s)
	return c.print(lines, func(w io.Writer) {
		if len(lines) == 0 {
			fmt.Fprintf(w, "%s has no receipts: no operation of it was begun.\n", s.Attempt)
			return
		}
		st := c.style()
		rows := [][]string{{st.faint("receipt"), st.faint("effect"), st.faint("digest"), st.faint("operation")}}
		for _, l := range lines {
			known := string(l.Knowledge)
			if known == "" {
				known = "not known yet"
			}
			if l.Code != "" {
				known += " (" + string(l.Code) + ")"
			}
			rows = append(rows, []string{l.Name, known, string(l.Digest), string(l.Operation)})
		}
		for _, line := range columns(rows) {
			fmt.Fprintln(w, line)
		}
	})
}

// receiptLines returns the receipts of an attempt in the order of its way.
func receiptLines(s kernel.State) []receiptLine {
	lines := []receiptLine{}
	operations := s.Operations()
	slices.SortStableFunc(operations, func(a, b kernel.Operation) int { return place(a.Intent.Kind) - place(b.Intent.Kind) })
	for _, o := range operations {
		l := receiptLine{Name: protocol.ReceiptName(o.Intent.Kind, o.Record.Outcome), Operation: o.Intent.Key, Receipt: json.RawMessage("null"), Result: json.RawMessage("null")}
		if len(o.Record.Receipt) > 0 {
			l.Knowledge, l.Code = o.Record.Outcome.Knowledge, o.Record.Outcome.Code
			l.Digest, l.Receipt = canonical.Sum(o.Record.Receipt), json.RawMessage(o.Record.Receipt)
		}
		if len(o.Record.Outcome.Result) > 0 {
			l.Result = json.RawMessage(o.Record.Outcome.Result)
		}
		lines = append(lines, l)
	}
	return lines
}
