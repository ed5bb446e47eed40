package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/reason"
)

// follow polls the workload to its end and, where the bundle says so, takes checkpoints of it
// meanwhile. polled is what is wrong with the polling, err that of the journal.
func (d *drive) follow(ctx context.Context, p ledger.Permit, l *Launch) (status executor.Status, polled, err error) {
	policy := d.services.bundle.Checkpoint
	if !policy.Taken() {
		status, polled = d.poll(ctx, p, l)
		return status, polled, nil
	}
	end := make(chan ending, 1)
	go func() {
		status, err := d.poll(ctx, p, l)
		end <- ending{status, err}
	}()
	// The first offer is taken as it comes, each further one no sooner than an interval after
	// the one before.
	interval := time.NewTimer(0)
	defer interval.Stop()
	ready, taken := interval.C, int64(0)
	var news <-chan struct{}
	for {
		select {
		case e := <-end:
			return e.status, e.err, nil
		case <-ready:
			news = d.services.offers.news
			continue
		case <-news:
		}
		asked, err := d.checkpoint(l)
		if err != nil {
			// The workload ends with the context of whoever supervises, and the polling with it.
			return executor.Status{}, nil, err
		}
		if !asked {
			continue
		}
		news = nil
		if taken++; taken < policy.MaxCount && d.lied.Code == "" {
			interval.Reset(time.Duration(policy.IntervalMillis) * time.Millisecond)
		}
	}
}

// ending is what polling came to.
type ending struct {
	status executor.Status
	err    error
}

// checkpoint takes the newest offer: its intent is committed, the adapter is asked to propose
// it, and what became of that is committed at once, with the payload and the reducer's
// judgement. An attempt that is being stopped, or whose workload has ended, has no use for it;
// then, and where nothing is offered, it asks for none.
func (d *drive) checkpoint(l *Launch) (asked bool, err error) {
	if d.ctx.Err() != nil || !d.services.offers.waiting() {
		return false, nil
	}
	select {
	case <-l.Ended():
		return false, nil
	default:
	}
	if err := d.decide(); err != nil {
		return false, err
	}
	intent, err := d.attempt.Ledger.Kernel().Checkpoint(d.draft.State())
	if err != nil {
		return false, fmt.Errorf("attempt %s: %w", d.state.Attempt, err)
	}
	d.pending = append(d.pending, kernel.Begin{Intent: intent})
	opened, err := d.commit()
	if err != nil {
		return false, err
	}
	for _, p := range opened.Permits {
		if err := d.propose(p); err != nil {
			return false, err
		}
	}
	_, err = d.commit()
	return true, err
}

// propose has the adapter propose the newest offer.
func (d *drive) propose(p ledger.Permit) error {
	payload := d.services.offers.pin(p.Intent().Key)
	effect, err := d.executing(p)
	if err != nil {
		return err
	}
	ctx, cancel := d.patient()
	defer cancel()
	applied, err := d.settle(ctx, p, effect)
	if err != nil {
		return err
	}
	settled := d.pending[len(d.pending)-1].(kernel.Settle)
	if settled.Outcome.Code == reason.AdapterLied {
		d.lied = settled.Outcome
	}
	if !applied {
		return nil
	}
	// Kept whatever the reducer makes of it: a refused checkpoint is evidence.
	if err := d.keepPayload(payload); err != nil {
		return err
	}
	d.pending = append(d.pending, kernel.ProposeCheckpoint{Operation: settled.Key, Payload: payload})
	return nil
}

// keepPayload keeps the payload of a checkpoint, under the digest that its envelope names.
func (d *drive) keepPayload(payload []byte) error {
	_, blob, err := d.attempt.Artifacts.Put(d.closing(), bytes.NewReader(payload), int64(len(payload)), payloadMediaType)
	if err != nil {
		return fmt.Errorf("keep a checkpoint of %s: %w", d.state.Attempt, err)
	}
	if blob != nil {
		d.keep(*blob)
	}
	return nil
}

const payloadMediaType = "application/vnd.writ.checkpoint+json"
