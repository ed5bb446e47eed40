package supervisor

import (
	"fmt"
	"time"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
)

// executing returns the effect of an executor call.
func (d *drive) executing(p ledger.Permit) (ledger.Effect, error) {
	in := p.Intent()
	request, err := d.attempt.Ledger.Kernel().Request(d.state, in)
	if err != nil {
		return nil, err
	}
	a, err := d.adapter()
	if err != nil {
		return refusing{err}, nil
	}
	env, w := d.attempt.Environment, d.services
	switch in.Kind {
	case operation.Prepare:
		return executor.PrepareEffect{Adapter: a, Witness: w, Prober: env, Request: request}, nil
	case operation.Start:
		return executor.StartEffect{Adapter: a, Witness: w, Prober: env, Request: request, Handle: d.handle}, nil
	case operation.Checkpoint:
		return executor.CheckpointEffect{Adapter: a, Witness: w, Request: request, Handle: d.handle}, nil
	case operation.Collect:
		return executor.CollectEffect{Adapter: a, Witness: w, Collector: d, Request: request, Handle: d.handle}, nil
	case operation.Cancel:
		// The adapter is told and may take a part of the deadline; the rest is the host's.
		patience := time.Duration(d.state.Bundle.Bundle().CancellationDeadlineMillis) * time.Millisecond / 4
		return executor.CancelEffect{Adapter: a, Witness: w, Stopper: env, Request: request, Handle: d.handle, Patience: min(patience, maxPatience)}, nil
	case operation.Cleanup:
		return executor.CleanupEffect{Adapter: a, Witness: w, Prober: env, Request: request, Handle: d.handle}, nil
	}
	return nil, fmt.Errorf("attempt %s: no executor call is of kind %s", d.state.Attempt, in.Kind)
}

// maxPatience is the longest that an adapter is waited for while its workload is
// being cancelled.
const maxPatience = 2 * time.Second

// adapter returns the attempt's adapter, and starts it when it is first needed.
func (d *drive) adapter() (executor.Adapter, error) {
	if d.executor == nil {
		e, err := d.attempt.Executor(d.services)
		if err != nil {
			return nil, err
		}
		d.executor = e
	}
	return d.executor, nil
}

func (d *drive) closeExecutor() {
	if d.executor != nil {
		// It holds nothing outside its process; what a failed close leaves, the next
		// start of the host sweeps.
		_ = d.executor.Close()
	}
}

// prepare prepares the execution and keeps the handle.
func (d *drive) prepare(p ledger.Permit, e ledger.Effect) (bool, error) {
	ctx, cancel := d.patient()
	defer cancel()
	ok, err := d.run(ctx, p, e)
	if err != nil || !ok {
		return false, err
	}
	var r protocol.PrepareResult
	settle := d.pending[len(d.pending)-1].(kernel.Settle)
	if err := canonical.Decode(settle.Outcome.Result, &r); err != nil {
		return false, fmt.Errorf("result of %s: %w", settle.Key, err)
	}
	d.handle = r.Handle
	return true, nil
}
