package schemas_test

import (
	"encoding/json"
	"fmt"
	"github.com/writ-runtime/writ/go/retention"
	"github.com/writ-runtime/writ/go/workorder"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/broker"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
	"github.com/writ-runtime/writ/tools/lockfile"
)

// The files of other packages that stand for what the product writes.
const (
	goldenBundle   = "../../go/attemptbundle/testdata/bundle.v1.json"
	goldenReceipts = "../../go/ledger/testdata/receipts.v1.json"
	vendorManifest = "../../plugins/adapters/referencelocal/manifest.json"
)

// stored are documents that are files, or that no journal holds.
func stored(t testing.TB) []document {
	t.Helper()
	all := []document{
		{"the golden bundle", "writ.attempt_bundle.v1", file(t, goldenBundle)},
		{"the actions", "writ.actions.v1", embedded(t, "actions.v1.json")},
		{"the effect classes", "writ.effect_classes.v1", embedded(t, "effect-classes.v1.json")},
		{"the facts", "writ.attestation_facts.v1", embedded(t, "attestation-facts.v1.json")},
		{"the registry", "writ.registry.v1", embedded(t, "registry.json")},
		{"a vendor's manifest", "writ.executor_capabilities.v1", file(t, vendorManifest)},
		{"a work order", "writ.workorder.v1", canonicalize(t, []byte(order))},
		{"a claim", "writ.claim.v1", marshal(t, wire.Claim{
			Kind: wire.ClaimKind, Operation: key(t, operation.Start), Digest: fixture.Digest("request"), Knowledge: operation.NotApplied,
			Code: reason.AdapterUnsupported, Result: fixture.Digest("result"),
			Effects: []wire.Effect{{Key: key(t, operation.Launch), Digest: fixture.Digest("launch")}},
		})},
		{"a locator", "writ.execution_locator.v1", marshal(t, wire.Locator{
			Kind: wire.LocatorKind, Bundle: fixture.Digest("bundle"), Attempt: fixture.Attempt, Resource: string(fixture.Attempt) + ".g1",
		})},
		{"a checkpoint", workorder.CheckpointKind, marshal(t, workorder.CheckpointEnvelope{
			Kind: workorder.CheckpointKind, Attempt: fixture.Attempt, Operation: string(key(t, operation.Checkpoint)),
			Fence:       workorder.Fence{Attempt: fixture.Attempt, Generation: 1, Phase: workorder.Live},
			PayloadKind: workorder.ToolProgressKind, Payload: fixture.Digest("payload"), PayloadBytes: 1, Artifacts: []canonical.Digest{fixture.Digest("artifact")},
			Policy: fixture.Digest("decision"),
		})},
		{"a tool's progress", workorder.ToolProgressKind, marshal(t, progress(3))},
		{"an effect proposal", outbox.ProposalKind, marshal(t, proposal(t))},
		{"a publication", outbox.PublicationKind, marshal(t, outbox.Publication{
			Kind: outbox.PublicationKind, Proposal: fixture.Digest("proposal"), Effector: operation.Publish, Files: proposal(t).Files,
		})},
		{"what is kept", retention.ManifestKind, marshal(t, retention.Manifest{
			Kind: retention.ManifestKind, Attempt: fixture.Attempt, Bundle: fixture.Digest("bundle"), Resource: string(fixture.Attempt) + ".g1",
			Policy: protocol.RetentionParameters{Keep: true, Days: 7}, At: fixed{}.Now(), Until: fixed{}.Now(), Bytes: 3,
			Files: []retention.File{
				{Path: "a\x1b[1m", At: "odd/1", Size: 1, Digest: fixture.Digest("a")}, {Path: "b/c", At: "files/b/c", Size: 2, Digest: fixture.Digest("c")},
			},
			Folders: []string{"d"},
		})},
		{"destinations", outbox.DestinationsKind, marshal(t, outbox.Destinations{
			Kind: outbox.DestinationsKind, Publish: []outbox.Destination{{Name: "releases", Path: "/srv/releases"}},
			Review: []outbox.Destination{{Name: "reviews", Path: "/srv/reviews"}}, Repositories: []outbox.Destination{{Name: "project", Path: "/srv/project"}},
		})},
		{"accounts", admission.AccountsKind, marshal(t, admission.Accounts{
			Kind: admission.AccountsKind,
			Accounts: []admission.Account{{Name: "research", Closed: "the project is over", Ceiling: workorder.Ceiling{
				Calls: new(int64), Tokens: new(int64), WallMillis: new(int64), Money: &workorder.Money{Amount: 100, Currency: "EUR", Scale: 2},
			}}},
			Prices: []admission.Price{{Tool: "textstat", Run: workorder.Money{Amount: 1, Currency: "EUR", Scale: 2}}},
		})},
		{"a deployment's name", admission.DeploymentKind, marshal(t, admission.Deployment{Kind: admission.DeploymentKind, Name: "local"})},
		{"a broker's grant", "writ.action_grant.v1", marshal(t, token(t))},
	}
	for _, m := range fixture.Kernel(t).Transitions().Machines() {
		all = append(all, document{"the transitions of " + m.Name, "writ.transitions.v1", embedded(t, fmt.Sprintf("transitions/%s.v%d.json", m.Name, m.Version))})
	}
	var receipts []json.RawMessage
	if err := json.Unmarshal(file(t, goldenReceipts), &receipts); err != nil || len(receipts) == 0 {
		t.Fatal(len(receipts), err)
	}
	for _, r := range receipts {
		all = append(all, document{"a golden receipt", "writ.receipt.v1", r})
	}
	return append(all, locks(t)...)
}

