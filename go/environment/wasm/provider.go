// Package wasm is the environment provider for WebAssembly tools: a confined worker
// process an attempt, which holds the tool, its inputs and its workspace in memory and
// sees nothing of the host.
package wasm

import (
	"context"
	"fmt"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/environment/wasm/worker"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/retention"
)

// Name is the provider's name in work orders and bundles.
const Name = "wasm"

// Version is the version of what a manifest of this provider means.
const Version = "0.1.0"

// WorkerName is the worker's name in the lock.
const WorkerName = "writ-wasm"

// Provider builds wasm environments. It is safe for concurrent use.
type Provider struct {
	pins    *pin.Set
	starter *confine.Starter
	// workspaces is the folder in which resources are named; cache holds compiled
	// code and is private to the owner of the state folder.
	workspaces, cache string
	kept              *retention.Store
}

// New returns the provider. The folders must exist. kept is where it keeps workspaces.
func New(pins *pin.Set, starter *confine.Starter, workspaces, cache string, kept *retention.Store) *Provider {
	return &Provider{pins: pins, starter: starter, workspaces: workspaces, cache: cache, kept: kept}
}

// Capabilities implements environment.Provider.
func (p *Provider) Capabilities() environment.Capabilities {
	return environment.Capabilities{
		Name: Name, Version: Version, Isolation: environment.EphemeralIsolated, Platform: "wasip1/wasm",
		Actions:    []string{"input.read", "output.write", "artifact.write", "result.report", "tool.run", "checkpoint.propose"},
		Checkpoint: true, Retention: true,
	}
}

// Manifest implements environment.Provider.
func (p *Provider) Manifest(limits attemptbundle.Limits) (attemptbundle.EnvironmentManifest, error) {
	if err := workerLimits(limits, protocol.InputManifest{}).Check(); err != nil {
		return attemptbundle.EnvironmentManifest{}, err
	}
	entry, err := p.pins.Entry("worker", WorkerName)
	if err != nil {
		return attemptbundle.EnvironmentManifest{}, err
	}
	return attemptbundle.EnvironmentManifest{
		Kind:     attemptbundle.EnvironmentKind,
		Provider: attemptbundle.Pin{Name: Name, Version: Version, Digest: entry.Digest},
		Platform: "wasip1/wasm", Root: entry.Digest, Isolation: environment.EphemeralIsolated,
		Network: "none", Workspace: "memory", Limits: limits, Credentials: []string{},
		Reset: attemptbundle.NoReset, Cleanup: "destroy",
	}, nil
}

// Open implements environment.Provider.
func (p *Provider) Open(o environment.Order) (environment.Environment, error) {
	b := o.Bundle.Bundle()
	if b.Environment.Provider.Name != Name {
		return nil, fmt.Errorf("environment of %s: the bundle orders provider %q", o.Resource, b.Environment.Provider.Name)
	}
	return &attempt{provider: p, order: o, bundle: b}, nil
}

// Reconcile implements environment.Provider.
func (p *Provider) Reconcile(ctx context.Context, resource string) (protocol.EnvironmentReconciliation, error) {
	found, err := worker.Resolve(ctx, p.workspaces, resource)
	if err != nil {
		return protocol.EnvironmentReconciliation{Resource: resource}, fmt.Errorf("reconcile %s: %w", resource, err)
	}
	return protocol.EnvironmentReconciliation{Resource: resource, WasAlive: found.WasAlive, Gone: found.Gone}, nil
}

// workerLimits are the limits of a worker for the limits of a manifest. Inputs are
// known to the byte, so their limit is what they are, and one byte by which a file that
// has grown since shows.
func workerLimits(l attemptbundle.Limits, inputs protocol.InputManifest) worker.Limits {
	w := wire.Defaults()
	files, bytes := inputs.Totals()
	w.InputFiles, w.InputBytes = max(files, 1), bytes+1
	w.MemoryPages = l.MemoryBytes >> 16
	w.CPUSeconds = (l.CPUMillis + 999) / 1000
	w.StdioBytes = l.StdoutBytes
	w.WorkspaceBytes, w.FileBytes = l.DiskBytes, l.DiskBytes
	w.WorkspaceFiles = l.Files
	return w
}
