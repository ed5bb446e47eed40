package dispatcher_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/dispatcher"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/environment/wasm"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/testing/fixture"
	"github.com/writ-runtime/writ/testing/parts"
)

// programs builds what the tests start, each once.
var programs *built.Builder

func TestMain(m *testing.M) { os.Exit(built.Run(m, func(b *built.Builder) { programs = b })) }

// life is the fixed attempt in a real ledger, and its environment with a real worker. Its
// steps are those of a supervisor, which ends after any of them.
type life struct {
	*fixture.Admitted
	t          *testing.T
	provider   environment.Provider
	env        environment.Environment
	workspaces string
	kept       string
	// permits are those of the newest turn, settled what is known of the turn before.
	permits []ledger.Permit
	settled []kernel.Command
	// guest is how the launch ended, once it has.
	guest chan operation.Outcome
}

// host is what the lives of one test share.
type host struct {
	set     *pin.Set
	starter *confine.Starter
	cache   string
}

func newHost(t *testing.T) *host {
	t.Helper()
	return &host{set: parts.Pin(t, parts.Worker(t, programs), parts.BadTools(t, programs)), starter: parts.Starter(t), cache: parts.Cache(t)}
}

func (h *host) newLife(t *testing.T) *life {
	t.Helper()
	return h.newLifeOf(t, func(*attemptbundle.Bundle) {}, "loop")
}

// newLifeOf is newLife for a bundle that change alters, and a tool that misbehaves otherwise.
func (h *host) newLifeOf(t *testing.T, change func(*attemptbundle.Bundle), way string) *life {
	t.Helper()
	l := &life{t: t, workspaces: t.TempDir(), kept: t.TempDir(), guest: make(chan operation.Outcome, 1)}
	l.provider = wasm.New(h.set, h.starter, l.workspaces, h.cache, parts.Kept(l.kept))
	l.Admitted = fixture.Admit(t, func(b *attemptbundle.Bundle) {
		parts.Order(t, b, l.provider, h.set, "badtools", way)
		change(b)
	})
	return l
}

// begin activates the attempt, and begins provision, materialize and prepare.
func (l *life) begin() {
	l.t.Helper()
	l.permits = l.Next(l.Activation()).Permits
	env, err := l.provider.Open(environment.Order{Bundle: l.Bundle, Fence: l.State.Fence(), Resource: l.State.Resource})
	if err != nil {
		l.t.Fatal(err)
	}
	l.env = env
}

// provision has a worker started, and says nothing of it to the journal.
func (l *life) provision() {
	l.t.Helper()
	l.begin()
	provisioned := l.Run(l.permits[0], l.env.Provision())
	if provisioned.Outcome.Knowledge != operation.Applied {
		l.t.Fatalf("provision ended %s: %s", provisioned.Outcome.Knowledge, provisioned.Outcome.Detail)
	}
	l.settled = []kernel.Command{provisioned}
}

// launch begins start and launch, and lets the guest run.
func (l *life) launch() {
	l.t.Helper()
	l.provision()
	expected, report, err := l.env.Attest(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	accepted, err := l.Ledger.Kernel().Facts().Accept(kernel.Ordered(l.State), expected, report, l.State.Resource)
	if err != nil {
		l.t.Fatal(err)
	}
	l.permits = l.Next(append(l.settled, kernel.Attest{Expected: expected, Report: report},
		l.Run(l.permits[1], l.env.Materialize(accepted, inputs{})),
		l.Run(l.permits[2], done{protocol.PrepareResult{Handle: "h"}}))...).Permits
	effect, launch := l.env.Launch(accepted, nil), l.permits[1]
	go func() { l.guest <- effect.Perform(context.WithoutCancel(l.t.Context()), launch) }()
}

// cancel begins the cancellation.
func (l *life) cancel() {
	l.t.Helper()
	l.launch()
	l.Next(l.Run(l.permits[0], done{protocol.StartResult{Handle: "h"}}), l.Run(l.permits[1], done{protocol.LaunchResult{Ended: protocol.EndedKilled}}),
		kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "asked"}})
}

// succeed has the attempt succeed as far as the journal goes, and begins its removal.
func (l *life) succeed() {
	l.t.Helper()
	l.launch()
	ended := protocol.LaunchResult{Ended: protocol.EndedExited}
	launch := l.permits[1]
	l.permits = l.Next(l.Run(l.permits[0], done{protocol.StartResult{Handle: "h"}}), l.Run(launch, done{ended}),
		kernel.Complete{Report: protocol.CompletionReport{Handle: "h", Launches: []operation.Key{launch.Intent().Key}, Ended: []protocol.LaunchResult{ended}}},
	).Permits
	manifest := fixture.Digest("manifest")
	l.Next(l.Run(l.permits[0], done{protocol.FreezeResult{Manifest: manifest}}), l.Run(l.permits[1], done{protocol.CollectResult{Manifest: manifest}}), kernel.Accept{})
}

// inputs opens the one file of the fixed input manifest.
type inputs struct{}

func (inputs) Open(context.Context, string, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("a\n")), nil
}

// done is the effect of an operation that this suite only needs to have been settled.
type done struct{ result any }

func (d done) Perform(context.Context, ledger.Permit) operation.Outcome {
	return operation.Done(d.result)
}

func (d done) Resolve(context.Context, operation.Intent) operation.Outcome {
	return operation.Done(d.result)
}

// reconcile opens the state in a later life, and has it closed by the given providers.
func (l *life) reconcile(providers ...environment.Provider) []dispatcher.Closed {
	l.t.Helper()
	l.Reopen()
	accepted, err := ingress.NewGate("uid:0").Accept("uid:0", ingress.Delivery{ID: fixture.Delivery(1), Channel: "cli", Verb: ingress.Reconcile})
	if err != nil {
		l.t.Fatal(err)
	}
	d := dispatcher.Dispatcher{Ledger: l.Ledger, Index: projection.NewView(l.Store, l.Ledger.Kernel().Transitions()), Providers: environment.NewProviders(providers...)}
	closed, _, err := d.Reconcile(l.t.Context(), accepted)
	if err != nil {
		l.t.Fatal(err)
	}
	if l.State, err = ledger.Load(l.t.Context(), l.Store, l.Ledger.Kernel(), fixture.Attempt); err != nil {
		l.t.Fatal(err)
	}
	return closed
}
