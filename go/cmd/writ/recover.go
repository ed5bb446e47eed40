package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/reason"
)

func (c *command) recoverCommand() *cobra.Command {
	var chain, why string
	var lost []string
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Have a damaged journal go on, once somebody says what is accepted",
		Long: "Shows what is damaged, like verify, and what can be kept. With --accept-chain and --reason it has the journal go on\n" +
			"after its last intact turn: intact turns are copied into a new journal, its indexes are made anew from them, and\n" +
			"its first new turn records who accepted what and why. The damaged journal stays beside it, whole, as\n" +
			"journal.before-recovery-N.db. An artifact whose bytes are gone stays gone, and each has to be named with\n" +
			"--accept-lost. Killed at any moment, it leaves the old journal or the new one.",
		Args: exact(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.recover(cmd.Context(), chain, lost, strings.TrimSpace(why))
		},
	}
	cmd.Flags().StringVar(&chain, "accept-chain", "", "the chain of the last intact turn, as verify and recover print it")
	cmd.Flags().StringArrayVar(&lost, "accept-lost", nil, "the digest of an artifact whose bytes are gone; once for each")
	cmd.Flags().StringVar(&why, "reason", "", "why it is accepted, in a sentence that is recorded")
	return cmd
}

// recoveryPlan is what `writ recover` shows before anything is accepted.
type recoveryPlan struct {
	Damage  []damageLine       `json:"damage"`
	Intact  intact             `json:"intact"`
	LeftOut uint64             `json:"left_out"`
	Named   []string           `json:"named_by_left_out"`
	Lost    []canonical.Digest `json:"lost"`
}

// recovered is what it prints of a recovery.
type recovered struct {
	host.Recovered
	// Replayed says that it had been recorded before.
	Replayed bool `json:"replayed"`
}

func (c *command) recover(ctx context.Context, chain string, lost []string, why string) (err error) {
	a := host.Acceptance{Lost: []canonical.Digest{}, Reason: why}
	if chain != "" {
		if a.Chain, err = digestFlag("accept-chain", chain); err != nil {
			return err
		}
	}
	for _, text := range lost {
		d, err := digestFlag("accept-lost", text)
		if err != nil {
			return err
		}
		a.Lost = append(a.Lost, d)
	}
	r, err := host.Recover(ctx, c.state, "writ recover")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if before := r.Repeats(a); before != nil {
		out := recovered{host.Recovered{Recovered: before.Recovered, Turn: before.Turn, Head: r.Chain}, true}
		return c.print(out, func(w io.Writer) { out.write(w, c.style()) })
	}
	done, err := r.Accept(ctx, a)
	if err == nil {
		out := recovered{Recovered: done}
		return c.print(out, func(w io.Writer) { out.write(w, c.style()) })
	}
	if !reason.Is(err, reason.JournalUnaccepted) && !reason.Is(err, reason.JournalAcceptsOther) {
		return err
	}
	// It is damaged, and nobody has accepted that.
	if herr := r.Halt(ctx); herr != nil {
		err = errors.Join(err, herr)
	}
	plan := newRecoveryPlan(r)
	if perr := c.print(plan, func(w io.Writer) { writePlan(w, c.style(), r) }); perr != nil {
		return perr
	}
	return err
}

func digestFlag(name, value string) (canonical.Digest, error) {
	d, err := canonical.ParseDigest(value)
	if err != nil {
		return "", reason.New(reason.UsageInvalid, "--"+name+" is no digest", value, "write sha256: and 64 hexadecimal digits, as `writ recover` prints it")
	}
	return d, nil
}

func newRecoveryPlan(r *host.Recovery) recoveryPlan {
	p := recoveryPlan{Damage: damageLines(r.Found), Intact: intact{r.Sequence, r.Chain}, LeftOut: r.LeftOut, Named: r.Named, Lost: r.Lost}
	if p.Named == nil {
		p.Named = []string{}
	}
	if p.Lost == nil {
		p.Lost = []canonical.Digest{}
	}
	return p
}

func writePlan(w io.Writer, s style, r *host.Recovery) {
	writeDamage(w, s, r.Found)
	fmt.Fprintln(w)
	section(w, s, "keeps", fmt.Sprintf("%s, up to chain %s", count(int64(r.Sequence), "intact turn"), r.Chain))
	if r.LeftOut > 0 {
		lines := []string{fmt.Sprintf("%s after that, which nothing proves; they stay in the damaged file", count(int64(r.LeftOut), "turn"))}
		if len(r.Named) > 0 {
			lines = append(lines, "what can be read of them is about")
			lines = append(lines, few(r.Named, "writ recover --json lists them all")...)
		}
		section(w, s, "leaves", lines...)
	}
	var lost []string
	for _, d := range r.Lost {
		lost = append(lost, string(d))
	}
	section(w, s, "lost", few(lost, "writ recover --json lists them all")...)
	line := "writ recover --accept-chain " + string(r.Chain)
	for _, d := range r.Lost {
		line += " --accept-lost " + string(d)
	}
	section(w, s, "to accept", line+" --reason '…'")
	fmt.Fprintln(w)
}

func (r recovered) write(w io.Writer, s style) {
	word := "recovered"
	if r.Replayed {
		word = "recovered before"
	}
	fmt.Fprintf(w, "%s  the journal goes on after turn %d; turn %d records by whom and why\n", s.good(word), r.Sequence, r.Turn)
	if r.LeftOut > 0 {
		fmt.Fprintf(w, "           %s left out\n", count(int64(r.LeftOut), "turn"))
	}
	if n := len(r.Lost); n > 0 {
		fmt.Fprintf(w, "           %s given up\n", count(n, "artifact"))
	}
	fmt.Fprintf(w, "           the damaged journal is kept as %s\n", r.Kept.Name)
	fmt.Fprintf(w, "           %s\n", s.faint("chain "+string(r.Head)))
}
