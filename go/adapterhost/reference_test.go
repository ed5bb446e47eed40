package adapterhost_test

import (
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// The whole way of an execution through reference-local.
func TestReferenceLocal(t *testing.T) {
	r := newRig(t, config(t, "reference-local", reference(t)))
	ctx := t.Context()
	c, q := r.call(operation.Prepare)
	prepared, err := r.session.Prepare(ctx, c, q)
	if err != nil || prepared.Refusal != nil {
		t.Fatalf("prepare: %v, %v", err, prepared.Refusal)
	}
	var handle protocol.PrepareResult
	if err := canonical.DecodeCanonical(prepared.Result, &handle); err != nil {
		t.Fatal(err)
	}
	start, q := r.call(operation.Start)
	started, err := r.session.Start(ctx, start, q, handle.Handle)
	if err != nil || started.Refusal != nil {
		t.Fatalf("start: %v, %v", err, started.Refusal)
	}
	if len(started.Effects) != 1 || len(r.session.Launches(start.Operation)) != 1 || r.desk.parents[0] != start.Operation {
		t.Errorf("claimed %v, seen %v under %v", started.Effects, r.session.Launches(start.Operation), r.desk.parents)
	}
	status, err := r.session.Poll(ctx, start, handle.Handle, 0)
	if err != nil || status.Completed {
		t.Fatalf("poll while it runs: %+v, %v", status, err)
	}
	r.desk.end(t)
	if status, err = r.session.Poll(ctx, start, handle.Handle, 10*time.Second); err != nil || !status.Completed {
		t.Fatalf("poll: %+v, %v", status, err)
	}
	if len(status.Report.Ended) != 1 || status.Report.Ended[0].Ended != protocol.EndedExited {
		t.Errorf("report %+v", status.Report)
	}
	c, q = r.call(operation.Collect)
	collected, err := r.session.Collect(ctx, c, q, handle.Handle)
	if err != nil || string(collected.Result) != `{"result":"report.json"}` {
		t.Errorf("collect: %v, %s, %v", err, collected.Result, collected.Refusal)
	}
	for _, kind := range []operation.Kind{operation.Cancel, operation.Cleanup} {
		c, q := r.call(kind)
		call := r.session.Cancel
		if kind == operation.Cleanup {
			call = r.session.Cleanup
		}
		if a, err := call(ctx, c, q, handle.Handle); err != nil || a.Refusal != nil {
			t.Errorf("%s: %v, %v", kind, err, a.Refusal)
		}
	}
	if err := r.host.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(r.config.Folder); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if r.host.PID() != 0 {
		t.Error("the adapter lives after Close")
	}
}

// The adapter proposes what the workload has offered, bound to the call and the bundle, and nothing where nothing was
// asked for.
func TestCheckpoint(t *testing.T) {
	r := newRig(t, config(t, "reference-local", reference(t)))
	c, q := r.call(operation.Checkpoint)
	if a, err := r.session.Checkpoint(t.Context(), c, q, "h"); err != nil || a.Refusal == nil || a.Refusal.Code != reason.CheckpointForeign {
		t.Errorf("without an offer: %v, %v", err, a.Refusal)
	}
	for name, test := range map[string]struct{ payload, kind string }{
		"of the kind asked for": {`{"kind":"writ.checkpoint.tool_progress.v1"}`, "writ.checkpoint.tool_progress.v1"},
		"of another kind":       {`{"kind":"writ.checkpoint.other.v1"}`, "writ.checkpoint.other.v1"},
		"no JSON":               {"x", "writ.checkpoint.tool_progress.v1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, config(t, "reference-local", reference(t)))
			c, q := r.call(operation.Checkpoint)
			r.desk.offered = []byte(test.payload)
			a, err := r.session.Checkpoint(t.Context(), c, q, "h")
			if err != nil || a.Refusal != nil {
				t.Fatal(err, a.Refusal)
			}
			var got workorder.CheckpointEnvelope
			if err := canonical.DecodeCanonical(a.Result, &got); err != nil {
				t.Fatal(err)
			}
			want := workorder.CheckpointEnvelope{
				Kind: workorder.CheckpointKind, Attempt: r.fence.Attempt, Fence: r.fence, Operation: string(c.Operation), PayloadKind: test.kind,
				Payload: canonical.Sum([]byte(test.payload)), PayloadBytes: int64(len(test.payload)), Artifacts: []canonical.Digest{}, Policy: r.bundle.Bundle().Policy.Decision,
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	r = newRig(t, r.config)
	r.desk.offered = make([]byte, wire.MaxCheckpoint+1)
	c, q = r.call(operation.Checkpoint)
	if a, err := r.session.Checkpoint(t.Context(), c, q, "h"); err != nil || a.Refusal == nil || a.Refusal.Code != reason.CheckpointTooLarge {
		t.Errorf("with too large an offer: %v, %v", err, a.Refusal)
	}
}

// An exact repetition has the same answer, byte for byte, from another process too, and launches nothing twice.
func TestExactReplay(t *testing.T) {
	r := newRig(t, config(t, "reference-local", reference(t)))
	ctx := t.Context()
	prepare, prepareRequest := r.call(operation.Prepare)
	start, startRequest := r.call(operation.Start)
	checkpoint, checkpointRequest := r.call(operation.Checkpoint)
	r.desk.offered = []byte(`{"kind":"writ.checkpoint.tool_progress.v1"}`)
	var claims []string
	for range 2 {
		p, err := r.session.Prepare(ctx, prepare, prepareRequest)
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.session.Start(ctx, start, startRequest, "h")
		if err != nil {
			t.Fatal(err)
		}
		k, err := r.session.Checkpoint(ctx, checkpoint, checkpointRequest, "h")
		if err != nil || k.Refusal != nil {
			t.Fatal(err, k.Refusal)
		}
		claims = append(claims, string(p.Claim)+string(p.Result)+string(s.Claim)+string(s.Result)+string(k.Claim)+string(k.Result))
		kill(t, r)
	}
	if claims[0] != claims[1] {
		t.Errorf("answers differ:\n%s\n%s", claims[0], claims[1])
	}
	if r.desk.asked != 2 || len(r.desk.launches) != 1 || len(r.session.Launches(start.Operation)) != 1 {
		t.Errorf("asked %d times, launched %d", r.desk.asked, len(r.desk.launches))
	}
}

// A relaunched adapter has not seen the bundle, and reads it from the host.
func TestRelaunchedAdapterReadsTheBundle(t *testing.T) {
	r := newRig(t, config(t, "reference-local", reference(t)))
	kill(t, r)
	c, q := r.call(operation.Collect)
	if a, err := r.session.Collect(t.Context(), c, q, "h"); err != nil || string(a.Result) != `{"result":"report.json"}` {
		t.Errorf("collect: %v, %+v", err, a)
	}
}

func kill(t *testing.T, r *rig) {
	t.Helper()
	pid := r.host.PID()
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); r.host.PID() == pid; {
		if time.Now().After(deadline) {
			t.Fatal("the adapter does not die")
		}
		time.Sleep(time.Millisecond) // waits for the condition above
	}
}

// How long an adapter takes from start to first answer.
func TestStartLatency(t *testing.T) {
	c := config(t, "reference-local", reference(t))
	var fastest time.Duration
	for range 5 {
		r := newRig(t, c)
		_ = r.host.Close()
		before := time.Now()
		r = newRig(t, c)
		if took := time.Since(before); fastest == 0 || took < fastest {
			fastest = took
		}
		_ = r.host.Close()
	}
	t.Logf("start to first answer: %s", fastest)
	if fastest > 2*time.Second {
		t.Errorf("start to first answer takes %s", fastest)
	}
}
