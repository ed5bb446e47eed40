package outbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// The namespaces in which a result may have been accepted, as kernel.Reduction has them.
const (
	authoritative = "authoritative"
	shadow        = "shadow"
)

// Authoritative proves that a reducer accepted a result where others rely on it. It comes
// from Authorize and from nowhere else; its zero value proves nothing. Without one no
// effector can be reached: Isolated is another type, and neither converts to the other.
type Authoritative struct {
	authoritative *accepted
}

// Isolated proves that a reducer accepted a result in the shadow namespace. All that it
// opens is the folder of that namespace.
type Isolated struct {
	isolated *accepted
}

// accepted is an accepted result with what it was accepted under.
type accepted struct {
	state  kernel.State
	bundle *attemptbundle.Compiled
	digest canonical.Digest
	result workorder.Result
}

// Authorize returns the proof for an attempt whose state comes from the journal. It
// refuses, with outbox.not_authoritative, every state but one in which the recorded
// reduction applied the recorded result in the authoritative namespace.
func Authorize(s kernel.State) (Authoritative, error) {
	a, err := accept(s, authoritative, capability.Proposal, capability.Production)
	return Authoritative{a}, err
}

// Isolate is Authorize for the shadow namespace.
func Isolate(s kernel.State) (Isolated, error) {
	a, err := accept(s, shadow, capability.Shadow)
	return Isolated{a}, err
}

// accept rests on digests: that of the reduction covers attempt, result and namespace, and
// the evidence of a state is that of events that the registry let pass.
func accept(s kernel.State, namespace string, modes ...capability.Mode) (*accepted, error) {
	refuse := func(what string) error {
		return reason.New(reason.OutboxNotAuthoritative, what, string(s.Attempt), "see what the attempt came to with `writ show`")
	}
	if s.Result == nil || s.Bundle == nil || s.Result.Conclusion != workorder.Succeeded || s.Bundle.Bundle().Attempt.ID != s.Attempt {
		return nil, refuse("no result of the attempt was accepted")
	}
	digest, err := canonical.DigestOf(*s.Result)
	if err != nil {
		return nil, err
	}
	reduction, err := canonical.DigestOf(kernel.Reduction{Attempt: s.Attempt, Result: digest, Namespace: namespace})
	if err != nil {
		return nil, err
	}
	if s.Evidence("AttemptResult") != digest || s.Evidence("ReductionReceipt") != reduction {
		return nil, refuse("no reducer accepted the attempt's result as " + namespace)
	}
	if mode := s.Bundle.Bundle().Mode; !slices.Contains(modes, mode) {
		return nil, refuse(fmt.Sprintf("in mode %s nothing of a result is %s", mode, namespace))
	}
	return &accepted{state: s, bundle: s.Bundle, digest: digest, result: *s.Result}, nil
}

// holds refuses, with outbox.foreign_content, a proposal of anything but the accepted
// result: other files than were frozen, other receipts than were recorded.
func (a *accepted) holds(ctx context.Context, store *artifact.Store, p Proposal) error {
	foreign := func(what, where string) error {
		return reason.New(reason.OutboxForeignContent, "the proposal names "+what, where, "propose what the accepted result holds")
	}
	if p.Attempt != a.state.Attempt || p.Result != a.digest || p.Manifest != a.result.Manifest {
		return foreign("another result than was accepted", string(p.Attempt))
	}
	for _, r := range p.Receipts {
		if a.state.Evidence(r.Name) != r.Digest {
			return foreign("a receipt that was not recorded: "+r.Name, string(r.Digest))
		}
	}
	raw, err := store.Read(ctx, p.Manifest, artifact.MaxDocument)
	if err != nil {
		return err
	}
	var m protocol.ArtifactManifest
	if err := canonical.Decode(raw, &m); err != nil {
		return err
	}
	frozen := make(map[string]File, len(m.Entries))
	for _, e := range m.Entries {
		frozen[e.Path] = File{Path: e.Path, Digest: e.Digest, Size: e.Size, Executable: e.Executable}
	}
	for _, f := range p.Files {
		if frozen[f.Path] != f {
			return foreign("a file that was not frozen like that", f.Path)
		}
	}
	return nil
}

// grants refuses, with capability.not_granted, a proposal that the bundle and the grants
// that are valid now do not both cover.
func (a *accepted) grants(p Proposal, now capability.Set) error {
	uses, err := p.Uses()
	if err != nil {
		return err
	}
	then := capability.NewSet(a.bundle.Bundle().Grants...)
	for _, g := range uses {
		for _, layer := range []struct {
			set  capability.Set
			name string
		}{{then, "the attempt bundle"}, {now, "what is allowed now"}} {
			if !layer.set.Covers(g) {
				return reason.New(reason.CapabilityNotGranted, layer.name+" does not cover "+g.String(), string(p.Attempt),
					"ask for it in the work order, and have the deployment allow it")
			}
		}
	}
	return nil
}
