package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/environment/wasm/worker"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// attempt is the environment of one attempt.
type attempt struct {
	provider *Provider
	order    environment.Order
	bundle   *attemptbundle.Bundle

	// mu guards what the effects hand on to each other.
	mu     sync.Mutex
	worker *worker.Worker
	report attestation.Report
	// launched says that the guest was asked to run, ended how it ended, nil before.
	launched bool
	ended    *worker.Exit
}

// effect makes a ledger.Effect of a function. What it resolves to after a crash is
// the same for every effect of this provider: all that it did lived in the worker's
// memory, so it is asked whether anything bears the resource's name.
type effect struct {
	attempt *attempt
	kind    operation.Kind
	perform func(ctx context.Context) operation.Outcome
}

// Perform implements ledger.Effect, for a permit of exactly this attempt and kind.
func (e effect) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	if err := e.attempt.permits(p, e.kind); err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	return e.perform(ctx)
}

// permits refuses a permit that is empty, or was minted for anything else.
func (a *attempt) permits(p ledger.Permit, kind operation.Kind) error {
	in, call := p.Intent(), p.Call()
	if in.Kind != kind || in.Resource != a.order.Resource {
		return reason.New(reason.OperationPermitInvalid, fmt.Sprintf("the permit is not for %s of this environment", kind), a.order.Resource,
			"this is a fault of the caller: report it")
	}
	fence := a.order.Fence
	if kind == operation.Freeze || kind == operation.Reset || kind == operation.Destroy {
		// What closes an attempt may be asked for by a newer owner than the one that made the environment.
		fence.Generation = max(fence.Generation, call.Fence.Generation)
	}
	return call.Expect(a.order.Bundle.Digest(), fence)
}

// Resolve implements ledger.Effect for an environment of an earlier life.
func (e effect) Resolve(ctx context.Context, in operation.Intent) operation.Outcome {
	return e.attempt.provider.Resolve(ctx, in)
}

// Resolve says what became of an operation of an earlier life. Everything that an
// operation of this provider does dies with the worker, and a worker dies with the
// process that started it: once nothing bears the name, nothing of it is left. For an
// operation that removes, that is its effect.
func (p *Provider) Resolve(ctx context.Context, in operation.Intent) operation.Outcome {
	found, err := p.Reconcile(ctx, in.Resource)
	if err != nil {
		return operation.Refused(operation.Unknown, err)
	}
	switch {
	case in.Kind == operation.Destroy && in.Key.Purpose() == protocol.RetentionPurpose:
		return p.forget(found)
	case in.Kind == operation.Destroy:
		return p.destroyed(ctx, found, nil)
	case in.Kind == operation.Cancel || in.Kind == operation.Cleanup:
		return removed(found)
	}
	// Whether it took place nobody can say any more, and nothing depends on it.
	return operation.Outcome{
		Knowledge: operation.Unknown, Code: reason.OperationDissolved,
		Detail: "the environment is gone, and took with it whatever the operation had done",
	}
}

// removed is the outcome of an operation whose effect is that nothing bears a name.
func removed(found protocol.EnvironmentReconciliation) operation.Outcome {
	out := operation.Done(protocol.RemovalResult{Resource: found.Resource, WasAlive: found.WasAlive, Gone: found.Gone})
	if found.Gone {
		return out
	}
	out.Knowledge = operation.NotApplied
	return out.Because(reason.New(reason.EnvironmentStillAlive, "something still bears the name", found.Resource, "end it, and start writ again"))
}

// wire is the order as the worker is told it.
func (a *attempt) wire() worker.Order {
	return worker.Order{Bundle: a.order.Bundle.Digest(), Attempt: string(a.order.Fence.Attempt), Generation: a.order.Fence.Generation}
}

// Provision implements environment.Environment: it starts a worker from its sealed
// bytes, gives it the tool, and lets it confine and measure itself.
func (a *attempt) Provision() ledger.Effect { return effect{a, operation.Provision, a.provision} }

func (a *attempt) provision(ctx context.Context) operation.Outcome {
	binary, module, tool, err := a.pinned(ctx)
	if err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	w, err := worker.Start(ctx, worker.StartRequest{
		Binary: binary, Starter: a.provider.starter, Dir: a.provider.workspaces, Name: a.order.Resource,
		Limits: workerLimits(a.bundle.Environment.Limits, a.bundle.Inputs), Order: a.wire(),
	})
	if err != nil {
		return a.unless(ctx, err)
	}
	report, err := w.Provision(ctx, module, worker.Provision{
		Digest: tool, CacheDir: a.provider.cache, Resets: a.bundle.Environment.Reset == attemptbundle.ResetBeforeDestroy,
	})
	if err != nil {
		return a.unless(ctx, errors.Join(err, w.Close(context.WithoutCancel(ctx))))
	}
	a.mu.Lock()
	a.worker, a.report = w, report
	a.mu.Unlock()
	return operation.Done(protocol.ProvisionResult{Provider: Name, Resource: a.order.Resource})
}

