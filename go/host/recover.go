package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/evidence"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/schemas"
)

// Recovery is a state folder whose journal may be recovered. It holds the writer lock, and
// changes nothing before Accept.
type Recovery struct {
	// Found is everything that is wrong. What is Tolerable stays as it is.
	Found []journal.Damage
	// Sequence and Chain are those of the last intact turn.
	Sequence uint64
	Chain    canonical.Digest
	// LeftOut counts the turns that are not proven; Named are the attempts and work orders
	// that those of them name which can still be read.
	LeftOut uint64
	Named   []string
	// Lost are the artifacts whose bytes are gone, sorted, without those that an earlier
	// recovery gave up.
	Lost []canonical.Digest
	// Before are the recoveries that the journal records already.
	Before []evidence.Recovery

	state    string
	kernel   kernel.Kernel
	recovery *sqlite.Recovery
}

// Acceptance is what a person says to a damaged journal.
type Acceptance struct {
	Chain  canonical.Digest   `json:"chain"`
	Lost   []canonical.Digest `json:"lost"`
	Reason string             `json:"reason"`
}

// Recovered is a recovery that is durable.
type Recovered struct {
	kernel.Recovered
	// Turn is the turn that records it, Head the chain after it.
	Turn uint64           `json:"turn"`
	Head canonical.Digest `json:"head"`
}

// Recover looks at a state folder that may be damaged, and at what the intact part of its
// journal still accounts for.
func Recover(ctx context.Context, state, activity string) (_ *Recovery, err error) {
	k, err := kernel.Open(schemas.FS)
	if err != nil {
		return nil, err
	}
	r := &Recovery{state: state, kernel: k}
	damaged := func(d journal.Damage) { r.Found = append(r.Found, d) }
	if r.recovery, err = sqlite.Recover(ctx, state, activity, damaged); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	r.Sequence, r.Chain, r.LeftOut = r.recovery.Extent.Intact, r.recovery.Extent.IntactHead, r.recovery.LeftOut
	named := map[string]bool{}
	for _, s := range r.recovery.Named {
		switch s.Machine() {
		case kernel.WorkOrderMachine, kernel.AttemptMachine:
			named[s.ID()] = true
		}
	}
	r.Named = slices.Sorted(maps.Keys(named))
	if r.Before, err = evidence.Recoveries(ctx, r.recovery.Draft); err != nil {
		return nil, err
	}
	return r, r.artifacts(ctx, damaged)
}

// artifacts finds which artifacts the intact turns need and nobody has any more.
func (r *Recovery) artifacts(ctx context.Context, damaged func(journal.Damage)) error {
	store, err := artifact.Open(r.state, r.recovery.Draft, artifact.Options{})
	if err != nil {
		return err
	}
	if _, err := store.Verify(ctx, damaged); err != nil {
		return err
	}
	if _, err := evidence.All(ctx, r.recovery.Draft, store, r.kernel, damaged); err != nil {
		return err
	}
	given := evidence.Lost(r.Before)
	lost := map[canonical.Digest]bool{}
	var found []journal.Damage
	for _, d := range r.Found {
		if d.Artifact == "" || !given[d.Artifact] {
			found = append(found, d)
		}
		if d.Artifact == "" || given[d.Artifact] || lost[d.Artifact] {
			continue
		}
		// What the journal lost may still be a file, and the other way round.
		if body, err := store.Open(ctx, d.Artifact); err != nil || readable(body) != nil {
			lost[d.Artifact] = true
		}
	}
	r.Found, r.Lost = found, slices.Sorted(maps.Keys(lost))
	return nil
}

// readable reads a body to its end, where its digest is checked.
func readable(body io.ReadCloser) error {
	_, err := io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}

// Damaged reports whether anything is wrong that stops appends.
func (r *Recovery) Damaged() bool {
	return slices.ContainsFunc(r.Found, func(d journal.Damage) bool { return !d.Tolerable })
}

// Repeats returns the recovery that the acceptance repeats, or nil: the answer to it may
// have been lost.
func (r *Recovery) Repeats(a Acceptance) *evidence.Recovery {
	if n := len(r.Before); n > 0 && !r.Damaged() && r.Before[n-1].Chain == a.Chain && r.Before[n-1].Reason == a.Reason {
		return &r.Before[n-1]
	}
	return nil
}

