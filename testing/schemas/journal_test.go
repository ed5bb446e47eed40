package schemas_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/workorder"
)

// Whatever is written to a journal matches its schema, and nothing that differs from it
// does: turns, events, blobs, records of operations and the requests they stand for.
func TestAJournalMatchesItsSchemas(t *testing.T) {
	r, files := open(t), readTree(t)
	written := &names{seen: map[string]bool{}}
	for name, way := range lives() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := way(t)
			for _, d := range documents(t, l) {
				d.good(t, r)
				if written.first(d.name) {
					d.tampered(t, r, eventsOf(d.kind))
				}
			}
			for _, e := range l.entries {
				for _, ev := range e.Events {
					written.first("family " + string(ev.Family))
				}
			}
		})
	}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		// Every body that is not empty was written at least once.
		n, _ := files.at("event.v1.schema.json#")
		bodies := map[string]bool{}
		for _, rule := range n.value["allOf"].([]any) {
			condition := rule.(map[string]any)["if"].(map[string]any)["properties"].(map[string]any)
			then := rule.(map[string]any)["then"].(map[string]any)["properties"].(map[string]any)
			family, ok := condition["family"].(map[string]any)
			body, isBody := then["body"].(map[string]any)
			if !ok || !isBody {
				continue
			}
			ref, _ := body["$ref"].(string)
			for _, f := range (node{value: family}).strings("enum") {
				bodies[ref] = bodies[ref] || written.has("family "+f)
			}
		}
		for ref, seen := range bodies {
			_, none := unwritten()["event/"+strings.TrimPrefix(ref, "#/$defs/")]
			switch {
			case !seen && !none:
				t.Errorf("no life writes a body of %s", ref)
			case seen && none:
				t.Errorf("a body of %s is written: hold its schema against its Go type", ref)
			}
		}
	})
}

// documents are all that the journal of a life holds, and all that its operations say.
func documents(t testing.TB, l *life) []document {
	t.Helper()
	var all []document
	mediaTypes := map[string]bool{}
	for _, e := range l.entries {
		all = append(all, document{"turn", "writ.journal_batch.v1", e.Body})
		for _, ev := range e.Events {
			name := string(ev.Family)
			if ev.Subject.Machine() == "operation" {
				parts := strings.Split(ev.Subject.ID(), "/")
				name += " of " + parts[3]
			}
			all = append(all, document{name, "writ.event.v1", marshal(t, ev)})
			all = append(all, within(t, ev)...)
		}
		for _, b := range e.Blobs {
			raw, err := l.store.Blob(t.Context(), b.Digest)
			if err != nil {
				t.Fatal(err)
			}
			if kind := blobKind(t, b.MediaType, raw); kind != "" {
				mediaTypes[b.MediaType] = true
				all = append(all, document{kind, kind, raw})
			}
		}
	}
	for _, o := range l.state.Operations() {
		request, err := l.ledger.Kernel().Request(l.state, o.Intent)
		if err != nil {
			t.Fatal(err)
		}
		raw := marshal(t, request)
		if canonical.Sum(raw) != o.Intent.Digest {
			t.Errorf("the request of %s has another digest than its intent", o.Intent.Key)
		}
		kind := string(o.Intent.Kind)
		all = append(all, document{"request of " + kind, "writ.request.v1", raw}, document{"intent", "writ.operation_intent.v1", marshal(t, o.Intent)})
		if len(o.Record.Receipt) > 0 {
			all = append(all, document{"record of " + kind, "writ.operation_record.v1", marshal(t, o.Record)},
				document{"outcome", "writ.operation_outcome.v1", marshal(t, o.Record.Outcome)},
				document{"receipt", "writ.receipt.v1", o.Record.Receipt})
		}
	}
	if len(mediaTypes) < 2 {
		t.Errorf("only %v are among the blobs", slices.Collect(maps.Keys(mediaTypes)))
	}
	return all
}

// within are the documents with a kind of their own that a body holds.
func within(t testing.TB, ev lifecycle.Event) []document {
	t.Helper()
	var all []document
	var look func(v any)
	look = func(v any) {
		switch x := v.(type) {
		case map[string]any:
			if kind, ok := x["kind"].(string); ok && strings.HasPrefix(kind, "writ.") {
				all = append(all, document{kind, kind, encode(t, x)})
			}
			for _, member := range x {
				look(member)
			}
		case []any:
			for _, item := range x {
				look(item)
			}
		}
	}
	look(decode(t, ev.Body))
	return all
}

// blobKind is the kind of a blob whose media type says that it is a document of ours.
func blobKind(t testing.TB, mediaType string, raw []byte) string {
	t.Helper()
	switch mediaType {
	case "application/vnd.writ.ingress-receipt+json":
		return "writ.ingress_receipt.v1"
	case "application/vnd.writ.decision+json":
		return "writ.decision.v1"
	case "application/vnd.writ.artifact-manifest+json":
		return "writ.artifact_manifest.v1"
	case outbox.MediaType:
		return outbox.ProposalKind
	case "application/vnd.writ.checkpoint+json":
		return "writ.checkpoint.tool_progress.v1"
	case "application/vnd.writ.package+json":
		if kind, ok := decode(t, raw).(map[string]any); ok {
			return kind["kind"].(string)
		}
		return "writ.requested_grants.v1"
	}
	if strings.HasPrefix(mediaType, "application/vnd.writ.") {
		t.Errorf("nobody knows the kind of %s", mediaType)
	}
	return ""
}

// eventsOf leaves the events of a turn alone: each is tampered with by itself. What lies in
// a tool's own state is the tool's.
func eventsOf(kind string) func(string) bool {
	switch kind {
	case "writ.journal_batch.v1":
	case workorder.ToolProgressKind:
		return func(path string) bool { return path == "/state" }
	default:
		return nil
	}
	return func(path string) bool { return strings.HasPrefix(path, "/content/events/") }
}

// names remembers names over parallel tests.
type names struct {
	mu   sync.Mutex
	seen map[string]bool
}

// first reports whether a name comes for the first time.
func (n *names) first(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := n.seen[name]
	n.seen[name] = true
	return !seen
}

func (n *names) has(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen[name]
}
