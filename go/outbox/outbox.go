// Package outbox carries out accepted effect proposals: it publishes outputs to a folder,
// makes a branch in a local git repository, or puts a packet before reviewers. Each is a
// ledger.Effect under a key and a digest, and can be asked about by name after a crash.
//
// Nothing here changes what is there already. A folder appears by a rename that replaces
// nothing, a branch by a link that replaces nothing; no code can move a branch, and so
// none can merge.
//
// An effector is reached with an Authoritative result only. The shadow namespace has a
// folder of its own, and Shadow writes to no other.
package outbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Class is the effect class that the registry has for everything in this package: whether
// it took place can be asked by name.
const Class = operation.Reconcilable

// Outbox holds the effectors of one deployment. It is safe for concurrent use.
type Outbox struct {
	store        *artifact.Store
	destinations Destinations
	state        string
	// scratch is where git works on what becomes a branch.
	scratch string
	git     string
	classes *operation.Classes
	reload  func() (Destinations, error)
	hands   hands
}

// Options say what an outbox has beside the state folder.
type Options struct {
	// Git is the absolute path of the program git. Without it everything that needs a repository is
	// refused with outbox.git_missing.
	Git string
	// Classes is the registry of effect classes, nil for Class.
	Classes *operation.Classes
	// Reload returns the destinations of now, before each use; nil for those that the outbox was
	// opened with.
	Reload func() (Destinations, error)
}

// Open opens the outbox of a state folder, and removes what an earlier life left of its own
// work there. The refusal is an outbox.io or outbox.full.
func Open(state string, store *artifact.Store, d Destinations, o Options) (*Outbox, error) {
	if err := d.Check(state); err != nil {
		return nil, err
	}
	// Git works in a folder of its own: what it is told must not depend on the present one.
	scratch, err := filepath.Abs(filepath.Join(state, "outbox"))
	if err != nil {
		return nil, refuse(err, "the outbox has no folder to work in", state)
	}
	b := &Outbox{store: store, destinations: d, state: state, scratch: scratch, git: o.Git, classes: o.Classes, reload: o.Reload}
	if err := os.MkdirAll(b.scratch, 0o700); err != nil {
		return nil, refuse(err, "the outbox has no folder to work in", b.scratch)
	}
	if err := sweepScratch(b.scratch); err != nil {
		return nil, refuse(err, "old work of the outbox cannot be removed", b.scratch)
	}
	return b, nil
}

// deed is one effect once it is known what and where.
type deed interface {
	// perform is given a mark that stands, and spends it before the effect can appear.
	perform(ctx context.Context, m mark) operation.Outcome
	// resolve takes what is absent for never made only while the mark stands.
	resolve(ctx context.Context, m mark) operation.Outcome
	// reachable refuses what could not even be tried.
	reachable() error
}

// Sending is one proposal as the effect of one operation.
type Sending struct {
	proposal Proposal
	from     *accepted
	intent   operation.Intent
	// place is the digest of where the destination is.
	place canonical.Digest
	// forbidden is why it must not be performed; asking about it is never forbidden.
	forbidden error
	deed      deed
	mark      mark
}

var _ ledger.Effect = Sending{}

// Prepare makes the effect of a proposal that a's result stands behind. try counts, from 1,
// how often it was sent: each time is an operation with a purpose of its own.
//
// allowed are the grants that are valid now. A proposal that they or the attempt bundle
// do not cover is refused when it is performed; it can be asked about all the same, and
// for that allowed may be nil. Prepare itself refuses what is no proposal of this result
// (outbox.foreign_content, outbox.proposal_invalid) or leads nowhere
// (outbox.unknown_destination).
func (b *Outbox) Prepare(ctx context.Context, a Authoritative, p Proposal, try int, allowed capability.Set) (Sending, error) {
	if a.authoritative == nil {
		return Sending{}, unproven(p)
	}
	now, err := b.now()
	if err != nil {
		return Sending{}, err
	}
	at, d, err := now.deed(a.authoritative, p)
	if err != nil {
		return Sending{}, err
	}
	return prepare(ctx, a.authoritative, b.store, p, b.class(p.Effector), try, allowed, at, d, b.hands, b.state)
}

// class is the effect class of an effector.
func (b *Outbox) class(effector operation.Kind) operation.EffectClass {
	if b.classes == nil {
		return Class
	}
	return b.classes.Of(effector)
}

// now is the outbox with the destinations of now: whoever took one off the list means it.
func (b *Outbox) now() (*Outbox, error) {
	if b.reload == nil {
		return b, nil
	}
	d, err := b.reload()
	if err != nil {
		return nil, err
	}
	c := *b
	c.destinations = d
	return &c, nil
}

func unproven(p Proposal) error {
	return reason.New(reason.OutboxNotAuthoritative, "no accepted result stands behind the proposal", string(p.Attempt), "this is a fault of the caller: report it")
}

// deed finds the effector of a proposal and where its destination is.
func (b *Outbox) deed(from *accepted, p Proposal) (place, deed, error) {
	if err := p.Check(); err != nil {
		return place{}, nil, err
	}
	switch p.Effector {
	case operation.Publish:
		to, err := find(b.destinations.Publish, p.Destination)
		return place{Path: to.Path}, b.folder(to.Path, p, func(context.Context, bool) (*content, error) { return newContent(p, b.store, nil) }), err
	case operation.ReviewPacket:
		return b.packet(from, p)
	case operation.Branch:
		to, err := find(b.destinations.Repositories, p.Destination)
		return place{Path: to.Path}, branch{box: b, path: to.Path, p: p}, err
	}
	return place{}, nil, reason.New(reason.OutboxNotAuthoritative, fmt.Sprintf("%s is no effector of authoritative results", p.Effector), string(p.Attempt),
		"propose publish, branch or review_packet")
}

