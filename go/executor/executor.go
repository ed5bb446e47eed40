// Package executor holds the host's side of the executor protocol: the Adapter interface, what an adapter declares it
// can do, and the effects by which the ledger drives it. An adapter has no storage and no authority here: what it
// says is a claim, and what the host saw itself is a Witness.
package executor

import (
	"context"
	"time"

	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// Adapter is an executor adapter that was activated for one attempt. Its methods are safe for concurrent use.
//
// An error is a *reason.Refusal, alone or within a *Doubt. Alone it says that the call was never made. A Doubt says
// that the adapter may have got the call and that no usable answer came; by then the process that got it is dead
// and can do nothing more, and the next call starts the pinned binary anew.
type Adapter interface {
	// Capabilities returns what the pinned manifest declares; nothing runs for it.
	Capabilities() Capabilities
	// Prepare hands over the attempt bundle.
	Prepare(ctx context.Context, c protocol.Call, r protocol.Request) (Answer, error)
	// Start has the adapter launch its workload through the host. The handle is the one that Prepare returned, here
	// and below; it grants nothing.
	Start(ctx context.Context, c protocol.Call, r protocol.Request, handle string) (Answer, error)
	// Poll asks after the workload of a start and waits for news, at most as long as it is told. The call is that of
	// the start. A completed status was held against the host's own records.
	Poll(ctx context.Context, c protocol.Call, handle string, wait time.Duration) (Status, error)
	// Checkpoint asks for a checkpoint of the running workload.
	Checkpoint(ctx context.Context, c protocol.Call, r protocol.Request, handle string) (Answer, error)
	// Cancel tells the adapter that its workload is about to be stopped.
	Cancel(ctx context.Context, c protocol.Call, r protocol.Request, handle string) (Answer, error)
	// Collect asks which declared path holds the structured result.
	Collect(ctx context.Context, c protocol.Call, r protocol.Request, handle string) (Answer, error)
	// Reconcile asks what became of the operation of a call. It performs nothing.
	Reconcile(ctx context.Context, c protocol.Call, l wire.Locator) (Reconciliation, error)
	// Cleanup ends the adapter's part in the execution.
	Cleanup(ctx context.Context, c protocol.Call, r protocol.Request, handle string) (Answer, error)
}

// Answer is what an adapter says that a mutating call came to.
type Answer struct {
	// Result is the domain result in canonical JSON, empty with a refusal.
	Result canonical.Raw
	// Claim is the claim in canonical JSON, Effects the sub-operations that it lists.
	Claim   canonical.Raw
	Effects []wire.Effect
	// Refusal is set when the adapter says that it did nothing.
	Refusal *reason.Refusal
}

// Status is what a poll found.
type Status struct {
	// Completed says that nothing of the workload runs any more; Report says how it ended.
	Completed bool
	Report    protocol.CompletionReport
	// Refusal is set when the adapter says that it cannot go on.
	Refusal *reason.Refusal
}

// Reconciliation is what an adapter says became of an operation that it is asked about.
type Reconciliation struct {
	Knowledge operation.Knowledge
	// Answer is the answer that was lost, with Applied and NotApplied.
	Answer Answer
}

// Collected is the domain result by which an adapter answers collect: the declared path that holds the structured
// result, empty for none. It is compared with what the bundle declares and never resolved as it stands.
type Collected struct {
	Result string `json:"result"`
}

// Doubt says that a call may have reached the adapter and that no usable answer came back.
type Doubt struct {
	// Refusal says what is known: adapter.unavailable (it died, hung, or could not be reached any more),
	// adapter.protocol (what came back is no answer) or adapter.lied (it contradicts an earlier answer).
	Refusal *reason.Refusal
}

// Error renders the refusal.
func (d *Doubt) Error() string { return d.Refusal.Error() }

// Unwrap returns the refusal.
func (d *Doubt) Unwrap() error { return d.Refusal }
