package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

func (c *command) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [ATTEMPT]",
		Short: "Check the journal, every receipt and every stored byte",
		Long: "Walks the whole hash chain, every digest, index and blob, and replays every attempt, or the one that is named,\n" +
			"through the transition registry. Exit status 7 means that something is damaged.",
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.verify(cmd.Context(), args) },
	}
}

// verification is what `writ verify` found.
type verification struct {
	Journal   journal.Extent
	Artifacts artifact.Extent
	Attempts  int
	Receipts  int
	Damage    []journal.Damage
}

// MarshalJSON names the fields for a program.
func (v verification) MarshalJSON() ([]byte, error) {
	type damage struct {
		Turn  uint64 `json:"turn,omitempty"`
		Where string `json:"where"`
		What  string `json:"what"`
	}
	found := []damage{}
	for _, d := range v.Damage {
		found = append(found, damage{d.Sequence, d.Where, d.What})
	}
	return json.Marshal(struct {
		Turns     uint64           `json:"turns"`
		Events    uint64           `json:"events"`
		Attempts  int              `json:"attempts"`
		Receipts  int              `json:"receipts"`
		Blobs     uint64           `json:"blobs"`
		Collected uint64           `json:"collected_blobs"`
		Files     int64            `json:"files"`
		Bytes     int64            `json:"file_bytes"`
		Chain     canonical.Digest `json:"chain,omitempty"`
		Damage    []damage         `json:"damage"`
	}{
		v.Journal.Batches, v.Journal.Events, v.Attempts, v.Receipts, v.Journal.Blobs, v.Journal.Collected,
		v.Artifacts.Files, v.Artifacts.Bytes, v.Journal.Head, found,
	})
}

func (c *command) verify(ctx context.Context, args []string) error {
	r, err := c.openReading(ctx)
	if reason.Is(err, reason.JournalMissing) && len(args) == 0 {
		return c.print(verification{Damage: []journal.Damage{}}, func(w io.Writer) {
			fmt.Fprintf(w, "Nothing has run in %s yet, so there is nothing to verify.\n", c.state)
		})
	}
	if err != nil {
		return err
	}
	defer r.Close()
	v := verification{Damage: []journal.Damage{}}
	damaged := func(d journal.Damage) { v.Damage = append(v.Damage, d) }
	if v.Journal, err = r.journal.Verify(ctx, damaged); err != nil {
		return err
	}
	if v.Artifacts, err = r.artifacts.Verify(ctx, damaged); err != nil {
		return err
	}
	if err := v.attempts(ctx, r, args, damaged); err != nil {
		return err
	}
	if err := c.print(v, func(w io.Writer) { v.write(w, c.style()) }); err != nil {
		return err
	}
	if len(v.Damage) > 0 {
		return concluded{reason.ExitVerify}
	}
	return nil
}

// attempts replays attempts from the journal alone. What cannot be replayed is damage.
func (v *verification) attempts(ctx context.Context, r *reading, args []string, damaged func(journal.Damage)) error {
	index, err := r.index(ctx)
	if err != nil {
		damaged(journal.Damage{Where: "index", What: err.Error()})
		return nil
	}
	rows := index.Attempts
	if len(args) == 1 {
		_, row, err := r.attempt(ctx, args[0])
		if err != nil {
			return err
		}
		rows = rows[:0]
		rows = append(rows, row)
	}
	for _, row := range rows {
		v.Attempts++
		s, err := ledger.Load(ctx, r.journal, r.kernel, row.ID)
		if err != nil {
			damaged(journal.Damage{Where: string(row.ID), What: err.Error()})
			continue
		}
		for _, o := range s.Operations() {
			if len(o.Record.Receipt) == 0 {
				continue
			}
			v.Receipts++
			if err := checkReceipt(s, o); err != nil {
				damaged(journal.Damage{Where: string(o.Intent.Key), What: err.Error()})
			}
		}
		for name, d := range documents(s) {
			if !d.Valid() {
				continue
			}
			if _, err := r.artifacts.Read(ctx, d, maxDocument); err != nil {
				damaged(journal.Damage{Where: string(row.ID), What: name + ": " + err.Error()})
			}
		}
		v.outputs(ctx, r, s, damaged)
	}
	return nil
}

// documents are what an attempt names by digest, and is not understood without.
func documents(s kernel.State) map[string]canonical.Digest {
	fixed := s.Reserved.Digests
	named := map[string]canonical.Digest{
		"policy decision": s.Evidence("PolicyDecision"), "ingress receipt": s.Evidence("IngressReceipt"),
		"role package": fixed.Role, "context package": fixed.Context, "prompt": fixed.Prompt, "requested actions": fixed.Grant,
	}
	if s.Bundle != nil {
		named["output schema"] = s.Bundle.Bundle().Outputs.Schema
	}
	return named
}

// outputs checks that every frozen output is still there.
func (v *verification) outputs(ctx context.Context, r *reading, s kernel.State, damaged func(journal.Damage)) {
	m, err := manifestOf(ctx, r.artifacts, s)
	if err != nil {
		damaged(journal.Damage{Where: string(s.Attempt), What: err.Error()})
		return
	}
	for _, e := range m.Entries {
		if _, err := r.artifacts.Read(ctx, e.Digest, e.Size); err != nil {
			damaged(journal.Damage{Where: string(s.Attempt) + " " + e.Path, What: err.Error()})
		}
	}
}

// checkReceipt holds a receipt against the intent, result and bundle that it is for.
func checkReceipt(s kernel.State, o kernel.Operation) error {
	var r protocol.Receipt
	if err := canonical.Decode(o.Record.Receipt, &r); err != nil {
		return err
	}
	in, out := o.Intent, o.Record.Outcome
	var result canonical.Digest
	if len(out.Result) > 0 {
		result = canonical.Sum(out.Result)
	}
	for _, part := range []struct {
		name string
		same bool
	}{
		{"operation key", r.Operation == in.Key}, {"collision digest", r.Digest == in.Digest}, {"parent", r.Parent == in.Parent},
		{"effect class", r.Class == in.Class}, {"resource", r.Resource == in.Resource}, {"knowledge", r.Knowledge == out.Knowledge},
		{"result", r.Result == result}, {"claim", r.Claim == out.Claim}, {"reason", r.Code == out.Code},
		{"bundle", r.Bundle == s.Bundle.Digest()}, {"attempt", r.Attempt == s.Attempt}, {"name", r.Name == in.Kind.ReceiptName()},
	} {
		if !part.same {
			return fmt.Errorf("the receipt names another %s than was recorded", part.name)
		}
	}
	return nil
}

func (v verification) write(w io.Writer, s style) {
	for _, d := range v.Damage {
		where := d.Where
		if d.Sequence > 0 {
			where = fmt.Sprintf("turn %d, %s", d.Sequence, where)
		}
		fmt.Fprintf(w, "%s  %s: %s\n", s.bad("damaged"), where, d.What)
	}
	verdict := s.good("verified")
	if len(v.Damage) > 0 {
		verdict = s.bad(fmt.Sprintf("%d damaged", len(v.Damage)))
	}
	fmt.Fprintf(w, "%s  %d turns, %d events, %d attempts, %d receipts, %d blobs, %d files\n", verdict,
		v.Journal.Batches, v.Journal.Events, v.Attempts, v.Receipts, v.Journal.Blobs, v.Artifacts.Files)
	if v.Journal.Head != "" {
		fmt.Fprintf(w, "          %s\n", s.faint("chain "+string(v.Journal.Head)))
	}
}
