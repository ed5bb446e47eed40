package wasm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/environment/wasm"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/parts"
	"github.com/writ-runtime/writ/tools/lockfile"
)

// A lock that has moved on since the bundle was compiled is refused, although all that it
// names is there, is intact and would run: what runs is what the bundle pins.
func TestMovedLockIsRefused(t *testing.T) {
	worker, tool := parts.Worker(t, programs), parts.Empty(t, programs)
	newer := tool
	newer.File = parts.BadTools(t, programs).File
	for name, test := range map[string]struct {
		pinned []lockfile.Source
		moved  string
	}{
		"not at all": {[]lockfile.Source{worker, tool}, ""},
		"the worker": {[]lockfile.Source{longer(t, worker), tool}, wasm.WorkerName},
		"the tool":   {[]lockfile.Source{worker, newer}, "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, parts.Pin(t, worker, tool), parts.Pin(t, test.pinned...), "empty")
			out := r.Run(r.permits[0], r.env.Provision()).Outcome
			if test.moved == "" {
				if out.Knowledge != operation.Applied {
					t.Errorf("ended %s: %s", out.Knowledge, out.Detail)
				}
				return
			}
			if out.Knowledge != operation.NotApplied || out.Code != reason.PinDigestMismatch || !strings.Contains(out.Detail, test.moved) || out.Remedy == "" {
				t.Errorf("ended %s, %s: %q, %q", out.Knowledge, out.Code, out.Detail, out.Remedy)
			}
			if left, err := os.ReadDir(r.workspaces); err != nil || len(left) != 0 {
				t.Errorf("something was started: %v, %v", left, err)
			}
		})
	}
}

// longer is the same program with one more byte at its end, which nothing looks at.
func longer(t *testing.T, s lockfile.Source) lockfile.Source {
	t.Helper()
	raw, err := os.ReadFile(s.File)
	if err != nil {
		t.Fatal(err)
	}
	s.File = filepath.Join(t.TempDir(), s.Name)
	if err := os.WriteFile(s.File, append(raw, 0), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// An environment does nothing but for a permit of its own order, which there is only once the
// activation is durable: not for none, not for that of another operation, nor for that of
// the same operation under another bundle (B13, B14).
func TestForeignPermitsAreRefused(t *testing.T) {
	worker, tool := parts.Worker(t, programs), parts.Empty(t, programs)
	set := parts.Pin(t, worker, tool)
	r, other := newRig(t, set, set, "empty"), newRig(t, set, set, "empty", "other")
	store, err := artifact.Open(t.TempDir(), nil, artifact.Options{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, out operation.Outcome, code reason.Code) {
		t.Helper()
		if out.Knowledge != operation.NotApplied || out.Code != code {
			t.Errorf("%s: ended %s, %s: %q", what, out.Knowledge, out.Code, out.Detail)
		}
		if left, err := os.ReadDir(r.workspaces); err != nil || len(left) != 0 {
			t.Errorf("%s: something was started: %v, %v", what, left, err)
		}
	}
	for name, effect := range map[string]ledger.Effect{
		"provision": r.env.Provision(), "materialize": r.env.Materialize(attestation.Accepted{}, inputs{}),
		"freeze": r.env.FreezeOutputs(store), "destroy": r.env.Destroy(protocol.RetentionParameters{}), "reset": r.env.Reset(func(attestation.Expectation, attestation.Report) error { return nil }),
	} {
		refused(name+" without a permit", effect.Perform(t.Context(), ledger.Permit{}), reason.OperationPermitInvalid)
	}
	refused("provision by the permit of prepare", r.Run(r.permits[2], r.env.Provision()).Outcome, reason.OperationPermitInvalid)
	refused("provision by a permit of another bundle", other.Run(other.permits[0], r.env.Provision()).Outcome, reason.BundleDigestMismatch)
	if out := r.Run(r.permits[0], r.env.Provision()).Outcome; out.Knowledge != operation.Applied {
		t.Errorf("provision by its own permit: ended %s: %s", out.Knowledge, out.Detail)
	}
}
