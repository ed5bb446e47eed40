package supervisor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/adapterhost"
	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/environment/wasm"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/supervisor"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/testing/fixture"
	"github.com/writ-runtime/writ/testing/parts"
)

// programs builds what the tests start, each once.
var programs *built.Builder

// TestMain begins as a host does.
func TestMain(m *testing.M) {
	if err := confine.CloseInherited(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(built.Run(m, func(b *built.Builder) { programs = b }))
}

// host is what the attempts of one test share.
type host struct {
	set     *pin.Set
	starter *confine.Starter
	cache   string
	// sockets is short: a path of a test is too long for sockets.
	sockets string
}

func newHost(t *testing.T) *host {
	t.Helper()
	adapter := programs.Path(t, "WRIT_TEST_REFERENCELOCAL", "github.com/writ-runtime/writ/plugins/adapters/referencelocal", "CGO_ENABLED=0")
	h := &host{starter: parts.Starter(t), cache: parts.Cache(t)}
	h.set = parts.Pin(t, parts.Worker(t, programs), parts.Empty(t, programs),
		parts.Adapter("reference-local", adapter, filepath.Join("..", "..", "plugins", "adapters", "referencelocal", "manifest.json")))
	var err error
	if h.sockets, err = os.MkdirTemp("", "wt"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(h.sockets) })
	return h
}

// rig is the fixed attempt with a real adapter, worker and ledger. What a test sets comes
// between the supervisor and them.
type rig struct {
	*fixture.Admitted
	t          *testing.T
	host       *host
	provider   environment.Provider
	workspaces string
	kept       string
	// attempt is what run runs.
	attempt supervisor.Attempt

	// before is called with each call to the adapter, before it is made.
	before func(s supervisor.Services, c protocol.Call)
	// started changes the answer to start; polled answers a poll in the adapter's place.
	started func(executor.Answer) executor.Answer
	polled  func(adapter func() (executor.Status, error)) (executor.Status, error)
	// launching is called with each launch, before the tool runs, with where it offers checkpoints.
	launching func(offered func(payload []byte))
	// checkpoint stands in for the adapter's answer to a checkpoint.
	checkpoint func(c protocol.Call, adapter func() (executor.Answer, error)) (executor.Answer, error)
	// gone and destroy stand in for those of the environment.
	gone    func() (bool, error)
	stop    func(ctx context.Context) error
	destroy func() (operation.Outcome, bool)
	// resetting is called before the environment is reset; measured changes what it then
	// measured.
	resetting func()
	measured  func(attestation.Report) attestation.Report
}

