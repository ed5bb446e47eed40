package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/ledger"
)

// reset has the environment emptied and measured anew, and keeps what it measured. It is
// given the bundle's deadline: what does not answer by then is destroyed as it is.
func (d *drive) reset(p ledger.Permit) (bool, error) {
	deadline := time.Duration(d.state.Bundle.Bundle().Reconciliation.DeadlineMillis) * time.Millisecond
	ctx, cancel := context.WithTimeout(d.closing(), deadline)
	defer cancel()
	return d.settle(ctx, p, d.attempt.Environment.Reset(func(expected attestation.Expectation, report attestation.Report) error {
		if _, err := d.attempt.Ledger.Kernel().Accept(d.state, expected, report); err != nil {
			return err
		}
		raw, err := canonical.Marshal(report)
		if err != nil {
			return fmt.Errorf("attestation report after a reset: %w", err)
		}
		_, blob, err := d.attempt.Artifacts.Put(d.closing(), bytes.NewReader(raw), int64(len(raw)), "application/json")
		if blob != nil {
			d.keep(*blob)
		}
		return err
	}))
}