func (b *Outbox) folder(path string, p Proposal, c func(context.Context, bool) (*content, error)) folder {
	return folder{hands: b.hands, name: p.Name(), destination: p.Destination, content: c, open: func() (*os.File, error) { return openPlace(path) }}
}

// prepare binds a deed to its operation.
func prepare(ctx context.Context, from *accepted, store *artifact.Store, p Proposal, class operation.EffectClass, try int, allowed capability.Set, at place, d deed, h hands, state string) (Sending, error) {
	if err := from.holds(ctx, store, p); err != nil {
		return Sending{}, err
	}
	id, err := p.Digest()
	if err != nil {
		return Sending{}, err
	}
	where, err := at.digest()
	if err != nil {
		return Sending{}, err
	}
	in, err := kernel.SendingIntent(from.state, kernel.Proposal{Purpose: p.Purpose, Proposed: kernel.Proposed{
		Attempt: p.Attempt, Kind: p.Effector, Class: class, Destination: p.Destination, Content: id,
	}}, try, where)
	if err != nil {
		return Sending{}, err
	}
	return Sending{proposal: p, from: from, intent: in, place: where, forbidden: from.grants(p, allowed), deed: d, mark: newMark(h, state, in.Key)}, nil
}

// Intent is what must be durable before the effect.
func (s Sending) Intent() operation.Intent { return s.intent }

// Send is the command that makes it durable.
func (s Sending) Send() kernel.Send { return kernel.Send{Purpose: s.proposal.Purpose, Place: s.place} }

// Ready refuses a sending whose destination cannot be opened now, or that needs a program
// which is not there: it would come to nothing. Otherwise it marks, durably, that nothing of
// it can have appeared. It comes before the intent is durable; without the mark a sending is
// only looked for.
func (s Sending) Ready() error {
	if err := s.deed.reachable(); err != nil {
		return err
	}
	return s.mark.set()
}

// Settled removes the mark, once it is durable what became of the sending.
func (s Sending) Settled(out operation.Outcome) {
	if out.Knowledge != operation.Unknown {
		s.mark.forget()
	}
}

// Forbidden is why the bundle or the grants of today do not cover the proposal, with
// capability.not_granted, and nil where they do.
func (s Sending) Forbidden() error { return s.forbidden }

// Perform implements ledger.Effect, for a permit of exactly this operation.
func (s Sending) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	return s.perform(ctx, p.Call(), p.Intent())
}

func (s Sending) perform(ctx context.Context, c protocol.Call, in operation.Intent) operation.Outcome {
	if s.deed == nil || in.Key != s.intent.Key || in.Kind != s.intent.Kind || in.Class != s.intent.Class {
		return operation.Refused(operation.NotApplied, reason.New(reason.OperationPermitInvalid, "the permit is not for this sending", string(s.intent.Key),
			"this is a fault of the caller: report it"))
	}
	if err := c.Expect(s.from.bundle.Digest(), workorder.Fence{Attempt: s.proposal.Attempt, Generation: c.Fence.Generation}); err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	if in.Digest != s.intent.Digest {
		return operation.Refused(operation.NotApplied, reason.New(reason.OperationCollision,
			fmt.Sprintf("the sending has digest %s, the intent was recorded with %s", s.intent.Digest, in.Digest), string(in.Key),
			"use a new purpose for another proposal; nothing was done"))
	}
	if s.forbidden != nil {
		return operation.Refused(operation.NotApplied, s.forbidden)
	}
	if err := ctx.Err(); err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	// Without the mark the effect may have appeared before, in a life that ended: then it is looked for.
	switch stands, err := s.mark.stands(); {
	case err != nil:
		return operation.Refused(operation.Unknown, err)
	case !stands:
		return s.deed.resolve(ctx, s.mark)
	}
	return s.deed.perform(ctx, s.mark)
}

// Resolve implements ledger.Effect. It looks by name and digest at the place where the
// intent was to take effect, and nowhere else.
func (s Sending) Resolve(ctx context.Context, in operation.Intent) operation.Outcome {
	if err := s.same(in); err != nil {
		return operation.Refused(operation.Unknown, err)
	}
	return s.deed.resolve(ctx, s.mark)
}

// same refuses an intent that is not this sending's, or was begun towards another place.
func (s Sending) same(in operation.Intent) error {
	switch {
	case s.deed == nil || in.Key != s.intent.Key:
		return reason.New(reason.OperationUnknownOutcome, "another sending is asked about", string(in.Key), "this is a fault of the caller: report it")
	case in.Digest != s.intent.Digest:
		return reason.New(reason.OutboxDestinationChanged, "the sending was begun with another proposal or towards another place", string(in.Key),
			"put the destination back where it was in "+DestinationsFile+", or say what you found with resolve-ambiguous-effect")
	}
	return nil
}

// Asked refuses an intent that nobody can be asked about now: it was begun towards another
// place, or the destination cannot be opened.
func (s Sending) Asked(in operation.Intent) error {
	if err := s.same(in); err != nil {
		return err
	}
	return s.deed.reachable()
}
