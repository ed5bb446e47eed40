package sdk

import (
	"context"
	"time"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
)

// Adapter is what a vendor implements. Methods are called concurrently for different attempts.
type Adapter interface {
	// Prepare checks that the adapter can carry out the bundle, and names the execution. Nothing runs yet.
	Prepare(ctx context.Context, h Host, in Prepare) (Prepared, error)
	// Start has the workload launched and returns once it is.
	Start(ctx context.Context, h Host, in Start) (Started, error)
	// Poll waits for news of the workload, at most in.Wait.
	Poll(ctx context.Context, h Host, in Poll) (Status, error)
	// Checkpoint proposes a checkpoint of the running workload.
	Checkpoint(ctx context.Context, h Host, in Checkpoint) (Checkpointed, error)
	// Cancel is told that the host is about to stop the workload.
	Cancel(ctx context.Context, h Host, in Cancel) error
	// Collect names the declared path that holds the structured result.
	Collect(ctx context.Context, h Host, in Collect) (Collected, error)
	// Reconcile says what became of a start whose answer was lost. It launches nothing.
	Reconcile(ctx context.Context, h Host, in Reconcile) (Reconciled, error)
	// Cleanup ends the adapter's part in the execution.
	Cleanup(ctx context.Context, h Host, in Cleanup) error
}

// Info is what an adapter says about itself.
type Info struct {
	// Name is the actor in the keys of its operations, and Version its release; both as the lock file pins them.
	Name, Version string
	// Capabilities is the capability manifest that the lock file pins, of kind writ.executor_capabilities.v1.
	Capabilities []byte
}

// Prepare is the input of Adapter.Prepare.
type Prepare struct {
	Call       protocol.Call
	Bundle     *Bundle
	Parameters protocol.PrepareParameters
}

// Prepared is the result of Adapter.Prepare.
type Prepared struct {
	// Handle names the execution, 1 to 256 printable ASCII characters. It must follow from the bundle.
	Handle string
}

// Start is the input of Adapter.Start.
type Start struct {
	Call       protocol.Call
	Bundle     *Bundle
	Parameters protocol.StartParameters
	Handle     string
}

// Started is the result of Adapter.Start.
type Started struct{}

// Poll is the input of Adapter.Poll. The call is that of the start.
type Poll struct {
	Call   protocol.Call
	Bundle *Bundle
	Handle string
	Wait   time.Duration
}

// Status is the result of Adapter.Poll: whether nothing of the workload runs any more, and then every launch in the
// order in which it was made, as Host.Observe showed it.
type Status struct {
	Completed bool
	Launches  []Launched
}

// Checkpoint is the input of Adapter.Checkpoint.
type Checkpoint struct {
	Call       protocol.Call
	Bundle     *Bundle
	Parameters protocol.CheckpointParameters
	Handle     string
}

// Checkpointed is the result of Adapter.Checkpoint: the payload that Host.Offered gave, by its kind and digest. Whether
// anything may start from it is for the host to judge.
type Checkpointed struct {
	PayloadKind  string
	Payload      canonical.Digest
	PayloadBytes int64
}

// Cancel is the input of Adapter.Cancel.
type Cancel struct {
	Call       protocol.Call
	Bundle     *Bundle
	Parameters protocol.CancelParameters
	Handle     string
}

// Collect is the input of Adapter.Collect.
type Collect struct {
	Call       protocol.Call
	Bundle     *Bundle
	Parameters protocol.CollectParameters
	Handle     string
}

// Collected is the result of Adapter.Collect.
type Collected struct {
	// Result is the declared path of the structured result, empty for none.
	Result string
}

// Reconcile is the input of Adapter.Reconcile. The call is that of the operation that is asked about.
type Reconcile struct {
	Call     protocol.Call
	Bundle   *Bundle
	Resource string
	Handle   string
}

// Reconciled is the result of Adapter.Reconcile.
type Reconciled struct {
	Knowledge operation.Knowledge
}

// Cleanup is the input of Adapter.Cleanup.
type Cleanup struct {
	Call       protocol.Call
	Bundle     *Bundle
	Parameters protocol.RetentionParameters
	Handle     string
}
