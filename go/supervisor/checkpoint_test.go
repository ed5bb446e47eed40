package supervisor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/supervisor"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// progress is a checkpoint's payload that stands at a position.
func progress(position int64) []byte {
	return fmt.Appendf(nil, `{"kind":"writ.checkpoint.tool_progress.v1","next_action":"go on","position":%d,"state":{},"stop_condition":"done"}`, position)
}

// taking makes a bundle take checkpoints, as fast as they come.
func taking(b *attemptbundle.Bundle) {
	b.Checkpoint = attemptbundle.CheckpointPolicy{
		Policy: workorder.OfferedCheckpoints, PayloadKind: workorder.ToolProgressKind, MaxBytes: 200, MaxCount: 10, IntervalMillis: 1,
	}
}

// offering has the workload offer payloads, each once the one before was judged and recorded,
// before it goes on to its end.
func (r *rig) offering(payloads ...[]byte) {
	recorded := make(chan struct{}, len(payloads))
	r.attempt.Observe = func(s supervisor.Step) {
		if s.Operation == operation.Checkpoint && s.Done {
			recorded <- struct{}{}
		}
	}
	r.launching = func(offered func([]byte)) {
		for i, payload := range payloads {
			offered(payload)
			select {
			case <-recorded:
			case <-time.After(30 * time.Second):
				r.t.Errorf("offer %d was not taken", i)
			}
		}
	}
}

// refusals are the codes with which checkpoints of the attempt were refused, by ordinal.
func (r *rig) refusals(s kernel.State) map[string]reason.Code {
	r.t.Helper()
	got := map[string]reason.Code{}
	note := func(key operation.Key, e lifecycle.Event) {
		var f kernel.Failure
		if err := canonical.Decode(e.Body, &f); err != nil {
			r.t.Fatal(err)
		}
		got[key.Purpose()] = f.Code
	}
	events, err := r.Store.Events(r.t.Context(), lifecycle.Of(kernel.ExecutionMachine, string(s.Attempt)))
	if err != nil {
		r.t.Fatal(err)
	}
	var proposed workorder.CheckpointEnvelope
	for _, e := range events {
		switch e.Family {
		case "execution.checkpoint_proposed":
			if err := canonical.Decode(e.Body, &proposed); err != nil {
				r.t.Fatal(err)
			}
		case "execution.checkpoint_refused":
			note(operation.Key(proposed.Operation), e.Event)
		}
	}
	for _, o := range s.Operations() {
		events, err := r.Store.Events(r.t.Context(), lifecycle.Of(kernel.OperationMachine, string(o.Intent.Key)))
		if err != nil {
			r.t.Fatal(err)
		}
		for _, e := range events {
			if e.Family == "operation.refused" {
				note(o.Intent.Key, e.Event)
			}
		}
	}
	return got
}

// A running tool's offers become checkpoints, each durable before the next is taken, with the
// payload kept under its digest. The attempt ends as it would have without.
func TestOffersBecomeCheckpoints(t *testing.T) {
	h := newHost(t)
	r := h.newRig(t, taking)
	r.offering(progress(1), progress(5), progress(6))
	s := r.run()
	if s.Result.Conclusion != workorder.Succeeded {
		t.Errorf("ended %+v", s.Result)
	}
	if c := s.Checkpoint; c == nil || c.Position != 6 || c.Envelope.Payload != canonical.Sum(progress(6)) {
		t.Errorf("the newest is %+v", c)
	}
	for i, position := range []int64{1, 5, 6} {
		if out := ended(t, s, operation.Checkpoint, fmt.Sprint(i+1)); out.Knowledge != operation.Applied || out.Claim == "" {
			t.Errorf("checkpoint %d: %+v", i+1, out)
		}
		if kept, err := r.attempt.Artifacts.Read(t.Context(), canonical.Sum(progress(position)), 1000); err != nil || string(kept) != string(progress(position)) {
			t.Errorf("of checkpoint %d is kept %q, %v", i+1, kept, err)
		}
	}
	if got := r.refusals(s); len(got) > 0 {
		t.Errorf("refused: %v", got)
	}
}

// What a tool offers and the reducer does not accept is kept with the reason; nothing starts
// from it, and the attempt goes on.
func TestBadOffersAreKeptAndRefused(t *testing.T) {
	h := newHost(t)
	for name, test := range map[string]struct {
		payload []byte
		want    reason.Code
	}{
		"no JSON":             {[]byte("position 2"), reason.CheckpointMalformed},
		"another kind":        {[]byte(`{"kind":"writ.checkpoint.other.v1"}`), reason.CheckpointUnregisteredKind},
		"no further":          {progress(1), reason.CheckpointNotNewer},
		"larger than allowed": {[]byte(strings.Replace(string(progress(2)), "go on", strings.Repeat("x", 200), 1)), reason.CheckpointTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.newRig(t, taking)
			r.offering(progress(1), test.payload, progress(3))
			s := r.run()
			if got := r.refusals(s); len(got) != 1 || got["2"] != test.want {
				t.Errorf("refused %v, want the second with %s", got, test.want)
			}
			if s.Result.Conclusion != workorder.Succeeded || s.Checkpoint == nil || s.Checkpoint.Position != 3 {
				t.Errorf("ended %+v, the newest is %+v", s.Result, s.Checkpoint)
			}
			if kept, err := r.attempt.Artifacts.Read(t.Context(), canonical.Sum(test.payload), 1000); err != nil || string(kept) != string(test.payload) {
				t.Errorf("kept is %q, %v", kept, err)
			}
		})
	}
}

