// Command hashchain hashes an input over and over, and writes what comes out to chain.json: a proof that so many
// rounds were computed, and the smallest work that takes long.
//
// It is a reference tool of Writ, and the example of one that checkpoints: every so many rounds it offers how far it has
// come in /checkpoint/next.json, where there is such a file, and goes on from /inputs/checkpoint/last.json, where that is
// given. The chain is the same either way; only the count of rounds that this run computed itself differs.
//
//	hashchain --input seed [--rounds 1000000] [--every 100000]
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The places at which Writ gives and takes checkpoints.
const (
	last = "/inputs/checkpoint/last.json"
	next = "/checkpoint/next.json"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "hashchain: %v\n", err)
		os.Exit(1)
	}
}

// progress is a checkpoint of kind writ.checkpoint.tool_progress.v1. Its fields stand in the order of their names, which
// is that of canonical JSON.
type progress struct {
	Kind          string `json:"kind"`
	NextAction    string `json:"next_action"`
	Position      int64  `json:"position"`
	State         state  `json:"state"`
	StopCondition string `json:"stop_condition"`
}

// state is the chain after as many rounds as the position says, and the seed that it began with.
type state struct {
	Digest string `json:"digest"`
	Seed   string `json:"seed"`
}

// result is what chain.json holds.
type result struct {
	Rounds int64  `json:"rounds"`
	Digest string `json:"digest"`
	// Computed counts the rounds of this run, StartedAt those that a checkpoint covered.
	Computed  int64 `json:"computed"`
	StartedAt int64 `json:"started_at"`
}

func run(args []string) error {
	flags := flag.NewFlagSet("hashchain", flag.ContinueOnError)
	input := flags.String("input", "seed", "name of the input to begin with")
	rounds := flags.Int64("rounds", 1_000_000, "how many times to hash, 1 or more")
	every := flags.Int64("every", 100_000, "after how many rounds to offer a checkpoint, 1 or more")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *rounds < 1 || *every < 1:
		return fmt.Errorf("--rounds is %d and --every is %d; both have to be 1 or more", *rounds, *every)
	case !filepath.IsLocal(*input):
		return fmt.Errorf("--input is %q, which is no name of an input", *input)
	}
	seed, err := digest(os.DirFS(filepath.Join("/inputs", *input)))
	if err != nil {
		return fmt.Errorf("read input %s: %w", *input, err)
	}
	chain, from, err := begin(seed, *rounds)
	if err != nil {
		return err
	}
	for round := from + 1; round <= *rounds; round++ {
		chain = sha256.Sum256(chain[:])
		if round%*every == 0 && round < *rounds {
			if err := offer(seed, chain, round, *rounds); err != nil {
				return err
			}
		}
	}
	data, err := json.Marshal(result{Rounds: *rounds, Digest: hex.EncodeToString(chain[:]), Computed: *rounds - from, StartedAt: from})
	if err != nil {
		return err
	}
	if err := os.WriteFile("chain.json", append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	fmt.Printf("%d rounds, %d of them from a checkpoint\n", *rounds, from)
	return nil
}

// digest is the SHA-256 over the digests of all files, in the order of their names.
func digest(files fs.FS) (sum [sha256.Size]byte, err error) {
	all := sha256.New()
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		one := sha256.Sum256(data)
		all.Write(one[:])
		return err
	})
	return [sha256.Size]byte(all.Sum(nil)), err
}

// begin returns the chain and the round that it stands at: those of the checkpoint, if one is given.
func begin(seed [sha256.Size]byte, rounds int64) (chain [sha256.Size]byte, from int64, err error) {
	data, err := os.ReadFile(last)
	if errors.Is(err, fs.ErrNotExist) {
		return seed, 0, nil
	}
	if err != nil {
		return chain, 0, fmt.Errorf("read checkpoint: %w", err)
	}
	var p progress
	if err := json.Unmarshal(data, &p); err != nil {
		return chain, 0, fmt.Errorf("read checkpoint: %w", err)
	}
	raw, err := hex.DecodeString(p.State.Digest)
	if err != nil || len(raw) != sha256.Size || p.State.Seed != hex.EncodeToString(seed[:]) || p.Position < 1 || p.Position > rounds {
		return chain, 0, errors.New("the checkpoint is of another chain")
	}
	return [sha256.Size]byte(raw), p.Position, nil
}

// offer offers a checkpoint. Where none are taken there is no file to write, and nothing is lost.
func offer(seed, chain [sha256.Size]byte, round, rounds int64) error {
	data, err := json.Marshal(progress{
		Kind: "writ.checkpoint.tool_progress.v1", NextAction: fmt.Sprintf("hash round %d", round+1), Position: round,
		State: state{hex.EncodeToString(chain[:]), hex.EncodeToString(seed[:])}, StopCondition: fmt.Sprintf("%d rounds are hashed", rounds),
	})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("offer checkpoint: %w", err)
	}
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("offer checkpoint: %w", errors.Join(err, f.Close()))
	}
	return f.Close()
}
