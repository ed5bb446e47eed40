package outbox

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// MediaType is that of a proposal in the store.
const MediaType = "application/vnd.writ.effect-proposal+json"

// Compose makes the proposals that the bundle of an attempt orders, of the outputs that
// were frozen and collected, each of the class that classOf has for it. observed becomes the date of the effects. The documents go
// with the turn that accepts the result. It refuses, with outbox.proposal_invalid, a
// proposal for which nothing was frozen.
func Compose(ctx context.Context, store *artifact.Store, classOf func(operation.Kind) operation.EffectClass, s kernel.State, m protocol.ArtifactManifest, observed lifecycle.Observation) ([]kernel.Proposal, []journal.Blob, error) {
	var (
		all   []kernel.Proposal
		blobs []journal.Blob
	)
	for _, ordered := range s.Bundle.Bundle().Proposals {
		p, err := compose(s, ordered, m, observed)
		if err != nil {
			return nil, nil, err
		}
		raw, err := canonical.Marshal(p)
		if err != nil {
			return nil, nil, err
		}
		ref, blob, err := store.Put(ctx, bytes.NewReader(raw), int64(len(raw)), MediaType)
		if err != nil {
			return nil, nil, err
		}
		if blob != nil {
			blobs = append(blobs, *blob)
		}
		all = append(all, kernel.Proposal{Purpose: p.Purpose, Proposed: kernel.Proposed{
			Attempt: p.Attempt, Kind: p.Effector, Class: classOf(p.Effector), Destination: p.Destination, Content: ref.Digest,
		}})
	}
	return all, blobs, nil
}

func compose(s kernel.State, ordered workorder.Proposal, m protocol.ArtifactManifest, observed lifecycle.Observation) (Proposal, error) {
	p, err := draft(ordered)
	if err != nil {
		return Proposal{}, err
	}
	result, err := s.Collected()
	if err != nil {
		return Proposal{}, err
	}
	p.Attempt, p.Manifest, p.Observed = s.Attempt, result.Manifest, observed
	if p.Result, err = canonical.DigestOf(result); err != nil {
		return Proposal{}, err
	}
	reduction, err := canonical.DigestOf(s.Reduces(p.Result))
	if err != nil {
		return Proposal{}, err
	}
	p.Receipts = []lifecycle.Guard{
		{Name: operation.Collect.ReceiptName(), Digest: s.Evidence(operation.Collect.ReceiptName())}, {Name: "ReductionReceipt", Digest: reduction},
	}
	policy := s.Bundle.Bundle().Outputs.Policy
	for _, e := range m.Entries {
		declared, ok := policy.Match(e.Path)
		if ok && slices.Contains(ordered.Files, declared.Path) {
			p.Files = append(p.Files, File{Path: e.Path, Digest: e.Digest, Size: e.Size, Executable: e.Executable})
		}
	}
	slices.SortFunc(p.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	if len(p.Files) == 0 {
		return Proposal{}, invalid(fmt.Sprintf("%s names %s, and the tool wrote none of it", p.Purpose, strings.Join(ordered.Files, ", ")), "proposals/"+p.Purpose,
			"have the tool write it, or declare it required")
	}
	return p, p.Check()
}

// draft is a proposal as an order has it, without what only a result brings.
func draft(o workorder.Proposal) (Proposal, error) {
	p := Proposal{Kind: ProposalKind, Purpose: o.Purpose, Effector: o.Effector, Base: o.Base, Title: o.Title, Message: o.Message}
	var err error
	if p.Destination, err = capability.ParseScope(o.Destination); err != nil {
		return Proposal{}, err
	}
	if o.Repository != "" {
		p.Repository, err = capability.ParseScope(o.Repository)
	}
	return p, err
}

// CheckOrdered refuses, with outbox.proposal_invalid, an order of a proposal that could
// never be carried out, whatever the result.
func CheckOrdered(o workorder.Proposal) error {
	p, err := draft(o)
	if err != nil {
		return err
	}
	if !plainPurpose(p.Purpose) {
		return invalid("its purpose is no plain name", "purpose", "use 1 to 63 of a-z, 0-9, '_' and '-', and begin with a letter or digit")
	}
	if err := p.checkWhere(); err != nil {
		return err
	}
	return p.checkWords()
}

// Reaches refuses an order of a proposal that leads nowhere on this host:
// outbox.unknown_destination, or outbox.git_missing where git is needed.
func (b *Outbox) Reaches(o workorder.Proposal) error {
	p, err := draft(o)
	if err != nil {
		return err
	}
	if b, err = b.now(); err != nil {
		return err
	}
	type wanted struct {
		among []Destination
		at    capability.Scope
	}
	places := []wanted{{b.destinations.Repositories, p.Repository}}
	switch p.Effector {
	case operation.Publish:
		places = append(places, wanted{b.destinations.Publish, p.Destination})
	case operation.ReviewPacket:
		places = append(places, wanted{b.destinations.Review, p.Destination})
	case operation.Branch:
		places = append(places, wanted{b.destinations.Repositories, p.Destination})
	}
	for _, place := range places {
		if place.at.IsZero() {
			continue
		}
		if _, err := find(place.among, place.at); err != nil {
			return err
		}
	}
	if b.git == "" && (p.Effector == operation.Branch || !p.Repository.IsZero()) {
		return reason.New(reason.OutboxGitMissing, "the program git is not there", "PATH", "install git")
	}
	return nil
}

// Asks are the actions that an ordered proposal needs: for what leaves, and for where it
// goes. In the shadow namespace that is no more than keeping the outputs.
func Asks(o workorder.Proposal) []workorder.Action {
	var asks []workorder.Action
	outputs := func(action, destination string) {
		for _, f := range o.Files {
			asks = append(asks, workorder.Action{Action: action, Resource: string(capability.OutputScope) + ":" + f, Destination: destination})
		}
	}
	switch o.Effector {
	case operation.Publish:
		outputs("outbox.publish", o.Destination)
	case operation.Branch:
		outputs("artifact.propose", "")
		asks = append(asks, workorder.Action{Action: "repo.branch", Resource: o.Destination, Destination: string(capability.BranchScope) + ":writ/**"})
	case operation.ReviewPacket:
		outputs("artifact.propose", "")
		if o.Repository != "" {
			asks = append(asks, workorder.Action{Action: "repo.review_packet", Resource: o.Repository, Destination: o.Destination})
		}
	}
	return asks
}

// Actions are those that an outbox carries out.
func Actions() []string {
	return []string{"artifact.propose", "outbox.publish", "repo.branch", "repo.review_packet"}
}
