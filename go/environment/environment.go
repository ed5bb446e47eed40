// Package environment holds the EnvironmentProvider contract of SPEC-014. A provider
// builds the place where an attempt runs, has it measured from inside, fills it,
// freezes what it declared, and removes it. Every mutating call is a ledger.Effect:
// without a permit there is none.
package environment

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// The isolation classes of SPEC-014.
const (
	TrustedLocal      = "trusted_local"
	EphemeralIsolated = "ephemeral_isolated"
)

// Capabilities is what a provider can enforce on this host.
type Capabilities struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Isolation string `json:"isolation_class"`
	Platform  string `json:"platform"`
	// Actions are the registered actions that the environment can carry out within
	// its isolation; the support layer allows no others.
	Actions []string `json:"actions"`
	// Checkpoint says whether what runs in the environment can offer checkpoints.
	Checkpoint bool `json:"checkpoint"`
	// Retention says whether what an environment holds can be kept when it ends.
	Retention bool `json:"retention"`
}

// Order is what an environment is built from.
type Order struct {
	Bundle *attemptbundle.Compiled
	// Fence is the fence under which the environment was requested; Resource is the
	// name made from it.
	Fence    workorder.Fence
	Resource string
}

// Inputs opens the source of one input file. What comes out is checked against the
// manifest's digest by whoever takes it in.
type Inputs interface {
	Open(ctx context.Context, mount, path string) (io.ReadCloser, error)
}

// Provider builds environments of one kind.
type Provider interface {
	Capabilities() Capabilities
	// Manifest says what the provider will build for the given limits: the part of a
	// bundle that the attestation is compared with. The error is a *reason.Refusal
	// for limits that this host cannot enforce.
	Manifest(limits attemptbundle.Limits) (attemptbundle.EnvironmentManifest, error)
	// Open prepares an environment for an order. Nothing exists of it yet.
	Open(o Order) (Environment, error)
	// Reconcile looks for whatever bears the resource's name, ends and removes it,
	// and says what it found. It works by name alone, in a process that never knew
	// the environment, and may be called again.
	Reconcile(ctx context.Context, resource string) (protocol.EnvironmentReconciliation, error)
	// Resolve says what became of an operation of an earlier life under the
	// resource's name. It ends what it finds, and performs nothing else.
	Resolve(ctx context.Context, in operation.Intent) operation.Outcome
}

// Environment is one attempt's environment, as the process that built it holds it.
type Environment interface {
	Provision() ledger.Effect
	// Attest returns what the environment measured of itself before anything ran in
	// it, and what the order expects. Comparing them is not its business.
	Attest(ctx context.Context) (attestation.Expectation, attestation.Report, error)
	// Materialize copies the inputs in. Without an accepted attestation it does
	// nothing, and neither does Launch.
	Materialize(a attestation.Accepted, in Inputs) ledger.Effect
	// Launch runs what the bundle orders. Its outcome is known when nothing runs any
	// more. Where the bundle takes checkpoints, offered is told of each that the workload
	// offers, bounded as the bundle says; it must not wait.
	Launch(a attestation.Accepted, offered func(payload []byte)) ledger.Effect
	// Printed is what the launched process wrote to its standard output and error, within
	// the limit of both; the launch's result names each by digest. Nil before it ended.
	Printed() [][]byte
	// FreezeOutputs copies the declared outputs out. Preconditions: Launch's outcome
	// is known.
	FreezeOutputs(store *artifact.Store) Freezing
	// Reset empties inputs and workspace, and has the environment measure itself anew. It is
	// done only if nothing was counted from inside afterwards and accept takes what was
	// measured, held against what was expected before anything ran. Nothing can be frozen or
	// launched afterwards. Preconditions: what is to be kept was frozen.
	Reset(accept func(attestation.Expectation, attestation.Report) error) ledger.Effect
	// Destroy ends the environment and removes it. Under a policy that keeps, what it holds
	// is made durable elsewhere first, and the receipt says what that is; where nothing is
	// left of it, nothing is kept, and where it cannot be kept, the environment stands.
	Destroy(policy protocol.RetentionParameters) ledger.Effect
	// Gone reports that nothing of the workload runs under the resource's name; the
	// environment itself may still stand. It looks and changes nothing.
	Gone(ctx context.Context, resource string) (bool, error)
	// Stop ends the workload, and the environment with it where the one cannot end
	// without the other. It is no error when nothing runs.
	Stop(ctx context.Context, resource string) (wasAlive bool, err error)
}

// Freezing is the effect freeze_outputs, and what it froze once it was performed.
type Freezing interface {
	ledger.Effect
	Frozen() Frozen
}

// Providers are the providers of this host, by name.
type Providers struct {
	providers []Provider
}

// NewProviders returns the given providers. Their names must differ.
func NewProviders(providers ...Provider) Providers { return Providers{providers} }

// Find returns the provider of a name, or a refusal that names those there are.
func (p Providers) Find(name string) (Provider, error) {
	var names []string
	for _, provider := range p.providers {
		c := provider.Capabilities()
		if c.Name == name {
			return provider, nil
		}
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return nil, reason.New(reason.EnvironmentUnsupportedProvider,
		"this release has no environment provider "+name, "environment.provider",
		"ask for one of: "+strings.Join(names, ", "))
}