// unless is the outcome of a provision that failed: not applied once nothing bears the
// name, unknown as long as that cannot be seen.
func (a *attempt) unless(ctx context.Context, err error) operation.Outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	if found, look := a.provider.Reconcile(ctx, a.order.Resource); look != nil || !found.Gone {
		return operation.Refused(operation.Unknown, errors.Join(err, look))
	}
	return operation.Refused(operation.NotApplied, err)
}

// lookTimeout bounds the look at what a failed provision left.
const lookTimeout = 20 * time.Second

// pinned returns the worker's sealed binary and the tool's bytes, both as the bundle
// pins them: a lock that has moved on meanwhile is refused.
func (a *attempt) pinned(ctx context.Context) (binary *pin.Sealed, module []byte, tool canonical.Digest, err error) {
	entry, err := a.provider.pins.Entry("worker", WorkerName)
	if err != nil {
		return nil, nil, "", err
	}
	if entry.Digest != a.bundle.Environment.Root {
		return nil, nil, "", moved(WorkerName, a.bundle.Environment.Root, entry.Digest)
	}
	if binary, err = a.provider.pins.Sealed(ctx, entry); err != nil {
		return nil, nil, "", err
	}
	if entry, err = a.provider.pins.Entry("tool", a.bundle.Execution.Tool); err != nil {
		return nil, nil, "", err
	}
	if a.tool() != entry.Digest {
		return nil, nil, "", moved(entry.Name, a.tool(), entry.Digest)
	}
	if module, err = a.provider.pins.Bytes(ctx, entry); err != nil {
		return nil, nil, "", err
	}
	return binary, module, entry.Digest, nil
}

func moved(name string, want, got canonical.Digest) error {
	return reason.New(reason.PinDigestMismatch, fmt.Sprintf("the lock has %s at %s, the attempt bundle pins %s", name, got, want), name,
		"submit the work order again: the lock has changed since")
}

// Attest implements environment.Environment.
func (a *attempt) Attest(context.Context) (attestation.Expectation, attestation.Report, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.worker == nil {
		return attestation.Expectation{}, attestation.Report{}, a.dead("attest")
	}
	expected, err := a.expected()
	return expected, a.report, err
}

// expected is what the worker has to measure of itself, when it is fresh and once it was
// reset.
func (a *attempt) expected() (attestation.Expectation, error) {
	return worker.Expectation(worker.Expected{
		Name: a.order.Resource, Generation: a.order.Fence.Generation, WorkerDigest: a.bundle.Environment.Root,
		ModuleDigest: a.tool(), Limits: workerLimits(a.bundle.Environment.Limits, a.bundle.Inputs),
	})
}

// Materialize implements environment.Environment.
func (a *attempt) Materialize(accepted attestation.Accepted, in environment.Inputs) ledger.Effect {
	return effect{a, operation.Materialize, func(ctx context.Context) operation.Outcome {
		if err := a.attested(accepted); err != nil {
			return operation.Refused(operation.NotApplied, err)
		}
		return a.materialize(ctx, in)
	}}
}

// attested refuses to go on without the acceptance of what this very worker measured.
func (a *attempt) attested(accepted attestation.Accepted) error {
	report, ok := accepted.Report()
	if ok {
		got, err := canonical.DigestOf(report)
		if err != nil {
			return err
		}
		a.mu.Lock()
		want, err := canonical.DigestOf(a.report)
		a.mu.Unlock()
		if err != nil {
			return err
		}
		ok = got == want
	}
	if !ok {
		return reason.New(reason.EnvironmentMismatch, "what this environment measured of itself was not accepted", a.order.Resource,
			"compare its report with the manifest first")
	}
	return nil
}

