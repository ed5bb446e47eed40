// Package way wires the real way of an attempt for benchmarks and for tests that need all
// of it: real journal, policies, adapter, worker. It is go/cmd/writ without the command
// line, and with a clock on every step and commit.
package way

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/writ-runtime/writ/go/adapterhost"
	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/artifact"
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
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/go/supervisor"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/schemas"
)

// Way is a runtime over one state folder. Carry may be called by several goroutines.
type Way struct {
	Journal   *sqlite.Store
	Ledger    *ledger.Ledger
	Artifacts *artifact.Store

	timed     *timedStore
	pins      *pin.Set
	starter   *confine.Starter
	admission *admission.Admission
	ids       *canonical.IDSource
	gate      ingress.Gate
	principal string
}

// Open wires a runtime over the state folder, which is made if there is none, with the
// release set in dist. Preconditions: the process holds no descriptors but those that
// confine.CloseInherited leaves.
func Open(ctx context.Context, dist, state string) (_ *Way, err error) {
	w := &Way{starter: confine.NewStarter(), principal: ingress.Local(os.Getuid())}
	w.gate = ingress.NewGate(w.principal)
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if w.pins, err = pin.Open(dist); err != nil {
		return nil, err
	}
	k, err := kernel.Open(schemas.FS)
	if err != nil {
		return nil, err
	}
	if w.Journal, err = sqlite.Open(ctx, state, sqlite.Options{Write: true, Activity: "way"}); err != nil {
		return nil, err
	}
	w.timed = newTimedStore(w.Journal)
	if w.Artifacts, err = artifact.Open(state, w.Journal, artifact.Options{Write: true}); err != nil {
		return nil, err
	}
	host := clock{time.Now()}
	w.Ledger = ledger.New(w.timed, k, host)
	w.ids = canonical.NewIDSource(func() int64 { return host.Now().UnixMilli }, rand.Reader)
	workspaces, cache := filepath.Join(state, "workspaces"), filepath.Join(state, "cache", "wasm")
	for _, dir := range []string{workspaces, cache} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return w, w.openAdmission(ctx, environment.NewProviders(wasm.New(w.pins, w.starter, workspaces, cache)))
}

func (w *Way) openAdmission(ctx context.Context, providers environment.Providers) error {
	raw, err := schemas.FS.ReadFile("actions.v1.json")
	if err != nil {
		return err
	}
	actions, err := capability.ParseRegistry(raw)
	if err != nil {
		return err
	}
	entry, err := w.pins.Entry("policy", "policies")
	if err != nil {
		return err
	}
	archive, err := w.pins.Bytes(ctx, entry)
	if err != nil {
		return err
	}
	files, err := policy.ReadArchive(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	policies, err := policy.Load(ctx, files, policy.Options{Registry: actions})
	if err != nil {
		return err
	}
	w.admission = &admission.Admission{
		Ledger: w.Ledger, Policies: policies, Actions: actions, Broker: broker.NewLocal(actions, broker.LocalTerms()),
		Providers: providers, Pins: w.pins, Artifacts: w.Artifacts, IDs: w.ids, Deployment: "local",
	}
	return nil
}

// Carry takes a work order all the way, from submission to the destruction of its
// environment. It tells of an attempt that did not succeed as an error.
func (w *Way) Carry(ctx context.Context, order []byte, origin string) (Account, error) {
	registry, err := schema.Open()
	if err != nil {
		return Account{}, err
	}
	begun := time.Now()
	doc, err := registry.Load("order.yaml", order, workorder.Kind)
	if err != nil {
		return Account{}, err
	}
	id, err := w.ids.Mint(ingress.DeliveryPrefix)
	if err != nil {
		return Account{}, err
	}
	accepted, err := w.gate.Accept(w.principal, ingress.Delivery{ID: string(id), Channel: "cli", Verb: ingress.Run, Content: doc.Canonical})
	if err != nil {
		return Account{}, err
	}
	admitted, err := w.admission.Admit(ctx, doc, origin, accepted)
	if err != nil {
		return Account{}, err
	}
	a := newAccount(admitted, time.Since(begun))
	a.State, err = w.supervise(ctx, admitted, accepted, a.observe)
	a.Total, a.Commits = time.Since(begun), w.timed.take(string(admitted.State.Attempt))
	w.Ledger.Forget(admitted.State.Attempt)
	if err == nil && (a.State.Result == nil || a.State.Result.Conclusion != workorder.Succeeded) {
		err = fmt.Errorf("attempt %s came to %+v", a.State.Attempt, a.State.Result)
	}
	return *a, err
}

func (w *Way) supervise(ctx context.Context, a *admission.Admitted, accepted ingress.Accepted, observe func(supervisor.Step)) (kernel.State, error) {
	fence := a.State.Fence()
	env, err := a.Provider.Open(environment.Order{Bundle: a.Bundle, Fence: fence, Resource: fence.ResourceName()})
	if err != nil {
		return kernel.State{}, err
	}
	attempt := supervisor.Attempt{
		Bundle: a.Bundle, First: []kernel.Command{a.Activate}, Blobs: a.Blobs,
		Ledger: w.Ledger, Environment: env, Provider: a.Provider, Artifacts: w.Artifacts, Inputs: a.Sources,
		Executor: func(s supervisor.Services) (supervisor.Executor, error) { return w.adapter(ctx, a, s) },
		Schema:   a.Schema, Validate: schema.ValidateResult,
		Actor: accepted.Receipt.Principal, Cause: accepted.Receipt.ID, Observe: observe,
	}
	return attempt.Run(ctx, a.State)
}

// adapter starts the pinned adapter that the bundle names.
func (w *Way) adapter(ctx context.Context, a *admission.Admitted, s supervisor.Services) (supervisor.Executor, error) {
	entry, err := w.pins.Entry("adapter", a.Bundle.Bundle().Pins.Adapter.Name)
	if err != nil {
		return nil, err
	}
	capabilities, err := executor.ParseCapabilities(entry.Manifest, entry.Name)
	if err != nil {
		return nil, err
	}
	sealed, err := w.pins.Sealed(ctx, entry)
	if err != nil {
		return nil, err
	}
	host, err := adapterhost.Launch(ctx, adapterhost.Config{Name: entry.Name, Sealed: sealed, Capabilities: capabilities, Starter: w.starter})
	if err != nil {
		return nil, err
	}
	session, err := host.Activate(a.Bundle, a.State.Fence(), s)
	if err != nil {
		return nil, errors.Join(err, host.Close())
	}
	return hosted{session, host}, nil
}

// hosted is a session that owns its host.
type hosted struct {
	*adapterhost.Session
	host *adapterhost.Host
}

func (h hosted) Close() error { return h.host.Close() }

// Close closes what is open. Children die with the starter.
func (w *Way) Close() error {
	w.starter.Close()
	var errs []error
	if w.Journal != nil {
		errs = append(errs, w.Journal.Close())
	}
	if w.pins != nil {
		errs = append(errs, w.pins.Close())
	}
	return errors.Join(errs...)
}