// An adapter that proposes something else than it was asked for: refused, and the attempt
// goes on.
func TestAnAdapterThatProposesSomethingElse(t *testing.T) {
	h := newHost(t)
	for name, test := range map[string]struct {
		change func(e *workorder.CheckpointEnvelope)
		want   reason.Code
	}{
		"another attempt":   {func(e *workorder.CheckpointEnvelope) { e.Attempt = "att_01939a3c-7c1e-7000-8000-00000000dead" }, reason.CheckpointForeign},
		"an older fence":    {func(e *workorder.CheckpointEnvelope) { e.Fence.Generation-- }, reason.KernelStaleFence},
		"a damaged digest":  {func(e *workorder.CheckpointEnvelope) { e.Payload = fixture.Digest("other") }, reason.CheckpointDigestMismatch},
		"another operation": {func(e *workorder.CheckpointEnvelope) { e.Operation = strings.TrimSuffix(e.Operation, "1") + "9" }, reason.CheckpointForeign},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.newRig(t, taking)
			r.checkpoint = func(c protocol.Call, adapter func() (executor.Answer, error)) (executor.Answer, error) {
				a, err := adapter()
				if err != nil || c.Operation.Purpose() != "1" {
					return a, err
				}
				var e workorder.CheckpointEnvelope
				if err := canonical.DecodeCanonical(a.Result, &e); err != nil {
					t.Error(err)
				}
				test.change(&e)
				a.Result, err = canonical.Marshal(e)
				return a, err
			}
			r.offering(progress(1), progress(2))
			s := r.run()
			if got := r.refusals(s); len(got) != 1 || got["1"] != test.want {
				t.Errorf("refused %v, want the first with %s", got, test.want)
			}
			if s.Result.Conclusion != workorder.Succeeded || s.Checkpoint == nil || s.Checkpoint.Position != 2 {
				t.Errorf("ended %+v, the newest is %+v", s.Result, s.Checkpoint)
			}
		})
	}
}

// An adapter that gives no usable answer to a checkpoint costs that checkpoint. One that is
// caught lying is asked for no other, and the attempt ends with it.
func TestAnAdapterThatDoesNotAnswerACheckpoint(t *testing.T) {
	h := newHost(t)
	for name, test := range map[string]struct {
		answer func(a executor.Answer) (executor.Answer, error)
		code   reason.Code
		ends   bool
	}{
		"dead": {func(executor.Answer) (executor.Answer, error) {
			return executor.Answer{}, &executor.Doubt{Refusal: reason.New(reason.AdapterUnavailable, "it died", "", "")}
		}, reason.AdapterUnavailable, false},
		"refusing": {func(a executor.Answer) (executor.Answer, error) {
			a.Refusal, a.Result = reason.New(reason.AdapterUnsupported, "not now", "", ""), nil
			return a, nil
		}, reason.AdapterUnsupported, false},
		"answering something else": {func(a executor.Answer) (executor.Answer, error) {
			a.Result = canonical.Raw(`{"handle":"h"}`)
			return a, nil
		}, reason.AdapterProtocol, false},
		"claiming a launch": {func(a executor.Answer) (executor.Answer, error) {
			a.Effects = []wire.Effect{{Key: "writ/a/b/launch/main", Digest: fixture.Digest("launch")}}
			return a, nil
		}, reason.AdapterLied, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.newRig(t, taking)
			r.checkpoint = func(c protocol.Call, adapter func() (executor.Answer, error)) (executor.Answer, error) {
				a, err := adapter()
				if err != nil || c.Operation.Purpose() != "1" {
					return a, err
				}
				return test.answer(a)
			}
			payloads := [][]byte{progress(1), progress(2)}
			if test.ends {
				payloads = payloads[:1]
			}
			r.offering(payloads...)
			s := r.run()
			if out := ended(t, s, operation.Checkpoint, "1"); out.Knowledge != operation.NotApplied || out.Code != test.code {
				t.Errorf("the first checkpoint came to %+v", out)
			}
			if test.ends {
				if s.Result.Code != reason.AdapterLied || s.Result.Stage != "checkpoint" || s.Checkpoint != nil {
					t.Errorf("ended %+v, the newest is %+v", s.Result, s.Checkpoint)
				}
				return
			}
			if s.Result.Conclusion != workorder.Succeeded || s.Checkpoint == nil || s.Checkpoint.Position != 2 {
				t.Errorf("ended %+v, the newest is %+v", s.Result, s.Checkpoint)
			}
		})
	}
}

