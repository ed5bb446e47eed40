package supervisor_test

import (
	"bytes"
	"testing"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/supervisor"
	"github.com/writ-runtime/writ/go/workorder"
)

// An adapter reads the documents that its bundle hands it. Everything else lies in the same
// store, whole and readable, and is refused: other attempts' outputs, and what the bundle
// names for others to look at.
func TestAdaptersReadTheDocumentsOfTheirBundle(t *testing.T) {
	text := map[string][]byte{}
	for _, name := range []string{"prompt", "context", "role", "schema", "decision", "requested", "input", "output of another attempt"} {
		text[name] = []byte("the " + name)
	}
	digest := func(name string) canonical.Digest { return canonical.Sum(text[name]) }
	r := newHost(t).newRig(t, func(b *attemptbundle.Bundle) {
		b.Prompt, b.Context, b.Role.Package = digest("prompt"), digest("context"), digest("role")
		b.Outputs.Result, b.Outputs.Schema = "ok", digest("schema")
		b.Policy.Decision, b.Requested = digest("decision"), digest("requested")
	})
	for _, raw := range text {
		r.attempt.Blobs = append(r.attempt.Blobs, put(t, r.attempt.Artifacts, raw))
	}
	read := 0
	r.before = func(s supervisor.Services, c protocol.Call) {
		if c.Operation.Kind() != operation.Prepare {
			return
		}
		read++
		for name, mine := range map[string]bool{
			"prompt": true, "context": true, "role": true, "schema": true,
			"decision": false, "requested": false, "input": false, "output of another attempt": false,
		} {
			got, size, err := s.ReadArtifact(t.Context(), c, digest(name), 4, 3)
			if !mine {
				if !reason.Is(err, reason.ArtifactMissing) || got != nil || size != 0 {
					t.Errorf("%s: read %q of %d bytes, %v", name, got, size, err)
				}
				// It is there, for those that it is meant for.
				if there, err := r.attempt.Artifacts.Read(t.Context(), digest(name), 1000); err != nil || !bytes.Equal(there, text[name]) {
					t.Errorf("%s: the store has %q, %v", name, there, err)
				}
				continue
			}
			if err != nil || string(got) != name[:3] || size != int64(len(text[name])) {
				t.Errorf("%s: read %q of %d bytes, %v", name, got, size, err)
			}
		}
	}
	if s := r.run(); s.Result == nil || s.Result.Conclusion != workorder.Succeeded || read != 1 {
		t.Errorf("the attempt ended %+v, after %d reads", s.Result, read)
	}
}

// put makes a small artifact, as part of the turn that it is returned for.
func put(t *testing.T, store *artifact.Store, raw []byte) journal.Blob {
	t.Helper()
	_, blob, err := store.Put(t.Context(), bytes.NewReader(raw), int64(len(raw)), "text/plain")
	if err != nil || blob == nil {
		t.Fatalf("put %q: %v, %v", raw, blob, err)
	}
	return *blob
}

// The one launch that the bundle orders belongs to the start that is under way. An adapter
// that asks for it at another time, in the name of another call, under another key or with
// other parameters gets nothing, and nothing is launched.
func TestLaunchesBelongToTheirStart(t *testing.T) {
	r := newHost(t).newRig(t, nil)
	asked := 0
	refused := func(what string, code reason.Code, err error) {
		t.Helper()
		asked++
		if !reason.Is(err, code) {
			t.Errorf("%s: got %v, want %s", what, err, code)
		}
		if gone, err := r.attempt.Environment.Gone(t.Context(), r.State.Fence().ResourceName()); err != nil || !gone {
			t.Errorf("%s: it was launched, %v", what, err)
		}
	}
	r.before = func(s supervisor.Services, c protocol.Call) {
		launch, request, start := r.launch(c)
		if c.Operation.Kind() == operation.Prepare {
			_, err := s.Launch(t.Context(), launch, start, request)
			refused("before the start", reason.CapabilityNotGranted, err)
			_, err = s.Observe(t.Context(), launch, 0)
			refused("nothing to observe", reason.IDUnknown, err)
			return
		}
		for what, parent := range map[string]operation.Key{
			"under prepare": key(t, start, operation.Prepare, "main"), "under a start that is not": key(t, start, operation.Start, "again"), "under nothing": "",
		} {
			_, err := s.Launch(t.Context(), launch, parent, request)
			refused(what, reason.CapabilityNotGranted, err)
		}
		other := launch
		other.Operation = key(t, start, operation.Launch, "again")
		_, err := s.Launch(t.Context(), other, start, request)
		refused("another key", reason.CapabilityNotGranted, err)
		request.Parameters = canonical.Raw(`{}`)
		_, err = s.Launch(t.Context(), launch, start, request)
		refused("other parameters", reason.OperationCollision, err)
	}
	// What the adapter itself asks for afterwards is what the bundle orders.
	if s := r.run(); s.Result == nil || s.Result.Conclusion != workorder.Succeeded || asked != 7 {
		t.Errorf("the attempt ended %+v, after %d questions", s.Result, asked)
	}
}

// launch is the launch that the bundle orders, and the start that it belongs to.
func (r *rig) launch(c protocol.Call) (launch protocol.Call, request protocol.Request, start operation.Key) {
	r.t.Helper()
	b := r.Bundle.Bundle()
	request, err := protocol.NewRequest(operation.Launch, r.Bundle.Digest(), b.Attempt.ID, b.Pins.Adapter.Name, "main",
		protocol.LaunchParameters{Tool: b.Pins.Tools[0].Digest, Arguments: b.Execution.Arguments, Seed: b.Execution.Seed})
	if err != nil {
		r.t.Fatal(err)
	}
	start = key(r.t, c.Operation, operation.Start, "main")
	in, err := request.Intent(b.Operations.Namespace, start, operation.Reconcilable, r.State.Fence().ResourceName())
	if err != nil {
		r.t.Fatal(err)
	}
	return protocol.Call{Bundle: c.Bundle, Fence: c.Fence, Operation: in.Key, Digest: in.Digest}, request, start
}

// key is another key of the same adapter and attempt.
func key(t *testing.T, of operation.Key, kind operation.Kind, purpose string) operation.Key {
	t.Helper()
	k, err := operation.NewKey(of.Namespace(), of.Scope(), of.Actor(), kind, purpose)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
