package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// Launch is the one launch that an attempt bundle orders, with the permit for it. An
// adapter asks for it through the host; however often it asks, the launch is
// performed once.
type Launch struct {
	ledger *ledger.Ledger
	permit ledger.Permit
	effect ledger.Effect
	ctx    context.Context

	once sync.Once
	done chan struct{}
	// settle and err are written before done is closed.
	settle kernel.Settle
	err    error
}

func newLaunch(ctx context.Context, l *ledger.Ledger, p ledger.Permit, e ledger.Effect) *Launch {
	return &Launch{ledger: l, permit: p, effect: e, ctx: ctx, done: make(chan struct{})}
}

// Intent is what was ordered; an adapter that asks for anything else is refused.
func (l *Launch) Intent() operation.Intent { return l.permit.Intent() }

// Start performs the launch in the background. It returns at once.
func (l *Launch) Start() {
	l.once.Do(func() {
		go func() {
			defer close(l.done)
			l.settle, l.err = l.ledger.Run(l.ctx, l.permit, l.effect)
		}()
	})
}

// Ended is closed once the launch has ended, or was skipped.
func (l *Launch) Ended() <-chan struct{} { return l.done }

// Record is the record of the launch. Preconditions: Ended is closed.
func (l *Launch) Record() operation.Record {
	return operation.Record{Intent: l.permit.Intent(), Outcome: l.settle.Outcome, Receipt: l.settle.Receipt}
}

// finish waits for a launch that was asked for, and skips one that was not.
func (l *Launch) finish(why string) (kernel.Settle, error) {
	l.once.Do(func() {
		defer close(l.done)
		l.settle, l.err = l.ledger.Skip(l.permit, why)
	})
	<-l.done
	return l.settle, l.err
}

// start starts the workload and waits until nothing of it runs any more.
func (d *drive) start(p ledger.Permit, rest []ledger.Permit) (bool, error) {
	if len(rest) != 1 || rest[0].Intent().Kind != operation.Launch {
		return false, fmt.Errorf("attempt %s: start was planned without its launch", d.state.Attempt)
	}
	// It ends with the right to go on with it.
	may, stop := context.WithCancelCause(d.ctx)
	defer stop(nil)
	l := newLaunch(may, d.attempt.Ledger, rest[0], d.attempt.Environment.Launch(d.accepted, d.services.offers.put))
	d.services.offer(l)
	effect, err := d.executing(p)
	if err != nil {
		return false, err
	}
	ctx, cancel := d.patient()
	defer cancel()
	started, err := d.settle(ctx, p, effect)
	if err != nil {
		return false, err
	}
	startOutcome := d.pending[len(d.pending)-1].(kernel.Settle).Outcome
	var status executor.Status
	var polled error
	if started {
		d.observe(Step{Operation: operation.Launch})
		if status, polled, err = d.follow(ctx, p, l); err != nil {
			return false, err
		}
		if d.heart.stopped() {
			stop(polled)
		}
	}
	settle, err := l.finish("the adapter never asked for it")
	if err != nil {
		return false, err
	}
	d.pending = append(d.pending, settle)
	d.told = append(d.told, Step{Operation: operation.Launch, Done: true, Outcome: settle.Outcome, Micros: settle.ElapsedMicros})
	kept := d.keepPrinted()
	switch {
	case d.heart.stopped():
		return false, nil // What follows from that is the next turn's business.
	case kept != nil:
		d.fail(operation.Launch, operation.Refused(operation.Applied, kept))
	case !started, startOutcome.Code != "":
		d.fail(operation.Start, startOutcome)
	case settle.Outcome.Code != "" || settle.Outcome.Knowledge != operation.Applied:
		d.fail(operation.Launch, settle.Outcome)
	case d.lied.Code != "":
		d.fail(operation.Checkpoint, d.lied)
	case polled != nil:
		d.fail(operation.Start, operation.Refused(operation.Applied, polled))
	default:
		if d.ctx.Err() == nil {
			d.pending = append(d.pending, kernel.Complete{Report: status.Report})
		}
		return true, nil
	}
	return false, nil
}

// keepPrinted keeps what the workload printed, under the digests that the launch's
// result names.
func (d *drive) keepPrinted() error {
	for _, text := range d.attempt.Environment.Printed() {
		_, blob, err := d.attempt.Artifacts.Put(d.closing(), bytes.NewReader(text), int64(len(text)), "application/octet-stream")
		if err != nil {
			return fmt.Errorf("keep what %s printed: %w", d.state.Attempt, err)
		}
		if blob != nil {
			d.keep(*blob)
		}
	}
	return nil
}

// keep adds blobs to the next turn, each once.
func (d *drive) keep(blobs ...journal.Blob) {
	for _, b := range blobs {
		if !slices.ContainsFunc(d.blobs, func(x journal.Blob) bool { return x.Digest == b.Digest }) {
			d.blobs = append(d.blobs, b)
		}
	}
}

// pollWait is how long one poll waits for news; how often is polled changes nothing
// but the number of calls.
const pollWait = 5 * time.Second

// poll asks the adapter until it reports completion. The workload's own end bounds it:
// an adapter that still says "running" afterwards is given one more poll.
func (d *drive) poll(ctx context.Context, p ledger.Permit, l *Launch) (executor.Status, error) {
	for last := false; ; {
		status, err := d.executor.Poll(ctx, p.Call(), d.handle, pollWait)
		switch {
		case err != nil:
			return executor.Status{}, err
		case status.Refusal != nil:
			return executor.Status{}, status.Refusal
		case status.Completed:
			return status, nil
		}
		if err := d.heart.beat(ctx); err != nil {
			return executor.Status{}, err
		}
		if last {
			return executor.Status{}, reason.New(reason.AdapterLied, "the adapter says that its workload runs, and the host saw it end",
				string(l.Intent().Key), "report it to the adapter's vendor")
		}
		select {
		case <-l.Ended():
			last = true
		default:
		}
	}
}
