package outbox_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
)

// Only an authoritative reduction gives what opens the effectors, and only a shadow one
// what opens the shadow folder (C5, C11).
func TestNamespaces(t *testing.T) {
	for mode, opens := range map[capability.Mode]string{
		capability.Observe: "", capability.Shadow: "shadow", capability.Proposal: "authoritative", capability.Production: "authoritative",
	} {
		w := newWorld(t, mode)
		_, err := outbox.Authorize(w.state)
		if ok := opens == "authoritative"; (err == nil) != ok || !ok && !reason.Is(err, reason.OutboxNotAuthoritative) {
			t.Errorf("authorize in %s: %v", mode, err)
		}
		_, err = outbox.Isolate(w.state)
		if ok := opens == "shadow"; (err == nil) != ok || !ok && !reason.Is(err, reason.OutboxNotAuthoritative) {
			t.Errorf("isolate in %s: %v", mode, err)
		}
	}
}

// What was not accepted, or is not what was accepted, opens nothing.
func TestAuthorizeRefuses(t *testing.T) {
	w := newWorld(t, capability.Production)
	unaccepted := fixture.Admit(t, nil)
	started := unaccepted.Next(unaccepted.Activation()).State
	for name, s := range map[string]kernel.State{
		"nothing":         {},
		"a reservation":   fixture.Admit(t, nil).State,
		"a running one":   started,
		"another attempt": func() kernel.State { s := w.state; s.Attempt = "att_01939a3c-7c1e-7000-8000-00000000000f"; return s }(),
		"another result":  func() kernel.State { s := w.state; r := *s.Result; r.Detail = "x"; s.Result = &r; return s }(),
		"another manifest": func() kernel.State {
			s := w.state
			r := *s.Result
			r.Manifest = fixture.Digest("x")
			s.Result = &r
			return s
		}(),
		"no bundle": func() kernel.State { s := w.state; s.Bundle = nil; return s }(),
		"a shadow's result in a bundle of production": func() kernel.State {
			s := newWorld(t, capability.Shadow).state
			s.Bundle = w.state.Bundle
			return s
		}(),
		"a result of production in a shadow's bundle": func() kernel.State {
			s := w.state
			s.Bundle = newWorld(t, capability.Shadow).state.Bundle
			return s
		}(),
	} {
		if _, err := outbox.Authorize(s); !reason.Is(err, reason.OutboxNotAuthoritative) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The effectors take a proof of the one namespace, the shadow folder of the other. Neither
// type can be made by hand, or of the other: what does not compile needs no test, and that
// it does not compile is tested here.
func TestProofsDoNotConvert(t *testing.T) {
	real, isolated := reflect.TypeFor[outbox.Authoritative](), reflect.TypeFor[outbox.Isolated]()
	if real.ConvertibleTo(isolated) || isolated.ConvertibleTo(real) || real.AssignableTo(isolated) || isolated.AssignableTo(real) {
		t.Error("one proof converts to the other")
	}
	for _, typ := range []reflect.Type{real, isolated} {
		for i := range typ.NumField() {
			if typ.Field(i).IsExported() {
				t.Errorf("%s can be made by hand: %s", typ, typ.Field(i).Name)
			}
		}
	}
	for method, want := range map[reflect.Type]reflect.Type{
		reflect.TypeOf((*outbox.Outbox).Prepare): real,
		reflect.TypeOf((*outbox.Shadow).Prepare): isolated,
	} {
		if method.In(2) != want {
			t.Errorf("%s takes a %s", method, method.In(2))
		}
	}
	// And no other exported function makes an effect.
	effect := reflect.TypeFor[ledger.Effect]()
	for _, typ := range []reflect.Type{reflect.TypeFor[*outbox.Outbox](), reflect.TypeFor[*outbox.Shadow]()} {
		for i := range typ.NumMethod() {
			m := typ.Method(i)
			for j := range m.Type.NumOut() {
				if m.Type.Out(j).Implements(effect) && m.Name != "Prepare" {
					t.Errorf("%s makes an effect without a proof", m.Name)
				}
			}
		}
	}
	w := newWorld(t, capability.Production)
	if _, err := w.box.Prepare(t.Context(), outbox.Authoritative{}, w.proposal(operation.Publish), 1, w.grants); !reason.Is(err, reason.OutboxNotAuthoritative) {
		t.Errorf("the empty proof: %v", err)
	}
	if _, err := outbox.OpenShadow(w.dir, w.store).Prepare(t.Context(), outbox.Isolated{}, w.proposal(operation.ShadowPublish), 1, w.grants); !reason.Is(err, reason.OutboxNotAuthoritative) {
		t.Errorf("the empty proof: %v", err)
	}
	if _, err := w.box.Prepare(t.Context(), w.authoritative(), w.proposal(operation.ShadowPublish), 1, w.grants); !reason.Is(err, reason.OutboxNotAuthoritative) {
		t.Errorf("shadow from authoritative: %v", err)
	}
	// An empty sending does nothing.
	var none outbox.Sending
	want(t, "nothing", none.PerformAs(t.Context(), w.call(operation.Intent{}), operation.Intent{}), operation.NotApplied, reason.OperationPermitInvalid)
	want(t, "nothing", none.Perform(t.Context(), ledger.Permit{}), operation.NotApplied, reason.OperationPermitInvalid)
	want(t, "nothing", none.Resolve(t.Context(), operation.Intent{}), operation.Unknown, reason.OperationUnknownOutcome)
}

// A shadow result stays below the shadow folder of the state, whatever the deployment
// offers and whatever stands there.
func TestShadow(t *testing.T) {
	w := newWorld(t, capability.Shadow)
	proof, err := outbox.Isolate(w.state)
	fatal(t, err)
	before := snapshot(t, filepath.Dir(w.dir), "state")
	s := outbox.OpenShadow(w.dir, w.store)
	for _, kind := range []operation.Kind{operation.Publish, operation.Branch, operation.ReviewPacket} {
		if _, err := s.Prepare(t.Context(), proof, w.proposal(kind), 1, w.grants); !reason.Is(err, reason.OutboxNotAuthoritative) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	p := w.proposal(operation.ShadowPublish)
	sending, err := s.Prepare(t.Context(), proof, p, 1, w.grants)
	fatal(t, err)
	if sending.Intent().Kind != operation.ShadowPublish {
		t.Errorf("%+v", sending.Intent())
	}
	fatal(t, sending.Ready())
	want(t, "before", sending.Resolve(t.Context(), sending.Intent()), operation.NotApplied, reason.OutboxAbsent)
	want(t, "shadow", w.perform(sending), operation.Applied, "")
	want(t, "asked", sending.Resolve(t.Context(), sending.Intent()), operation.Applied, "")
	got := contents(t, filepath.Join(w.dir, outbox.ShadowFolder, p.Name()))
	if got["files/report.json"] != outputs()["report.json"] {
		t.Errorf("%v", got)
	}
	unchanged(t, "outside", before, snapshot(t, filepath.Dir(w.dir), "state"))

	fatal(t, os.RemoveAll(filepath.Join(w.dir, outbox.ShadowFolder)))
	fatal(t, os.Symlink(w.releases, filepath.Join(w.dir, outbox.ShadowFolder)))
	want(t, "through a link", w.perform(sending), operation.NotApplied, reason.OutboxDestinationUnusable)
	unchanged(t, "outside", before, snapshot(t, filepath.Dir(w.dir), "state"))
}

// What the bundle does not grant, and what is not allowed any more, does not leave; it can
// be asked about all the same (C6, C7).
func TestGrants(t *testing.T) {
	w := newWorld(t, capability.Production)
	for kind, needed := range map[operation.Kind][]string{
		operation.Publish: {"outbox.publish"}, operation.Branch: {"repo.branch", "artifact.propose"}, operation.ReviewPacket: {"repo.review_packet", "artifact.propose"},
	} {
		for _, action := range needed {
			less := w.grants.Filter(func(g capability.Grant) bool { return g.Action != action })
			s, err := w.box.Prepare(t.Context(), w.authoritative(), w.proposal(kind), 1, less)
			fatal(t, err)
			want(t, string(kind)+" without "+action, w.perform(s), operation.NotApplied, reason.CapabilityNotGranted)
			want(t, string(kind), s.Resolve(t.Context(), s.Intent()), operation.NotApplied, reason.OutboxAbsent)

			poor := newWorld(t, capability.Production)
			full := poor.grants
			poor.grants = less
			poor.accept()
			s, err = poor.box.Prepare(t.Context(), poor.authoritative(), poor.proposal(kind), 1, full)
			fatal(t, err)
			want(t, string(kind)+" of a bundle without "+action, poor.perform(s), operation.NotApplied, reason.CapabilityNotGranted)
		}
	}
	// A scope that does not reach the destination is no grant for it.
	other := capability.NewSet(capability.Grant{Action: "outbox.publish", Resource: scope(t, "output:**"), Destination: scope(t, "folder:elsewhere")})
	s, err := w.box.Prepare(t.Context(), w.authoritative(), w.proposal(operation.Publish), 1, other)
	fatal(t, err)
	want(t, "publish elsewhere", w.perform(s), operation.NotApplied, reason.CapabilityNotGranted)
	s, err = w.box.Prepare(t.Context(), w.authoritative(), w.proposal(operation.Publish), 1, nil)
	fatal(t, err)
	want(t, "publish without grants", w.perform(s), operation.NotApplied, reason.CapabilityNotGranted)
	if left := contents(t, w.releases); len(left) > 0 {
		t.Errorf("%v", left)
	}
}

// A proposal of anything but the accepted result is refused before it is anything.
func TestForeignContent(t *testing.T) {
	w := newWorld(t, capability.Production)
	for name, change := range map[string]func(p *outbox.Proposal){
		"another attempt":    func(p *outbox.Proposal) { p.Attempt = "att_01939a3c-7c1e-7000-8000-00000000000f" },
		"another result":     func(p *outbox.Proposal) { p.Result = fixture.Digest("x") },
		"another manifest":   func(p *outbox.Proposal) { p.Manifest = fixture.Digest("x") },
		"another receipt":    func(p *outbox.Proposal) { p.Receipts[0].Digest = fixture.Digest("x") },
		"an unknown receipt": func(p *outbox.Proposal) { p.Receipts[0].Name = "ApprovalReceipt" },
		"another file":       func(p *outbox.Proposal) { p.Files[0].Path = "bin/run.exe" },
		"another digest":     func(p *outbox.Proposal) { p.Files[0].Digest = fixture.Digest("x") },
		"another size":       func(p *outbox.Proposal) { p.Files[0].Size++ },
		"another mode":       func(p *outbox.Proposal) { p.Files[0].Executable = !p.Files[0].Executable },
	} {
		p := w.proposal(operation.Publish)
		p.Files, p.Receipts = append(p.Files[:0:0], p.Files...), append(p.Receipts[:0:0], p.Receipts...)
		change(&p)
		if _, err := w.box.Prepare(t.Context(), w.authoritative(), p, 1, w.grants); !reason.Is(err, reason.OutboxForeignContent) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
