package model_test

import (
	"context"

	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
)

// world is what operations act upon. It outlives every crash, and it alone knows what
// really took place.
type world struct {
	// alive are the resource names that something bears.
	alive map[string]bool
	// asked and effects count, for each operation, how often it was performed, and how often
	// that had an effect.
	asked, effects map[operation.Key]int
}

func newWorld() *world {
	return &world{alive: map[string]bool{}, asked: map[operation.Key]int{}, effects: map[operation.Key]int{}}
}

// fate is what happens to one call into the world.
type fate int

// The fates. An effect that takes place and one whose answer arrives are two things.
const (
	answered   fate = iota
	refused         // It did not take place, and the answer says so.
	lostBefore      // It did not take place, and nobody heard.
	lostAfter       // It did take place, and nobody heard.
)

// effect is one call into the world, with its fate.
type effect struct {
	world *world
	fate  fate
	// heard says that what is resolved is the answer to the call itself, which was only late.
	heard bool
}

// Perform implements ledger.Effect.
func (e effect) Perform(_ context.Context, p ledger.Permit) operation.Outcome {
	in := p.Intent()
	e.world.asked[in.Key]++
	if e.fate == answered || e.fate == lostAfter {
		e.world.do(in)
	}
	switch e.fate {
	case answered:
		return operation.Done(result(in))
	case refused:
		return operation.Outcome{Knowledge: operation.NotApplied, Code: reason.AttemptFailed, Detail: "it was refused"}
	}
	return lost()
}

// Resolve implements ledger.Effect: it says the truth, or is lost itself. Of what nobody can
// ask about there is no answer.
func (e effect) Resolve(_ context.Context, in operation.Intent) operation.Outcome {
	w := e.world
	switch {
	case e.fate != answered || in.Class == operation.NonReconcilable && !e.heard:
		return lost()
	case removes(in.Kind) && !w.alive[in.Resource], w.effects[in.Key] > 0 && (w.alive[in.Resource] || removes(in.Kind)):
		return operation.Done(result(in))
	case !w.alive[in.Resource]:
		return operation.Outcome{Knowledge: operation.NotApplied, Code: reason.OperationDissolved, Detail: "nothing bears the name"}
	}
	return operation.Outcome{Knowledge: operation.NotApplied, Code: reason.AttemptFailed, Detail: "it never took place"}
}

func lost() operation.Outcome {
	return operation.Outcome{Knowledge: operation.Unknown, Code: reason.OperationUnknownOutcome, Detail: "no answer came"}
}

// do has an operation take place. The same one again is no second effect where its class
// promises that.
func (w *world) do(in operation.Intent) {
	if in.Class != operation.ProviderIdempotent || w.effects[in.Key] == 0 {
		w.effects[in.Key]++
	}
	switch in.Kind {
	case operation.Provision:
		w.alive[in.Resource] = true
	case operation.Destroy:
		w.alive[in.Resource] = false
	}
}

// look ends what bears a name, if it can, and says what is left.
func (w *world) look(resource string, can bool) protocol.EnvironmentReconciliation {
	if can {
		w.alive[resource] = false
	}
	return protocol.EnvironmentReconciliation{Resource: resource, Gone: !w.alive[resource]}
}

func removes(k operation.Kind) bool { return k == operation.Cleanup || k == operation.Destroy }

// result is what an operation comes to.
func result(in operation.Intent) any {
	switch in.Kind {
	case operation.Provision:
		return protocol.ProvisionResult{Provider: "wasm", Resource: in.Resource}
	case operation.Materialize:
		return protocol.MaterializeResult{Inputs: fixture.Digest("inputs"), Files: 1, Bytes: 2}
	case operation.Prepare:
		return protocol.PrepareResult{Handle: "h"}
	case operation.Start:
		return protocol.StartResult{Handle: "h"}
	case operation.Launch:
		return protocol.LaunchResult{Tool: fixture.Digest("textstat"), Ended: protocol.EndedExited}
	case operation.Freeze:
		return protocol.FreezeResult{Manifest: fixture.Digest("manifest"), Files: 1, Bytes: 3}
	case operation.Collect:
		return protocol.CollectResult{Manifest: fixture.Digest("manifest")}
	}
	return protocol.RemovalResult{Resource: in.Resource, Gone: true}
}
