package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/evidence"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
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
	evidence.Checked
	Damage []journal.Damage
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
	r, err := host.Read(ctx, c.state)
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
	if v.Journal, err = r.Journal.Verify(ctx, damaged); err != nil {
		return err
	}
	if v.Artifacts, err = r.Artifacts.Verify(ctx, damaged); err != nil {
		return err
	}
	ids, err := attempts(ctx, r, args, damaged)
	if err != nil {
		return err
	}
	v.Checked = evidence.Attempts(ctx, r.Journal, r.Artifacts, r.Kernel, ids, damaged)
	if err := c.print(v, func(w io.Writer) { v.write(w, c.style()) }); err != nil {
		return err
	}
	if len(v.Damage) > 0 {
		return concluded{reason.ExitVerify}
	}
	return nil
}

// attempts are those that the arguments name, or all. An index that cannot be built is
// damage.
func attempts(ctx context.Context, r *host.Reading, args []string, damaged func(journal.Damage)) ([]workorder.AttemptID, error) {
	index, err := r.Index(ctx)
	if err != nil {
		damaged(journal.Damage{Where: "index", What: err.Error()})
		return nil, nil
	}
	if len(args) == 1 {
		_, row, err := r.Attempt(ctx, args[0])
		return []workorder.AttemptID{row.ID}, err
	}
	var ids []workorder.AttemptID
	for _, row := range index.Attempts {
		ids = append(ids, row.ID)
	}
	return ids, nil
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
