package outbox_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// A review packet shows a person what would change, and where it comes from; the
// repository is only read.
func TestReviewPacket(t *testing.T) {
	w := newWorld(t, capability.Proposal)
	p := w.proposal(operation.ReviewPacket)
	before := snapshot(t, w.project)
	w.begin(p)
	want(t, "before", w.ask(p), operation.NotApplied, reason.OutboxAbsent)
	out := w.send(p)
	want(t, "packet", out, operation.Applied, "")
	unchanged(t, "making a packet", before, snapshot(t, w.project))
	dir := filepath.Join(w.reviews, decode[protocol.PublicationResult](t, out).Name)
	got := contents(t, dir)
	for name, text := range outputs() {
		if got["files/"+name] != text {
			t.Errorf("%s is not what was frozen", name)
		}
	}
	page := got["README.md"]
	for _, part := range append([]string{"Count the words", "    # Not a heading", string(p.Attempt), string(w.state.WorkOrder), p.Base, string(p.Result), "changes.diff",
		"\n    writ verify " + string(p.Attempt) + "\n    writ receipts --json " + string(p.Attempt) + "\n"},
		string(p.Receipts[0].Digest), string(p.Receipts[1].Digest), string(p.Files[0].Digest), p.Files[0].Path) {
		if !strings.Contains(page, part) {
			t.Errorf("the page does not say %q:\n%s", part, page)
		}
	}
	if strings.Contains(page, "\n# Not a heading") {
		t.Error("what others wrote is shown as if Writ had written it")
	}
	// What the page says one can do works, and gives the branch's tree.
	program := git(t)
	run(t, w.project, program, "apply", "--index", filepath.Join(dir, "changes.diff"))
	tree := strings.TrimSpace(run(t, w.project, program, "write-tree"))
	q := w.proposal(operation.Branch)
	branched := w.send(q)
	want(t, "branch", branched, operation.Applied, "")
	if r := decode[protocol.BranchResult](t, branched); r.Tree != tree {
		t.Errorf("the changes give %s, the branch has %s", tree, r.Tree)
	}
	for _, again := range []operation.Outcome{w.send(p), w.ask(p)} {
		want(t, "again", again, operation.Applied, "")
		if string(again.Result) != string(out.Result) {
			t.Errorf("%s, and before %s", again.Result, out.Result)
		}
	}
	// The packet is found without git as well: what git wrote is named by the packet itself.
	w.open("")
	want(t, "without git", w.ask(p), operation.Applied, "")
	write(t, filepath.Join(dir, "changes.diff"), "")
	want(t, "changed since", w.ask(p), operation.Unknown, reason.OutboxOccupied)
}

// Without a repository there is nothing to compare with.
func TestReviewPacketWithoutRepository(t *testing.T) {
	w := newWorld(t, capability.Proposal)
	p := w.proposal(operation.ReviewPacket)
	p.Repository, p.Base = capability.Scope{}, ""
	out := w.send(p)
	want(t, "packet", out, operation.Applied, "")
	if got := contents(t, filepath.Join(w.reviews, p.Name())); got["changes.diff"] != "" || got["README.md"] == "" {
		t.Errorf("%v", got)
	}
	want(t, "asked", w.ask(p), operation.Applied, "")
}

// A publication and a packet of one name at one place are told apart.
func TestEffectorsAreToldApart(t *testing.T) {
	w := newWorld(t, capability.Production)
	p := w.proposal(operation.ReviewPacket)
	p.Repository, p.Base = capability.Scope{}, ""
	d := w.destinations()
	d.Publish, d.Review = []outbox.Destination{{Name: "releases", Path: w.reviews}}, nil
	publishing, err := outbox.Open(w.dir, w.store, d, outbox.Options{})
	fatal(t, err)
	want(t, "packet", w.send(p), operation.Applied, "")
	want(t, "publish", w.perform(w.prepare(publishing, w.proposal(operation.Publish))), operation.NotApplied, reason.OutboxOccupied)
}