func key(t testing.TB, kind operation.Kind) operation.Key {
	t.Helper()
	k, err := operation.NewKey("writ", string(fixture.Attempt), "reference-local", kind, "main")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// proposal is an effect proposal with every field.
func proposal(t testing.TB) outbox.Proposal {
	t.Helper()
	scope := func(s string) capability.Scope {
		parsed, err := capability.ParseScope(s)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	p := outbox.Proposal{
		Kind: outbox.ProposalKind, Attempt: fixture.Attempt, Purpose: "first", Effector: operation.ReviewPacket,
		Destination: scope("folder:reviews"), Repository: scope("repo:project"), Base: strings.Repeat("a1", 20),
		Result: fixture.Digest("result"), Manifest: fixture.Digest("manifest"),
		Files:    []outbox.File{{Path: "report.json", Digest: fixture.Digest("report"), Size: 2}},
		Receipts: []lifecycle.Guard{{Name: "CollectionReceipt", Digest: fixture.Digest("receipt")}},
		Title:    "A report", Message: "It counts.", Observed: lifecycle.Observation{Domain: "fixture", UnixMilli: fixture.Now},
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// token is a grant of the local broker.
func token(t testing.TB) broker.Token {
	t.Helper()
	g := requests(t, capability.Observe)[5].Grant
	issued, err := broker.NewLocal(actions(t), broker.Terms{LifeMillis: 1000, Uses: map[string]int64{g.Action: 2}}).
		Issue(capability.NewSet(g), fixture.Reserved(t, fixture.Kernel(t)).Fence, g, fixture.Now)
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

// locks are the lock files of a small release set, as the build writes them.
func locks(t testing.TB) []document {
	t.Helper()
	dir := t.TempDir()
	bytes := filepath.Join(dir, "bytes")
	if err := os.WriteFile(bytes, []byte("bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	source := func(kind lockfile.Kind, name, platform, folder, manifest string) lockfile.Source {
		return lockfile.Source{Kind: kind, Name: name, Version: "0.1.0", Platform: platform, Path: path.Join(folder, name), File: bytes, Manifest: manifest}
	}
	set := filepath.Join(dir, "set")
	err := lockfile.WriteDir(set, []lockfile.Source{
		source(lockfile.Adapter, "reference-local", "linux/amd64", "adapters", vendorManifest),
		source(lockfile.Worker, "writ-wasm", "linux/amd64", "workers", ""),
		source(lockfile.Tool, "textstat", "wasip1/wasm", "tools", ""),
		source(lockfile.Policy, "constitution", "any", "policies", ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []document
	for _, name := range []string{"adapters", "tools", "policies"} {
		all = append(all, document{"the lock of " + name, "writ.lock." + name + ".v1", file(t, filepath.Join(set, name+".lock.json"))})
	}
	return all
}

// Golden files and data files match their schemas, and nothing that differs from them
// does: an unknown field anywhere in a bundle is refused.
func TestStoredDocumentsMatchTheirSchemas(t *testing.T) {
	r := open(t)
	tampered := map[string]bool{}
	for _, d := range stored(t) {
		d.good(t, r)
		if !tampered[d.name] {
			tampered[d.name] = true
			d.tampered(t, r, eventsOf(d.kind))
		}
	}
	document{"the reasons", "writ.reasons.v1", embedded(t, "reasons.v1.json")}.good(t, r)
}

// No kind is registered without a document that shows it.
func TestEveryKindIsShown(t *testing.T) {
	shown := map[string]bool{"writ.reasons.v1": true}
	for _, d := range append(stored(t), documents(t, finished(t))...) {
		shown[d.kind] = true
	}
	for _, kind := range open(t).Kinds() {
		if !shown[kind] {
			t.Errorf("%s: there is no document of it", kind)
		}
	}
}

// What one field says binds what another may say.
func TestFieldsThatBindEachOther(t *testing.T) {
	r := open(t)
	receipt := func(change func(*protocol.Receipt)) []byte {
		v := protocol.Receipt{
			Kind: protocol.ReceiptKind, Name: "StartReceipt", Operation: key(t, operation.Start), Digest: fixture.Digest("d"), Class: operation.Reconcilable,
			Bundle: fixture.Digest("b"), Attempt: fixture.Attempt, Generation: 1, Resource: string(fixture.Attempt) + ".g1", Knowledge: operation.Applied,
		}
		change(&v)
		return marshal(t, v)
	}
	request := func(kind operation.Kind, parameters any) []byte {
		v, err := protocol.NewRequest(kind, fixture.Digest("b"), fixture.Attempt, "wasm", "main", parameters)
		if err != nil {
			t.Fatal(err)
		}
		return marshal(t, v)
	}
	start := protocol.StartParameters{Prompt: fixture.Digest("p")}
	for _, c := range []struct {
		name, kind string
		bytes      []byte
		ok         bool
	}{
		{"a receipt", "writ.receipt.v1", receipt(func(*protocol.Receipt) {}), true},
		{"of another kind of operation", "writ.receipt.v1", receipt(func(v *protocol.Receipt) { v.Name = "LaunchReceipt" }), false},
		{"of an effect that did not take place, without a reason", "writ.receipt.v1", receipt(func(v *protocol.Receipt) { v.Knowledge = operation.NotApplied }), false},
		{"of an effect that did not take place", "writ.receipt.v1", receipt(func(v *protocol.Receipt) {
			v.Knowledge, v.Code = operation.NotApplied, reason.OperationSkipped
		}), true},
		{"a path for a name", "writ.receipt.v1", receipt(func(v *protocol.Receipt) { v.Resource = "/run/writ/1" }), false},
		{"a generation of 0", "writ.receipt.v1", receipt(func(v *protocol.Receipt) { v.Generation = 0 }), false},
		{"a request", "writ.request.v1", request(operation.Start, start), true},
		{"with the parameters of another operation", "writ.request.v1", request(operation.Prepare, start), false},
		{"of an operation without parameters", "writ.request.v1", request(operation.Reset, struct{}{}), false},
		{"a shorter digest", "writ.request.v1", request(operation.Start, protocol.StartParameters{Prompt: fixture.Digest("p")[:70]}), false},
		{"a digest in capitals", "writ.request.v1", request(operation.Start, protocol.StartParameters{Prompt: canonical.Digest("sha256:" + "AB" + string(fixture.Digest("p")[9:]))}), false},
	} {
		if err := r.ValidateCanonical(c.kind, c.bytes); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Every receipt that the transition registry demands has a schema that is there.
func TestReceiptSchemasAreRegistered(t *testing.T) {
	r, tree := open(t), readTree(t)
	for _, m := range fixture.Kernel(t).Transitions().Machines() {
		for _, s := range m.Schemas {
			if strings.HasPrefix(s.Schema, "writ.") {
				if !slices.Contains(r.Kinds(), s.Schema) {
					t.Errorf("%s: %s has the kind %s, which is not registered", m.Name, s.Name, s.Schema)
				}
			} else if _, ok := tree.at(s.Schema); !ok {
				t.Errorf("%s: %s has the schema %s, which is not there", m.Name, s.Name, s.Schema)
			}
		}
	}
}
