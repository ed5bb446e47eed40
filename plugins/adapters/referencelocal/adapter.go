package main

import (
	"context"
	"fmt"

	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/sdk"
)

// adapter runs the one tool that the bundle orders. It remembers nothing: every answer follows from the bundle and
// from what the host has recorded. Base has nothing to do for cancel and cleanup.
type adapter struct{ sdk.Base }

// Prepare refuses a bundle that orders anything but one pinned WebAssembly tool.
func (adapter) Prepare(ctx context.Context, h sdk.Host, in sdk.Prepare) (sdk.Prepared, error) {
	b := in.Bundle
	switch {
	case in.Parameters.Adapter != b.Adapter.Digest:
		return sdk.Prepared{}, reason.New(reason.BundleDigestMismatch, "the request is for another adapter than the bundle pins", b.Adapter.Name, "prepare with the bundle's adapter")
	case b.Model || b.Harness:
		return sdk.Prepared{}, sdk.Unsupported("models and harnesses", "leave them out, or choose an executor for agents")
	case b.Tool == "":
		return sdk.Prepared{}, sdk.Unsupported("work without a tool", "name a tool of the lock file in the work order")
	case b.Launch().Parameters.Tool == "":
		return sdk.Prepared{}, reason.New(reason.BundleUnpinned, fmt.Sprintf("the bundle orders the tool %q and does not pin it", b.Tool), "execution.tool", "pin the tool in the lock")
	case b.Provider.Name != "wasm":
		return sdk.Prepared{}, sdk.Unsupported("the environment "+b.Provider.Name, "choose the environment provider wasm")
	}
	h.Log(ctx, sdk.LevelDebug, fmt.Sprintf("prepared %s with %d arguments", b.Tool, len(b.Arguments)))
	return sdk.Prepared{Handle: b.Handle()}, nil
}

// Start has the tool launched with exactly the parameters that the bundle orders.
func (adapter) Start(ctx context.Context, h sdk.Host, in sdk.Start) (sdk.Started, error) {
	if in.Parameters.Prompt != in.Bundle.Prompt {
		return sdk.Started{}, reason.New(reason.BundleDigestMismatch, "the request is for another prompt than the bundle's", "prompt", "start with the bundle's prompt")
	}
	_, err := h.Launch(ctx, in.Bundle.Launch())
	return sdk.Started{}, err
}

// Poll waits for the tool to end.
func (adapter) Poll(ctx context.Context, h sdk.Host, in sdk.Poll) (sdk.Status, error) {
	l, err := h.Observe(ctx, in.Bundle.Launch(), in.Wait)
	if err != nil || !l.Ended() {
		return sdk.Status{}, err
	}
	return sdk.Status{Completed: true, Launches: []sdk.Launched{l}}, nil
}

// Checkpoint proposes what the tool has offered, as it stands.
func (adapter) Checkpoint(ctx context.Context, h sdk.Host, in sdk.Checkpoint) (sdk.Checkpointed, error) {
	return sdk.TakeOffered(ctx, h, in)
}

// Collect names the declared path of the structured result. Whether anything stands there is for the host to see.
func (adapter) Collect(_ context.Context, _ sdk.Host, in sdk.Collect) (sdk.Collected, error) {
	if (in.Parameters != protocol.CollectParameters{Result: in.Bundle.Result, Schema: in.Bundle.Schema}) {
		return sdk.Collected{}, reason.New(reason.BundleDigestMismatch, "the request is for another result than the bundle declares", "outputs.result", "collect what the bundle declares")
	}
	return sdk.Collected{Result: in.Bundle.Result}, nil
}
