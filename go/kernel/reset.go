package kernel

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// mayReset refuses a reset that the attempt bundle does not order, or that would come before
// the attempt is closed and its outputs are frozen: nothing could be collected any more.
func (d *decision) mayReset(in operation.Intent) error {
	if !d.state.resets() {
		return wrongState(string(in.Key), "a reset is for a frozen environment whose manifest orders one")
	}
	if !d.kernel.terminal(AttemptMachine, d.state) {
		return wrongState(string(in.Key), "an attempt that is not closed may still need what its environment holds")
	}
	return nil
}

// reset is what became of a reset. Only a result that says, for this environment, that
// nothing is left and what was measured makes one; all else is a reset that failed, and the
// environment is destroyed like any other that failed.
func (d *decision) reset(c Settle, receipt lifecycle.Guard) error {
	f := Failure{Conclusion: workorder.Failed, Stage: string(operation.Reset), Code: c.Outcome.Code, Detail: c.Outcome.Detail}
	if c.Outcome.Knowledge == operation.Applied {
		var r protocol.ResetResult
		err := canonical.Decode(c.Outcome.Result, &r)
		if err == nil && r.Resource == d.state.Resource && r.Report.Valid() && r.FilesLeft == 0 && r.BytesLeft == 0 {
			return d.of("environment.reset", nil, receipt)
		}
		f.Code, f.Detail = reason.EnvironmentMismatch, fmt.Sprintf("its result proves no reset: %d files and %d bytes are left", r.FilesLeft, r.BytesLeft)
	}
	g, err := report("FailureReport", f)
	if err != nil {
		return err
	}
	return d.of("environment.reset_failed", f, g)
}

// wasReset reports whether the environment stands as a reset left it.
func (d *decision) wasReset() bool {
	return d.in(EnvironmentMachine, "provisioned") && d.state.evidence["ResetReceipt"].Valid()
}