func (a *attempt) materialize(ctx context.Context, in environment.Inputs) operation.Outcome {
	w := a.living()
	if w == nil {
		return operation.Refused(operation.NotApplied, a.dead("materialize"))
	}
	for _, mount := range a.bundle.Inputs.Inputs {
		for _, f := range mount.Files {
			if err := copyIn(ctx, w, in, mount.Name, f); err != nil {
				return operation.Refused(operation.NotApplied, err)
			}
		}
	}
	digest, err := canonical.DigestOf(a.bundle.Inputs)
	if err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	files, bytes := a.bundle.Inputs.Totals()
	return operation.Done(protocol.MaterializeResult{Inputs: digest, Files: files, Bytes: bytes})
}

func copyIn(ctx context.Context, w *worker.Worker, in environment.Inputs, mount string, f protocol.InputFile) error {
	r, err := in.Open(ctx, mount, f.Path)
	if err != nil {
		return err
	}
	defer r.Close()
	return w.Materialize(ctx, []worker.File{{Mount: mount, Path: f.Path, Digest: f.Digest, Reader: io.LimitReader(r, f.Size+1)}})
}

// Launch implements environment.Environment: it lets the tool run, once.
func (a *attempt) Launch(accepted attestation.Accepted, offered func(payload []byte)) ledger.Effect {
	return effect{a, operation.Launch, func(ctx context.Context) operation.Outcome {
		if err := a.attested(accepted); err != nil {
			return operation.Refused(operation.NotApplied, err)
		}
		return a.launch(ctx, offered)
	}}
}

func (a *attempt) launch(ctx context.Context, offered func([]byte)) operation.Outcome {
	w := a.living()
	if w == nil {
		return operation.Refused(operation.NotApplied, a.dead("launch"))
	}
	a.mu.Lock()
	a.launched = true
	a.mu.Unlock()
	x := a.bundle.Execution
	exit, err := w.Run(ctx, worker.RunRequest{
		Args: append([]string{x.Tool}, x.Arguments...), Seed: x.Seed.Hex(), WallMillis: a.bundle.Environment.Limits.WallMillis,
		MaxOffer: a.bundle.Checkpoint.MaxBytes, Offered: offered,
	})
	if err != nil {
		if ctx.Err() != nil {
			return operation.Done(protocol.LaunchResult{Tool: a.tool(), Ended: protocol.EndedKilled})
		}
		return operation.Refused(operation.Unknown, err)
	}
	a.mu.Lock()
	a.ended = &exit
	a.mu.Unlock()
	out := operation.Done(a.launchResult(exit))
	if err := exit.Err(x.Tool); err != nil {
		out = out.Because(err)
	}
	return out
}

func (a *attempt) launchResult(exit worker.Exit) protocol.LaunchResult {
	r := protocol.LaunchResult{Tool: a.tool(), Stdout: canonical.Sum(exit.Stdout), Stderr: canonical.Sum(exit.Stderr)}
	switch exit.Kind {
	case wire.ExitCode:
		r.Ended, r.Status = protocol.EndedExited, int64(exit.Code)
	case wire.ExitTrap:
		r.Ended = protocol.EndedTrapped
	default:
		r.Ended, r.Limit = protocol.EndedLimit, string(exit.Limit)
	}
	return r
}

// tool is the digest at which the bundle pins the tool that is to run.
func (a *attempt) tool() canonical.Digest {
	for _, p := range a.bundle.Pins.Tools {
		if p.Name == a.bundle.Execution.Tool {
			return p.Digest
		}
	}
	return ""
}

// Printed implements environment.Environment.
func (a *attempt) Printed() [][]byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended == nil {
		return nil
	}
	return [][]byte{a.ended.Stdout, a.ended.Stderr}
}

// Gone implements environment.Environment: a worker whose guest was never asked to run,
// or has ended, runs nothing, and neither does a dead one.
func (a *attempt) Gone(context.Context, string) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.worker == nil || !a.launched || a.ended != nil || !a.worker.Alive(), nil
}

// Stop implements environment.Environment. A guest cannot be ended without its worker.
func (a *attempt) Stop(ctx context.Context, _ string) (bool, error) {
	a.mu.Lock()
	w := a.worker
	a.mu.Unlock()
	if w == nil {
		return false, nil
	}
	wasAlive := w.Alive()
	if err := w.Kill(); err != nil {
		return wasAlive, err
	}
	return wasAlive, w.Wait(ctx)
}

// living returns the worker, or nil when there is none that could take a request.
func (a *attempt) living() *worker.Worker {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.worker == nil || !a.worker.Alive() {
		return nil
	}
	return a.worker
}

func (a *attempt) dead(what string) error {
	return reason.New(reason.EnvironmentDead, "there is no living worker to "+what, a.order.Resource, "make a new attempt")
}
