package ledger_test

import (
	"bytes"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// performed is an attempt whose operations are performed in a real ledger, each with a
// result of its own.
type performed struct {
	*fixture.Admitted
	t *testing.T
	// first are the records of what was performed, by key.
	first map[operation.Key]operation.Record
}

// run performs an operation and remembers what it came to.
func (p *performed) run(permit ledger.Permit, result any) kernel.Settle {
	p.t.Helper()
	out := operation.Done(result)
	out.Claim = fixture.Digest("claim of " + string(permit.Intent().Key))
	s := p.Run(permit, &effect{out: out})
	p.first[permit.Intent().Key] = operation.Record{Intent: permit.Intent(), Outcome: s.Outcome, Receipt: s.Receipt}
	return s
}

// one begins one operation and performs it.
func (p *performed) one(in operation.Intent, result any) {
	p.t.Helper()
	opened := p.commit(kernel.Begin{Intent: in})
	p.commit(p.run(opened.Permits[0], result))
}

func (p *performed) commit(commands ...kernel.Command) ledger.Opened {
	p.t.Helper()
	opened, err := p.Ledger.Commit(p.t.Context(), ledger.Turn{Fence: p.State.Fence(), Commands: commands, Actor: "uid:0"})
	if err != nil {
		p.t.Fatal(err)
	}
	p.State = opened.State
	return opened
}

// running is an attempt that runs and took a checkpoint. In it everything is performed that
// comes before an execution ends.
func running(t *testing.T) *performed {
	t.Helper()
	p := &performed{t: t, first: map[operation.Key]operation.Record{}, Admitted: fixture.Admit(t, func(b *attemptbundle.Bundle) {
		b.Mode = capability.Production
		b.Environment.Reset = attemptbundle.ResetBeforeDestroy
		b.Checkpoint = attemptbundle.CheckpointPolicy{
			Policy: workorder.OfferedCheckpoints, PayloadKind: workorder.ToolProgressKind, MaxBytes: 512, MaxCount: 3, IntervalMillis: 1000,
		}
		b.Proposals = []workorder.Proposal{{Purpose: "out", Effector: operation.Publish, Destination: "folder:releases", Files: []string{"report.json"}, Title: "t"}}
	})}
	opened := p.Next(p.Activation())
	expected, report := fixture.Attestation(t, p.Ledger.Kernel(), p.State)
	opened = p.Next(p.run(opened.Permits[0], protocol.ProvisionResult{Provider: "wasm", Resource: p.State.Resource}), kernel.Attest{Expected: expected, Report: report},
		p.run(opened.Permits[1], protocol.MaterializeResult{Inputs: fixture.Digest("inputs"), Files: 3}), p.run(opened.Permits[2], protocol.PrepareResult{Handle: "h"}))
	p.commit(p.run(opened.Permits[0], protocol.StartResult{Handle: "h"}))
	launch := opened.Permits[1]
	checkpoint, err := p.Ledger.Kernel().Checkpoint(p.State)
	if err != nil {
		t.Fatal(err)
	}
	p.one(checkpoint, workorder.CheckpointEnvelope{Kind: workorder.CheckpointKind, Attempt: p.State.Attempt, Fence: p.State.Fence(), Operation: string(checkpoint.Key)})
	p.commit(p.run(launch, protocol.LaunchResult{Tool: fixture.Digest("textstat"), Ended: protocol.EndedExited}))
	return p
}

// Whatever is performed once is performed once: asked for again under its key, every kind of
// call is answered with the result and the receipt of the first time, byte for byte, without
// a permit; by the same ledger, by one of a later life, and after the attempt is closed (O4).
func TestExactReplayOfEveryCall(t *testing.T) {
	kinds := map[operation.Kind]bool{}
	for name, live := range map[string]func(p *performed){
		"an attempt that succeeds": func(p *performed) {
			var launched []operation.Key
			for _, o := range p.State.Operations() {
				if o.Intent.Kind == operation.Launch {
					launched = append(launched, o.Intent.Key)
				}
			}
			opened := p.Next(kernel.Complete{Report: protocol.CompletionReport{Handle: "h", Launches: launched, Ended: []protocol.LaunchResult{{Tool: fixture.Digest("textstat"), Ended: protocol.EndedExited}}}})
			destination, err := capability.ParseScope("folder:releases")
			if err != nil {
				p.t.Fatal(err)
			}
			opened = p.Next(p.run(opened.Permits[0], protocol.FreezeResult{Manifest: fixture.Digest("manifest")}), p.run(opened.Permits[1], protocol.CollectResult{Manifest: fixture.Digest("manifest")}),
				kernel.Accept{Proposals: []kernel.Proposal{{Purpose: "out", Proposed: kernel.Proposed{
					Attempt: p.State.Attempt, Kind: operation.Publish, Class: operation.Reconcilable, Destination: destination, Content: fixture.Digest("proposal"),
				}}}})
			opened = p.Next(p.run(opened.Permits[0], protocol.RemovalResult{Gone: true}), p.run(opened.Permits[1], protocol.ResetResult{Resource: p.State.Resource, Report: fixture.Digest("report")}))
			p.Next(p.run(opened.Permits[0], protocol.RemovalResult{Gone: true}))
			if at := p.State.Of(kernel.EnvironmentMachine).State; at != "destroyed" {
				p.t.Errorf("the environment is %s", at)
			}
			opened = p.commit(kernel.Send{Purpose: "out", Place: fixture.Digest("place")})
			p.commit(p.run(opened.Permits[0], protocol.PublicationResult{Destination: destination, Name: "n"}))
		},
		"one that is cancelled": func(p *performed) {
			opened := p.Next(kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "asked"}})
			opened = p.Next(p.run(opened.Permits[0], protocol.RemovalResult{Gone: true}))
			var settled []kernel.Command
			for _, permit := range opened.Permits {
				settled = append(settled, p.run(permit, protocol.RemovalResult{Gone: true}))
			}
			p.Next(settled...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := running(t)
			p.same(t) // While it runs.
			live(p)
			p.same(t) // Once it is closed.
			p.Reopen()
			p.same(t)
			for key := range p.first {
				kinds[key.Kind()] = true
			}
		})
	}
	for _, kind := range []operation.Kind{
		operation.Prepare, operation.Start, operation.Launch, operation.Checkpoint, operation.Cancel, operation.Collect, operation.Cleanup,
		operation.Provision, operation.Materialize, operation.Freeze, operation.Reset, operation.Destroy, operation.Publish,
	} {
		if !kinds[kind] {
			t.Errorf("no %s was performed", kind)
		}
	}
}

