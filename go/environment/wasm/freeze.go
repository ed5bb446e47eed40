package wasm

import (
	"context"
	"io"
	"iter"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/environment/wasm/worker"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// FreezeOutputs implements environment.Environment.
func (a *attempt) FreezeOutputs(store *artifact.Store) environment.Freezing {
	return &freezing{attempt: a, store: store}
}

// freezing freezes the workspace in the worker's memory.
type freezing struct {
	attempt *attempt
	store   *artifact.Store
	frozen  environment.Frozen
}

// Frozen implements environment.Freezing.
func (f *freezing) Frozen() environment.Frozen { return f.frozen }

// Perform implements ledger.Effect. The guest has ended before anything is read: the
// worker runs one guest, and says so only once nothing of it runs any more (F3).
func (f *freezing) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	a := f.attempt
	if err := a.permits(p, operation.Freeze); err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	a.mu.Lock()
	ended, report := a.ended, a.report
	a.mu.Unlock()
	w := a.living()
	switch {
	case ended == nil:
		return operation.Refused(operation.NotApplied, reason.New(reason.KernelWrongState,
			"the workspace is not frozen while its tool may still run", a.order.Resource, "wait until the launch is settled"))
	case w == nil:
		return operation.Refused(operation.NotApplied, a.dead("freeze"))
	}
	attested, err := canonical.DigestOf(report)
	if err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	frozen, refusal := artifact.Freeze(ctx, workspace{w}, a.bundle.Outputs.Policy, attested, f.store)
	if f.frozen, err = environment.Describe(ctx, frozen, f.store); err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	out := operation.Done(f.frozen.Result)
	if refusal != nil {
		out.Knowledge = operation.NotApplied
		return out.Because(refusal)
	}
	return out
}

// Resolve implements ledger.Effect for an environment of an earlier life.
func (f *freezing) Resolve(ctx context.Context, in operation.Intent) operation.Outcome {
	return f.attempt.provider.Resolve(ctx, in)
}

// workspace serves the memory of a worker whose guest has ended.
type workspace struct {
	worker *worker.Worker
}

// Entries implements artifact.Source.
func (s workspace) Entries(ctx context.Context) iter.Seq2[artifact.Entry, error] {
	return func(yield func(artifact.Entry, error) bool) {
		entries, err := s.worker.List(ctx)
		if err != nil {
			yield(artifact.Entry{}, err)
			return
		}
		for _, e := range entries {
			entry := artifact.Entry{Path: e.Path, Type: artifact.File, Size: e.Size, Links: 1}
			if e.Dir {
				entry.Type = artifact.Dir
			}
			if !yield(entry, nil) {
				return
			}
		}
	}
}

// Open implements artifact.Source.
func (s workspace) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	return io.NopCloser(s.worker.Open(ctx, path)), nil
}
