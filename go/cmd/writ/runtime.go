package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/writ-runtime/writ/go/adapterhost"
	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/broker"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/environment/wasm"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/supervisor"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/schemas"
)

// deployment is the deployment whose policy this release applies.
const deployment = "local"

// runtime is everything that an attempt needs, wired together over one state folder.
type runtime struct {
	state     string
	journal   *sqlite.Store
	kernel    kernel.Kernel
	ledger    *ledger.Ledger
	artifacts *artifact.Store
	pins      *pin.Set
	starter   *confine.Starter
	providers environment.Providers
	admission *admission.Admission
	ids       *canonical.IDSource
	gate      ingress.Gate
}

// openRuntime opens the state folder for writing, and makes it if there is none.
func (c *command) openRuntime(ctx context.Context, activity string) (_ *runtime, err error) {
	dist, err := c.findDist()
	if err != nil {
		return nil, err
	}
	r := &runtime{state: c.state, starter: confine.NewStarter()}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if r.pins, err = pin.Open(dist); err != nil {
		return nil, err
	}
	if r.kernel, err = kernel.Open(schemas.FS); err != nil {
		return nil, err
	}
	if r.journal, err = sqlite.Open(ctx, c.state, sqlite.Options{Write: true, Activity: activity}); err != nil {
		return nil, err
	}
	if r.artifacts, err = artifact.Open(c.state, r.journal, artifact.Options{Write: true, SweepBefore: time.Now().Add(-time.Hour)}); err != nil {
		return nil, err
	}
	// A courtesy to a folder that many share: what belongs to others stays theirs.
	_ = adapterhost.Sweep(socketFolder())
	host := clock{begun: time.Now()}
	r.ledger = ledger.New(r.journal, r.kernel, host)
	r.ids = canonical.NewIDSource(func() int64 { return host.Now().UnixMilli }, rand.Reader)
	if err := r.openProviders(); err != nil {
		return nil, err
	}
	if r.gate, err = ownersGate(c.state); err != nil {
		return nil, err
	}
	return r, r.openAdmission(ctx)
}

// openProviders makes the folders that providers name resources in.
func (r *runtime) openProviders() error {
	workspaces, cache := filepath.Join(r.state, "workspaces"), filepath.Join(r.state, "cache", "wasm")
	for _, dir := range []string{workspaces, cache} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return reason.New(reason.JournalReadOnly, "a folder of the state cannot be made", dir, "make the state folder writable").Because(err)
		}
	}
	r.providers = environment.NewProviders(wasm.New(r.pins, r.starter, workspaces, cache))
	return nil
}

// openAdmission loads the pinned policies.
func (r *runtime) openAdmission(ctx context.Context) error {
	raw, err := fs.ReadFile(schemas.FS, "actions.v1.json")
	if err != nil {
		return err
	}
	actions, err := capability.ParseRegistry(raw)
	if err != nil {
		return err
	}
	policies, err := loadPolicies(ctx, r.pins, actions)
	if err != nil {
		return err
	}
	r.admission = &admission.Admission{
		Ledger: r.ledger, Policies: policies, Actions: actions, Broker: broker.NewLocal(actions, broker.LocalTerms()),
		Providers: r.providers, Pins: r.pins, Artifacts: r.artifacts, IDs: r.ids, Deployment: deployment,
	}
	return nil
}

func loadPolicies(ctx context.Context, pins *pin.Set, actions *capability.Registry) (*policy.Engine, error) {
	entry, err := pins.Entry("policy", "policies")
	if err != nil {
		return nil, err
	}
	archive, err := pins.Bytes(ctx, entry)
	if err != nil {
		return nil, err
	}
	files, err := policy.ReadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	return policy.Load(ctx, files, policy.Options{Registry: actions})
}

// ownersGate lets the owner of the state folder command it, and nobody else.
func ownersGate(state string) (ingress.Gate, error) {
	uid, err := ownerOf(state)
	if err != nil {
		return ingress.Gate{}, err
	}
	return ingress.NewGate(ingress.Local(uid)), nil
}

// accept receipts a delivery of this command line.
func (r *runtime) accept(verb ingress.Verb, content []byte) (ingress.Accepted, error) {
	id, err := r.ids.Mint(ingress.DeliveryPrefix)
	if err != nil {
		return ingress.Accepted{}, err
	}
	return r.gate.Accept(ingress.Local(os.Getuid()), ingress.Delivery{ID: string(id), Channel: "cli", Verb: verb, Content: content})
}

// adapter starts the pinned adapter that a bundle names, for one attempt.
func (r *runtime) adapter(ctx context.Context, b *attemptbundle.Compiled, fence workorder.Fence) func(supervisor.Services) (supervisor.Executor, error) {
	return func(s supervisor.Services) (supervisor.Executor, error) {
		entry, err := r.pins.Entry("adapter", b.Bundle().Pins.Adapter.Name)
		if err != nil {
			return nil, err
		}
		capabilities, err := executor.ParseCapabilities(entry.Manifest, entry.Name)
		if err != nil {
			return nil, err
		}
		sealed, err := r.pins.Sealed(ctx, entry)
		if err != nil {
			return nil, err
		}
		host, err := adapterhost.Launch(ctx, adapterhost.Config{
			Name: entry.Name, Sealed: sealed, Capabilities: capabilities, Starter: r.starter, Folder: socketFolder(),
		})
		if err != nil {
			return nil, err
		}
		session, err := host.Activate(b, fence, s)
		if err != nil {
			return nil, errors.Join(err, host.Close())
		}
		return hosted{session, host}, nil
	}
}

// socketFolder is where adapters have their sockets. A folder for temporary files can
// have a path that leaves no room for a socket's name; then it is the system's own.
func socketFolder() string {
	if dir := os.TempDir(); len(dir) <= adapterhost.MaxFolder {
		return dir
	}
	return "/tmp"
}

// hosted is a session that owns its host.
type hosted struct {
	*adapterhost.Session
	host *adapterhost.Host
}

// Close ends the adapter's process.
func (h hosted) Close() error { return h.host.Close() }

// Close closes what is open. Children die with the starter.
func (r *runtime) Close() error {
	r.starter.Close()
	var errs []error
	if r.journal != nil {
		errs = append(errs, r.journal.Close())
	}
	if r.pins != nil {
		errs = append(errs, r.pins.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close %s: %w", r.state, err)
	}
	return nil
}
