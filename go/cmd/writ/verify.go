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
			"through the transition registry. Exit status 7 means that something is damaged; then nothing more is appended to\n" +
			"the journal until `writ recover`, unless another process has to be stopped first, which is said.",
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
	// Accepted is damage that a recorded recovery gave up.
	Accepted []journal.Damage
	// Recoveries are those that the journal records.
	Recoveries []evidence.Recovery
	// Halted says that the journal takes no appends; Unrecorded why that could not be made
	// so, although it should be.
	Halted     bool
	Unrecorded string
}

// MarshalJSON names the fields for a program.
func (v verification) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Turns      uint64           `json:"turns"`
		Events     uint64           `json:"events"`
		Attempts   int              `json:"attempts"`
		Receipts   int              `json:"receipts"`
		Blobs      uint64           `json:"blobs"`
		Collected  uint64           `json:"collected_blobs"`
		Files      int64            `json:"files"`
		Bytes      int64            `json:"file_bytes"`
		Chain      canonical.Digest `json:"chain,omitempty"`
		Intact     intact           `json:"intact"`
		Damage     []damageLine     `json:"damage"`
		Accepted   []damageLine     `json:"accepted"`
		Recoveries []recoveryLine   `json:"recoveries"`
		Halted     bool             `json:"halted"`
		Unrecorded string           `json:"unrecorded,omitempty"`
	}{
		v.Journal.Batches, v.Journal.Events, v.Attempts, v.Receipts, v.Journal.Blobs, v.Journal.Collected,
		v.Artifacts.Files, v.Artifacts.Bytes, v.Journal.Head, intact{v.Journal.Intact, v.Journal.IntactHead},
		damageLines(v.Damage), damageLines(v.Accepted), recoveryLines(v.Recoveries), v.Halted, v.Unrecorded,
	})
}

// intact is the last turn that is proven, and the chain after it.
type intact struct {
	Turn  uint64           `json:"turn"`
	Chain canonical.Digest `json:"chain,omitempty"`
}

// recoveryLine is one recovery, for a program.
type recoveryLine struct {
	Turn      uint64 `json:"turn"`
	After     uint64 `json:"after_turn"`
	LeftOut   uint64 `json:"left_out_turns"`
	Kept      string `json:"kept_file"`
	Principal string `json:"principal"`
	Reason    string `json:"reason"`
}

func recoveryLines(all []evidence.Recovery) []recoveryLine {
	out := []recoveryLine{}
	for _, r := range all {
		out = append(out, recoveryLine{r.Turn, r.Sequence, r.LeftOut, r.Kept.Name, r.Principal, r.Reason})
	}
	return out
}

// damageLine is one damage, for a program.
type damageLine struct {
	Turn      uint64           `json:"turn,omitempty"`
	Where     string           `json:"where"`
	What      string           `json:"what"`
	Artifact  canonical.Digest `json:"artifact,omitempty"`
	Tolerable bool             `json:"tolerable,omitempty"`
}

func damageLines(found []journal.Damage) []damageLine {
	out := []damageLine{}
	for _, d := range found {
		out = append(out, damageLine{d.Sequence, d.Where, d.What, d.Artifact, d.Tolerable})
	}
	return out
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
	v.Recoveries, err = evidence.Recoveries(ctx, r.Journal)
	damaged := func(d journal.Damage) { v.Damage = append(v.Damage, d) }
	if err != nil {
		damaged(journal.Damage{Where: "journal", What: err.Error()})
	}
	given := evidence.Lost(v.Recoveries)
	report := func(d journal.Damage) {
		if d.Artifact != "" && given[d.Artifact] {
			v.Accepted = append(v.Accepted, d)
			return
		}
		damaged(d)
	}
	if v.Journal, err = r.Journal.Verify(ctx, damaged); err != nil {
		return err
	}
	if v.Artifacts, err = r.Artifacts.Verify(ctx, report); err != nil {
		return err
	}
	if len(args) == 1 {
		_, row, err := r.Attempt(ctx, args[0])
		if err != nil {
			return err
		}
		v.Checked = evidence.Attempts(ctx, r.Journal, r.Artifacts, r.Kernel, []workorder.AttemptID{row.ID}, report)
	} else if v.Checked, err = evidence.All(ctx, r.Journal, r.Artifacts, r.Kernel, report); err != nil {
		return err
	}
	v.halt(ctx, r.Journal)
	if err := c.print(v, func(w io.Writer) { v.write(w, c.style()) }); err != nil {
		return err
	}
	if len(v.Damage) > 0 {
		return concluded{reason.ExitVerify}
	}
	return nil
}

// halt stops appends for good where something that was recorded is damaged.
func (v *verification) halt(ctx context.Context, j journal.Halter) {
	for _, d := range v.Damage {
		if d.Tolerable {
			continue
		}
		if err := j.Halt(ctx, d); err != nil {
			v.Unrecorded = "this was not recorded, and appends go on: " + err.Error()
			if refusal, ok := reason.As(err); ok {
				v.Unrecorded = "this was not recorded, and appends go on, because " + refusal.What
				if refusal.Code == reason.JournalLocked {
					v.Unrecorded += "; stop that process and run `writ verify` again"
				}
			}
			return
		}
		v.Halted = true
		return
	}
}

func (v verification) write(w io.Writer, s style) {
	writeDamage(w, s, v.Damage)
	for _, d := range v.Accepted {
		fmt.Fprintf(w, "%s  %s: %s\n", s.faint("accepted"), d.Where, plain(d.What))
	}
	for _, r := range recoveryLines(v.Recoveries) {
		fmt.Fprintf(w, "%s  after turn %d by %s, %s left out, the damaged file kept as %s: %s\n", s.faint("recovered"),
			r.After, plain(r.Principal), count(int64(r.LeftOut), "turn"), plain(r.Kept), plain(r.Reason))
	}
	verdict := s.good("verified")
	if len(v.Damage) > 0 {
		verdict = s.bad(fmt.Sprintf("%d damaged", len(v.Damage)))
	}
	fmt.Fprintf(w, "%s  %d turns, %d events, %d attempts, %d receipts, %d blobs, %d files\n", verdict,
		v.Journal.Batches, v.Journal.Events, v.Attempts, v.Receipts, v.Journal.Blobs, v.Artifacts.Files)
	switch {
	case len(v.Damage) > 0 && v.Journal.Intact > 0:
		fmt.Fprintf(w, "          intact up to turn %d\n          %s\n", v.Journal.Intact, s.faint("chain "+string(v.Journal.IntactHead)))
	case len(v.Damage) == 0 && v.Journal.Head != "":
		fmt.Fprintf(w, "          %s\n", s.faint("chain "+string(v.Journal.Head)))
	}
	switch {
	case v.Halted:
		fmt.Fprintf(w, "          nothing is appended any more; `writ recover` shows how to go on\n")
	case v.Unrecorded != "":
		fmt.Fprintf(w, "          %s\n", s.bad(plain(v.Unrecorded)))
	}
}

// writeDamage prints damage, a line each.
func writeDamage(w io.Writer, s style, found []journal.Damage) {
	for _, d := range found {
		where := d.Where
		if d.Sequence > 0 {
			where = fmt.Sprintf("turn %d, %s", d.Sequence, where)
		}
		fmt.Fprintf(w, "%s  %s: %s\n", s.bad("damaged"), plain(where), plain(d.What))
	}
}
