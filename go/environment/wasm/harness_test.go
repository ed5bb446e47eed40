package wasm_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/environment/wasm"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/testing/fixture"
	"github.com/writ-runtime/writ/testing/parts"
)

// programs builds what the tests start, each once.
var programs *built.Builder

func TestMain(m *testing.M) { os.Exit(built.Run(m, func(b *built.Builder) { programs = b })) }

// rig is an environment of the fixed attempt, with a real worker and permits of a real
// ledger.
type rig struct {
	*fixture.Admitted
	t          testing.TB
	provider   environment.Provider
	env        environment.Environment
	workspaces string
	// kept is where workspaces are kept below.
	kept     string
	accepted attestation.Accepted
	// permits are those of the newest turn.
	permits []ledger.Permit
	// cleaned settles the clean-up that was begun with the removal.
	cleaned kernel.Settle
}

// newRig orders a tool as ordered pins it, in an environment of a provider over pinned.
func newRig(t *testing.T, ordered, pinned *pin.Set, tool string, arguments ...string) *rig {
	t.Helper()
	return newRigOf(t, ordered, pinned, func(*attemptbundle.Bundle) {}, tool, arguments...)
}

// newRigOf is newRig for a bundle that change alters.
func newRigOf(t *testing.T, ordered, pinned *pin.Set, change func(*attemptbundle.Bundle), tool string, arguments ...string) *rig {
	t.Helper()
	r := &rig{t: t, workspaces: t.TempDir(), kept: t.TempDir()}
	starter, cache := parts.Starter(t), parts.Cache(t)
	r.provider = wasm.New(pinned, starter, r.workspaces, cache, parts.Kept(r.kept))
	r.Admitted = fixture.Admit(t, func(b *attemptbundle.Bundle) {
		parts.Order(t, b, wasm.New(ordered, starter, r.workspaces, cache, parts.Kept(r.kept)), ordered, tool, arguments...)
		b.Outputs.Policy.Paths = []protocol.Declared{{Path: "ok", MediaType: "text/plain", Required: true}}
		b.Outputs.Result, b.Outputs.Schema = "", ""
		change(b)
	})
	r.permits = r.Next(r.Activation()).Permits
	env, err := r.provider.Open(environment.Order{Bundle: r.Bundle, Fence: r.State.Fence(), Resource: r.State.Resource})
	if err != nil {
		t.Fatal(err)
	}
	r.env = env
	return r
}

// launching provisions and fills the environment, and begins start and launch.
func (r *rig) launching() {
	r.t.Helper()
	provisioned := r.Run(r.permits[0], r.env.Provision())
	expected, report, err := r.env.Attest(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	if r.accepted, err = r.Ledger.Kernel().Facts().Accept(kernel.Ordered(r.State), expected, report, r.State.Resource); err != nil {
		r.t.Fatal(err)
	}
	r.permits = r.Next(provisioned, kernel.Attest{Expected: expected, Report: report},
		r.Run(r.permits[1], r.env.Materialize(r.accepted, inputs{})),
		r.Run(r.permits[2], done{protocol.PrepareResult{Handle: "h"}}),
	).Permits
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