// However much a workload offers, no more is taken than the bundle allows, and nothing where
// it takes none.
func TestCheckpointsAreBounded(t *testing.T) {
	h := newHost(t)
	for name, test := range map[string]struct {
		change func(b *attemptbundle.Bundle)
		taken  int
	}{
		"one":              {func(b *attemptbundle.Bundle) { taking(b); b.Checkpoint.MaxCount = 1 }, 1},
		"one in a while":   {func(b *attemptbundle.Bundle) { taking(b); b.Checkpoint.IntervalMillis = 3_600_000 }, 1},
		"none in this one": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.newRig(t, test.change)
			r.offering([][]byte{progress(1)}[:test.taken]...)
			first := r.launching
			r.launching = func(offered func([]byte)) {
				first(offered)
				for i := range int64(100) {
					offered(progress(2 + i))
				}
			}
			s := r.run()
			taken := 0
			for _, o := range s.Operations() {
				if o.Intent.Kind == operation.Checkpoint {
					taken++
				}
			}
			if taken != test.taken || s.Result.Conclusion != workorder.Succeeded {
				t.Errorf("took %d checkpoints, want %d; ended %+v", taken, test.taken, s.Result)
			}
		})
	}
}

// An adapter reads an offer on behalf of the checkpoint that the host asked for: the same
// each time, whatever the workload has offered since.
func TestAnOfferIsPinnedToItsCheckpoint(t *testing.T) {
	h := newHost(t)
	r := h.newRig(t, taking)
	var services supervisor.Services
	r.before = func(s supervisor.Services, c protocol.Call) {
		services = s
		if _, err := s.Offered(t.Context(), c); !reason.Is(err, reason.CheckpointForeign) {
			t.Errorf("an offer for %s: %v", c.Operation.Kind(), err)
		}
	}
	r.offering(progress(1))
	var again func([]byte)
	first := r.launching
	r.launching = func(offered func([]byte)) {
		again = offered
		first(offered)
	}
	r.checkpoint = func(c protocol.Call, adapter func() (executor.Answer, error)) (executor.Answer, error) {
		a, err := adapter()
		if c.Operation.Purpose() != "1" {
			return a, err
		}
		again(progress(2))
		if got, err := services.Offered(t.Context(), c); err != nil || string(got) != string(progress(1)) {
			t.Errorf("the offer changed to %s: %v", got, err)
		}
		other := c
		other.Operation += "0"
		if _, err := services.Offered(t.Context(), other); !reason.Is(err, reason.CheckpointForeign) {
			t.Errorf("an offer for another checkpoint: %v", err)
		}
		return a, err
	}
	if s := r.run(); s.Result.Conclusion != workorder.Succeeded {
		t.Errorf("ended %+v", s.Result)
	}
}

// The same checkpoint operation again, in a later life of the host, is answered from the
// journal byte for byte, and performs nothing; another request under its key is a collision
// (O4, O5).
func TestACheckpointIsReplayedFromTheJournal(t *testing.T) {
	h := newHost(t)
	r := h.newRig(t, taking)
	r.offering(progress(1), progress(2))
	s := r.run()
	r.Reopen()
	for _, purpose := range []string{"1", "2"} {
		for _, o := range s.Operations() {
			if o.Intent.Kind != operation.Checkpoint || o.Intent.Key.Purpose() != purpose {
				continue
			}
			opened, err := r.Ledger.Commit(t.Context(), ledger.Turn{Fence: r.State.Fence(), Commands: []kernel.Command{kernel.Begin{Intent: o.Intent}}, Actor: "uid:0"})
			if err != nil || len(opened.Permits) > 0 || len(opened.Replayed) != 1 || opened.Sequence != 0 {
				t.Fatalf("checkpoint %s again: %+v, %v", purpose, opened, err)
			}
			was, err := canonical.Marshal(o.Record)
			if err != nil {
				t.Fatal(err)
			}
			if is, err := canonical.Marshal(opened.Replayed[0]); err != nil || string(is) != string(was) {
				t.Errorf("checkpoint %s was\n%s\nand is\n%s (%v)", purpose, was, is, err)
			}
			other := o.Intent
			other.Digest = fixture.Digest("other")
			if _, err := r.Ledger.Commit(t.Context(), ledger.Turn{Fence: r.State.Fence(), Commands: []kernel.Command{kernel.Begin{Intent: other}}, Actor: "uid:0"}); !reason.Is(err, reason.OperationCollision) {
				t.Errorf("another request under the key of checkpoint %s: %v", purpose, err)
			}
		}
	}
}
