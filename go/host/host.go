// Package host wires one host: everything that an attempt needs, over one state folder and
// one release set. Peers meet here; it decides nothing.
package host

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
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
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/retention"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/schemas"
)

// Options say where a host works.
type Options struct {
	// State is the folder of all state, which is made if there is none; Dist is that of
	// the release set.
	State, Dist string
	// Activity says to whoever finds the state folder locked what is being done in it.
	Activity string
	// Through, if not nil, decorates the journal before the ledger writes to it.
	Through func(journal.Store) journal.Store
	// Clock is read for everything that is recorded; nil is the clock of this machine.
	Clock ledger.Clock
	// Registries hold the transitions, effect classes and facts that the host decides by; nil
	// for those of this release.
	Registries fs.FS
}

// Host is one state folder, opened for writing. Its methods may be called by several
// goroutines.
type Host struct {
	Journal   *sqlite.Store
	Ledger    *ledger.Ledger
	Artifacts *artifact.Store
	Admission *admission.Admission

	state     string
	index     *projection.View
	pins      *pin.Set
	starter   *confine.Starter
	providers environment.Providers
	ids       *canonical.IDSource
	gate      ingress.Gate
	desk      *ingress.Desk
	shadow    *outbox.Shadow

	// mu guards running, the attempts under way in this process.
	mu      sync.Mutex
	running map[workorder.AttemptID]running
}

// Open opens a state folder for writing. Preconditions: the process holds no descriptors
// but those that confine.CloseInherited leaves.
func Open(ctx context.Context, o Options) (_ *Host, err error) {
	h := &Host{state: o.State, starter: confine.NewStarter(), running: map[workorder.AttemptID]running{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if h.pins, err = pin.Open(o.Dist); err != nil {
		return nil, err
	}
	registries := o.Registries
	if registries == nil {
		registries = schemas.FS
	}
	k, err := kernel.Open(registries)
	if err != nil {
		return nil, err
	}
	if err := orphaned(o.State); err != nil {
		return nil, err
	}
	if h.Journal, err = sqlite.Open(ctx, o.State, sqlite.Options{Write: true, Activity: o.Activity}); err != nil {
		return nil, err
	}
	if h.Artifacts, err = artifact.Open(o.State, h.Journal, artifact.Options{Write: true, SweepBefore: time.Now().Add(-time.Hour)}); err != nil {
		return nil, err
	}
	// A courtesy to a folder that many share: what belongs to others stays theirs.
	_ = adapterhost.Sweep(socketFolder())
	var through journal.Store = h.Journal
	if o.Through != nil {
		through = o.Through(through)
	}
	h.shadow = outbox.OpenShadow(o.State, h.Artifacts)
	if o.Clock == nil {
		o.Clock = clock{begun: time.Now()}
	}
	h.Ledger = ledger.New(through, k, o.Clock)
	h.index = projection.NewView(h.Journal, k.Transitions())
	h.ids = NewIDs()
	if err := h.openProviders(); err != nil {
		return nil, err
	}
	if h.gate, err = ownersGate(o.State); err != nil {
		return nil, err
	}
	h.desk = &ingress.Desk{Gate: h.gate, Ledger: h.Ledger, Journal: h.Journal, Running: h.ask}
	return h, h.openAdmission(ctx)
}

// openProviders makes the folders that providers name resources in.
func (h *Host) openProviders() error {
	workspaces, cache := filepath.Join(h.state, "workspaces"), filepath.Join(h.state, "cache", "wasm")
	for _, dir := range []string{workspaces, cache} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return reason.New(reason.JournalReadOnly, "a folder of the state cannot be made", dir, "make the state folder writable").Because(err)
		}
	}
	h.providers = environment.NewProviders(wasm.New(h.pins, h.starter, workspaces, cache, retention.Open(h.state, h.Ledger.Now)))
	return nil
}

// openAdmission loads the pinned policies.
func (h *Host) openAdmission(ctx context.Context) error {
	raw, err := fs.ReadFile(schemas.FS, "actions.v1.json")
	if err != nil {
		return err
	}
	actions, err := capability.ParseRegistry(raw)
	if err != nil {
		return err
	}
	policies, err := loadPolicies(ctx, h.pins, actions)
	if err != nil {
		return err
	}
	box, err := h.openOutbox()
	if err != nil {
		return err
	}
	h.Admission = &admission.Admission{
		Ledger: h.Ledger, Policies: policies, Actions: actions, Broker: broker.NewLocal(actions, broker.LocalTerms()),
		Providers: h.providers, Pins: h.pins, Artifacts: h.Artifacts, IDs: h.ids, Outbox: box, State: h.state,
	}
	return nil
}

// openOutbox opens the places that the owner of the state folder lets results go to.
func (h *Host) openOutbox() (*outbox.Outbox, error) {
	load := func() (outbox.Destinations, error) { return outbox.LoadDestinations(h.state) }
	destinations, err := load()
	if err != nil {
		return nil, err
	}
	git, err := exec.LookPath("git")
	if err == nil {
		git, err = filepath.Abs(git)
	}
	if err != nil {
		git = "" // What needs it is refused, and says so.
	}
	return outbox.Open(h.state, h.Artifacts, destinations, outbox.Options{Git: git, Classes: h.Ledger.Kernel().Classes(), Reload: load})
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
	return ingress.NewGate(ingress.Person(uid)), nil
}

// Accept receipts a delivery by whoever runs this process.
func (h *Host) Accept(verb ingress.Verb, content []byte) (ingress.Accepted, error) {
	id, err := h.ids.Mint(ingress.DeliveryPrefix)
	if err != nil {
		return ingress.Accepted{}, err
	}
	return h.gate.Accept(ingress.Person(os.Getuid()), ingress.Delivery{ID: string(id), Channel: "cli", Verb: verb, Content: content})
}

// NewIDs returns a source of ids over the clock of this machine.
func NewIDs() *canonical.IDSource {
	return canonical.NewIDSource(func() int64 { return time.Now().UnixMilli() }, rand.Reader)
}

// Close closes what is open. Children die with the starter.
func (h *Host) Close() error {
	h.starter.Close()
	var errs []error
	if h.Journal != nil {
		errs = append(errs, h.Journal.Close())
	}
	if h.pins != nil {
		errs = append(errs, h.pins.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close %s: %w", h.state, err)
	}
	return nil
}