// Halt makes durable that nothing is appended until a recovery is accepted.
func (r *Recovery) Halt(ctx context.Context) error {
	for _, d := range r.Found {
		if !d.Tolerable {
			return r.recovery.Halt(ctx, d)
		}
	}
	return nil
}

// Accept recovers the journal. The acceptance has to name the chain of the last intact turn
// and every lost artifact, no more and no less; and a reason. It refuses with journal.sound,
// journal.unaccepted and journal.accepts_other.
func (r *Recovery) Accept(ctx context.Context, a Acceptance) (Recovered, error) {
	if err := r.check(&a); err != nil {
		return Recovered{}, err
	}
	content, err := canonical.Marshal(a)
	if err != nil {
		return Recovered{}, err
	}
	gate, err := ownersGate(r.state)
	if err != nil {
		return Recovered{}, err
	}
	id, err := NewIDs().Mint(ingress.DeliveryPrefix)
	if err != nil {
		return Recovered{}, err
	}
	principal := ingress.Person(os.Getuid())
	accepted, err := gate.Accept(principal, ingress.Delivery{ID: string(id), Channel: "cli", Verb: ingress.Recover, Content: content})
	if err != nil {
		return Recovered{}, err
	}
	number := uint64(len(r.Before)) + 1
	out := Recovered{Recovered: kernel.Recovered{
		Sequence: r.Sequence, Chain: r.Chain, Found: uint64(len(r.Found)), LeftOut: r.LeftOut, Lost: a.Lost, Principal: principal, Reason: a.Reason,
	}}
	name := kernel.RecoveryPrefix + strconv.FormatUint(number, 10)
	result, err := r.recovery.Commit(ctx, "before-"+name, func(kept sqlite.Kept) (journal.Batch, error) {
		out.Kept = kernel.KeptFile{Name: kept.Name, Digest: kept.Digest, Size: kept.Bytes}
		d, err := r.kernel.Decide(kernel.State{}, kernel.Recover{Number: number, Recovered: out.Recovered, Ingress: accepted.Digest})
		if err != nil {
			return journal.Batch{}, err
		}
		identity, err := operation.NewKey(ledger.Namespace, kernel.JournalMachine, "ledger", "recover", name)
		return journal.Batch{
			Identity: identity, Actor: principal, Cause: string(id), At: clock{begun: time.Now()}.Now(),
			Events: d.Events, Blobs: []journal.Blob{accepted.Blob},
		}, err
	})
	out.Turn, out.Head = result.Sequence, result.Chain
	return out, err
}

// check holds an acceptance against what is there, and sorts it.
func (r *Recovery) check(a *Acceptance) error {
	a.Reason = strings.TrimSpace(a.Reason)
	slices.Sort(a.Lost)
	a.Lost = slices.Compact(a.Lost)
	switch {
	case !r.Damaged():
		return reason.New(reason.JournalSound, "nothing is damaged, so there is nothing to recover", r.state, "see `writ verify`")
	case a.Chain == "" || a.Reason == "":
		return reason.New(reason.JournalUnaccepted, "the journal stays halted: nobody has said what is accepted and why", r.state,
			"repeat it with --accept-chain "+string(r.Chain)+" and --reason, once you have looked at what is damaged")
	case a.Chain != r.Chain:
		return reason.New(reason.JournalAcceptsOther,
			fmt.Sprintf("the last intact turn is turn %d with chain %s, and %s is accepted", r.Sequence, r.Chain, a.Chain), r.state,
			"look again with `writ verify`, and accept what is there now")
	}
	for _, d := range r.Lost {
		if !slices.Contains(a.Lost, d) {
			return reason.New(reason.JournalUnaccepted, fmt.Sprintf("%d artifacts are lost, and this one is not accepted", len(r.Lost)), string(d),
				"name each with --accept-lost, or put its bytes back from a copy of the state folder")
		}
	}
	for _, d := range a.Lost {
		if !slices.Contains(r.Lost, d) {
			return reason.New(reason.JournalAcceptsOther, "this artifact is not lost", string(d), "leave it out of --accept-lost")
		}
	}
	return nil
}

// Close gives the writer lock back.
func (r *Recovery) Close() error { return r.recovery.Close() }