// same asks for every operation again.
func (p *performed) same(t *testing.T) {
	t.Helper()
	before := p.State.Events()
	for key, first := range p.first {
		opened := p.commit(kernel.Begin{Intent: first.Intent})
		if len(opened.Permits) != 0 || len(opened.Replayed) != 1 {
			t.Errorf("%s: %d permits and %d answers", key, len(opened.Permits), len(opened.Replayed))
			continue
		}
		again := opened.Replayed[0]
		if !bytes.Equal(again.Receipt, first.Receipt) || !bytes.Equal(again.Outcome.Result, first.Outcome.Result) || again.Outcome.Claim != first.Outcome.Claim || again.Outcome.Knowledge != first.Outcome.Knowledge {
			t.Errorf("%s is answered\n%s\n%s, was\n%s\n%s", key, again.Receipt, again.Outcome.Result, first.Receipt, first.Outcome.Result)
		}
		other := first.Intent
		other.Digest = fixture.Digest("another request")
		if _, err := p.Ledger.Commit(t.Context(), ledger.Turn{Fence: p.State.Fence(), Commands: []kernel.Command{kernel.Begin{Intent: other}}, Actor: "uid:0"}); err == nil {
			t.Errorf("%s is begun with another request", key)
		}
	}
	if p.State.Events() != before {
		t.Error("asking again left events")
	}
}