// newRig admits the attempt; change, if not nil, alters its bundle.
func (h *host) newRig(t *testing.T, change func(*attemptbundle.Bundle)) *rig {
	t.Helper()
	adapter, err := h.set.Entry("adapter", "reference-local")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, host: h, workspaces: t.TempDir(), kept: t.TempDir()}
	r.provider = wasm.New(h.set, h.starter, r.workspaces, h.cache, parts.Kept(r.kept))
	r.Admitted = fixture.Admit(t, func(b *attemptbundle.Bundle) {
		parts.Order(t, b, r.provider, h.set, "empty")
		b.Pins.Adapter = attemptbundle.Pin{Name: adapter.Name, Version: adapter.Version, Digest: adapter.Digest}
		b.Outputs.Policy.Paths = []protocol.Declared{{Path: "ok", MediaType: "text/plain", Required: true}}
		b.Outputs.Result, b.Outputs.Schema = "", ""
		if change != nil {
			change(b)
		}
	})
	fence := r.State.Fence()
	env, err := r.provider.Open(environment.Order{Bundle: r.Bundle, Fence: fence, Resource: fence.ResourceName()})
	if err != nil {
		t.Fatal(err)
	}
	store, err := artifact.Open(r.Dir, r.Store, artifact.Options{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	docs := t.TempDir()
	if err := os.WriteFile(filepath.Join(docs, "a.txt"), []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.attempt = supervisor.Attempt{
		Bundle: r.Bundle, First: []kernel.Command{r.Activation()}, Ledger: r.Ledger, Environment: between{env, r}, Provider: r.provider,
		Executor: r.adapter, Artifacts: store, Inputs: admission.NewSources(docs, []workorder.Input{{Name: "docs", Source: docs}}), Actor: "uid:0",
	}
	return r
}

// run runs the attempt, and returns what the journal alone says of it afterwards.
func (r *rig) run() kernel.State {
	r.t.Helper()
	if _, err := r.attempt.Run(r.t.Context(), r.State); err != nil {
		r.t.Fatal(err)
	}
	s, err := ledger.Load(r.t.Context(), r.Store, r.Ledger.Kernel(), fixture.Attempt)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// adapter starts the pinned adapter, as the command does.
func (r *rig) adapter(s supervisor.Services) (supervisor.Executor, error) {
	ctx := r.t.Context()
	entry, err := r.host.set.Entry("adapter", r.Bundle.Bundle().Pins.Adapter.Name)
	if err != nil {
		return nil, err
	}
	capabilities, err := executor.ParseCapabilities(entry.Manifest, entry.Name)
	if err != nil {
		return nil, err
	}
	sealed, err := r.host.set.Sealed(ctx, entry)
	if err != nil {
		return nil, err
	}
	h, err := adapterhost.Launch(ctx, adapterhost.Config{
		Name: entry.Name, Sealed: sealed, Capabilities: capabilities, Folder: r.host.sockets,
	})
	if err != nil {
		return nil, err
	}
	session, err := h.Activate(r.Bundle, r.State.Fence(), s)
	if err != nil {
		return nil, err
	}
	return adapter{session, h, s, r}, nil
}

// adapter is the real one, and what the test has between.
type adapter struct {
	*adapterhost.Session
	host     *adapterhost.Host
	services supervisor.Services
	rig      *rig
}

func (a adapter) Close() error { return a.host.Close() }

func (a adapter) Prepare(ctx context.Context, c protocol.Call, q protocol.Request) (executor.Answer, error) {
	a.called(c)
	return a.Session.Prepare(ctx, c, q)
}

func (a adapter) Start(ctx context.Context, c protocol.Call, q protocol.Request, handle string) (executor.Answer, error) {
	a.called(c)
	answer, err := a.Session.Start(ctx, c, q, handle)
	if a.rig.started != nil {
		answer = a.rig.started(answer)
	}
	return answer, err
}

func (a adapter) Poll(ctx context.Context, c protocol.Call, handle string, wait time.Duration) (executor.Status, error) {
	real := func() (executor.Status, error) { return a.Session.Poll(ctx, c, handle, wait) }
	if a.rig.polled != nil {
		return a.rig.polled(real)
	}
	return real()
}

func (a adapter) Checkpoint(ctx context.Context, c protocol.Call, q protocol.Request, handle string) (executor.Answer, error) {
	real := func() (executor.Answer, error) { return a.Session.Checkpoint(ctx, c, q, handle) }
	if a.rig.checkpoint != nil {
		return a.rig.checkpoint(c, real)
	}
	return real()
}

func (a adapter) called(c protocol.Call) {
	if a.rig.before != nil {
		a.rig.before(a.services, c)
	}
}

// between is the real environment, and what the test has between.
type between struct {
	environment.Environment
	rig *rig
}

func (b between) Launch(a attestation.Accepted, offered func(payload []byte)) ledger.Effect {
	return launching{b.Environment.Launch(a, offered), b.rig, offered}
}

// launching is the real launch, and what the test has before it.
type launching struct {
	ledger.Effect
	rig     *rig
	offered func(payload []byte)
}

func (l launching) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	if l.rig.launching != nil {
		l.rig.launching(l.offered)
	}
	return l.Effect.Perform(ctx, p)
}

func (b between) Gone(ctx context.Context, resource string) (bool, error) {
	if b.rig.gone != nil {
		return b.rig.gone()
	}
	return b.Environment.Gone(ctx, resource)
}

func (b between) Stop(ctx context.Context, resource string) (bool, error) {
	if b.rig.stop != nil {
		return true, b.rig.stop(ctx)
	}
	return b.Environment.Stop(ctx, resource)
}

func (b between) Destroy(policy protocol.RetentionParameters) ledger.Effect {
	return destroying{b.Environment.Destroy(policy), b.rig}
}

// destroying is the real destruction, unless the test says that it comes to something
// else.
type destroying struct {
	ledger.Effect
	rig *rig
}

func (d destroying) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	if d.rig.destroy != nil {
		if out, instead := d.rig.destroy(); instead {
			return out
		}
	}
	return d.Effect.Perform(ctx, p)
}

// ended returns what became of the operation of a kind and purpose.
func ended(t *testing.T, s kernel.State, kind operation.Kind, purpose string) operation.Outcome {
	t.Helper()
	for _, o := range s.Operations() {
		if o.Intent.Kind == kind && o.Intent.Key.Purpose() == purpose {
			return o.Record.Outcome
		}
	}
	t.Errorf("there is no %s of purpose %s", kind, purpose)
	return operation.Outcome{}
}
