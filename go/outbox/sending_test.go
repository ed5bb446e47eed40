package outbox_test

import (
	"context"
	"os"
	"testing"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/schemas"
	"github.com/writ-runtime/writ/testing/fixture"
)

// The key is made of attempt, effector and purpose, and the digest covers everything else
// that is sent, and where to.
func TestKeysAndDigests(t *testing.T) {
	w := newWorld(t, capability.Production)
	p := w.proposal(operation.Publish)
	in := w.prepare(w.box, p).Intent()
	if in.Key != "writ/"+operation.Key(fixture.Attempt)+"/outbox/publish/first" || in.Check() != nil || in.Resource != w.state.Resource {
		t.Errorf("%+v, %v", in, in.Check())
	}
	second, err := w.box.Prepare(t.Context(), w.authoritative(), p, 2, w.grants)
	fatal(t, err)
	if second.Intent().Key != in.Key+":2" || second.Intent().Check() != nil {
		t.Errorf("%+v", second.Intent())
	}
	if _, err := w.box.Prepare(t.Context(), w.authoritative(), p, 0, w.grants); err == nil {
		t.Error("sent for the 0th time")
	}
	if again := newWorldAt(t, parent(w), capability.Production).again(p); again != in {
		t.Errorf("in another life it is %+v", again)
	}
	for name, change := range map[string]func(*outbox.Proposal){
		"fewer files": func(p *outbox.Proposal) { p.Files = p.Files[1:] },
		"receipts":    func(p *outbox.Proposal) { p.Receipts = nil },
		"title":       func(p *outbox.Proposal) { p.Title += "." },
		"message":     func(p *outbox.Proposal) { p.Message = "" },
		"date":        func(p *outbox.Proposal) { p.Observed.UnixMilli++ },
	} {
		q := p
		change(&q)
		if got := w.prepare(w.box, q).Intent(); got.Key != in.Key || got.Digest == in.Digest {
			t.Errorf("%s: %+v", name, got)
		}
	}
	raw, err := schemas.FS.ReadFile("effect-classes.v1.json")
	fatal(t, err)
	classes, err := operation.ParseClasses(raw)
	fatal(t, err)
	for _, kind := range operation.Kinds() {
		if kind.OfOutbox() && classes.Of(kind) != outbox.Class {
			t.Errorf("%s is registered as %s", kind, classes.Of(kind))
		}
	}
}

func parent(w *world) string { return w.dir[:len(w.dir)-len("/state")] }

// again is the intent of a proposal in this world.
func (w *world) again(p outbox.Proposal) operation.Intent { return w.prepare(w.box, p).Intent() }

// A permit for anything else permits nothing, and a collision does nothing (O5, B14).
func TestPermits(t *testing.T) {
	w := newWorld(t, capability.Production)
	s := w.prepare(w.box, w.proposal(operation.Publish))
	in, call := s.Intent(), w.call(s.Intent())
	other := in
	other.Digest = fixture.Digest("another request")
	want(t, "collision", s.PerformAs(t.Context(), call, other), operation.NotApplied, reason.OperationCollision)
	other = in
	other.Key += ":2"
	want(t, "another key", s.PerformAs(t.Context(), call, other), operation.NotApplied, reason.OperationPermitInvalid)
	other = in
	other.Kind = operation.ShadowPublish
	want(t, "another kind", s.PerformAs(t.Context(), call, other), operation.NotApplied, reason.OperationPermitInvalid)
	foreign := call
	foreign.Bundle = fixture.Digest("x")
	want(t, "another bundle", s.PerformAs(t.Context(), foreign, in), operation.NotApplied, reason.BundleDigestMismatch)
	foreign = call
	foreign.Fence.Attempt = "att_01939a3c-7c1e-7000-8000-00000000000f"
	want(t, "another attempt", s.PerformAs(t.Context(), foreign, in), operation.NotApplied, reason.KernelStaleFence)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, "cancelled", s.PerformAs(ended, call, in), operation.NotApplied, reason.AttemptCancelled)
	if left := contents(t, w.releases); len(left) > 0 {
		t.Errorf("%v", left)
	}
	other = in
	other.Digest = fixture.Digest("another request")
	want(t, "asking with another digest", s.Resolve(t.Context(), other), operation.Unknown, reason.OutboxDestinationChanged)
	other.Key += ":2"
	want(t, "asking for another key", s.Resolve(t.Context(), other), operation.Unknown, reason.OperationUnknownOutcome)
}

// An effect is never looked for elsewhere than it was made.
func TestMovedDestinations(t *testing.T) {
	w := newWorld(t, capability.Production)
	p := w.proposal(operation.Publish)
	in := w.prepare(w.box, p).Intent()
	want(t, "publish", w.send(p), operation.Applied, "")
	w.releases = w.releases + "-moved"
	fatal(t, os.Mkdir(w.releases, 0o755))
	w.open("")
	want(t, "asked", w.prepare(w.box, p).Resolve(t.Context(), in), operation.Unknown, reason.OutboxDestinationChanged)
	if err := w.prepare(w.box, p).Asked(in); !reason.Is(err, reason.OutboxDestinationChanged) {
		t.Errorf("whether it may be asked: %v", err)
	}

	d := w.destinations()
	d.Publish = nil
	box, err := outbox.Open(w.dir, w.store, d, outbox.Options{})
	fatal(t, err)
	_, err = box.Prepare(t.Context(), w.authoritative(), p, 1, w.grants)
	if !reason.Is(err, reason.OutboxUnknownDestination) {
		t.Fatal(err)
	}
}

// A destination of one use is none of another.
func TestUsesAreApart(t *testing.T) {
	w := newWorld(t, capability.Production)
	for name, change := range map[string]func(*outbox.Proposal){
		"publish to reviewers": func(p *outbox.Proposal) { p.Destination = scope(t, "folder:reviews") },
		"publish to nobody":    func(p *outbox.Proposal) { p.Destination = scope(t, "folder:elsewhere") },
		"packet among releases": func(p *outbox.Proposal) {
			*p = w.proposal(operation.ReviewPacket)
			p.Destination = scope(t, "folder:releases")
		},
		"packet of no repository": func(p *outbox.Proposal) {
			*p = w.proposal(operation.ReviewPacket)
			p.Repository = scope(t, "repo:other")
		},
		"branch elsewhere": func(p *outbox.Proposal) { *p = w.proposal(operation.Branch); p.Destination = scope(t, "repo:releases") },
	} {
		p := w.proposal(operation.Publish)
		change(&p)
		if _, err := w.box.Prepare(t.Context(), w.authoritative(), p, 1, w.grants); !reason.Is(err, reason.OutboxUnknownDestination) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
