package admission_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/environment/wasm"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/testing/fixture"
	"github.com/writ-runtime/writ/testing/parts"
	"github.com/writ-runtime/writ/tools/lockfile"
)

// TestInputChangedAfterScan changes an input between the scan that the reservation fixes
// and the materialization in a real environment. Nothing else than what was scanned gets
// in (E7).
func TestInputChangedAfterScan(t *testing.T) {
	provider, tool := provider(t)
	for name, test := range map[string]struct {
		change func(path string) error
		want   reason.Code
	}{
		"not at all":                   {func(string) error { return nil }, ""},
		"rewritten with the same size": {func(p string) error { return os.WriteFile(p, []byte("two\n"), 0o644) }, reason.MaterializeChanged},
		"grown":                        {func(p string) error { return os.WriteFile(p, []byte("one\nand more\n"), 0o644) }, reason.MaterializeChanged},
		"shrunk":                       {func(p string) error { return os.Truncate(p, 1) }, reason.MaterializeChanged},
		"replaced by an equal file": {func(p string) error {
			if err := os.Remove(p); err != nil {
				return err
			}
			return os.WriteFile(p, []byte("one\n"), 0o644)
		}, ""},
		"removed": {os.Remove, reason.MaterializeMissing},
		"replaced by a link": {func(p string) error {
			if err := os.Rename(p, p+".kept"); err != nil {
				return err
			}
			return os.Symlink(p+".kept", p)
		}, reason.MaterializeUnsupportedEntry},
		"replaced by a folder": {func(p string) error {
			if err := os.Remove(p); err != nil {
				return err
			}
			return os.Mkdir(p, 0o755)
		}, reason.MaterializeUnsupportedEntry},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"docs/a.txt": "one\n", "docs/b.txt": "other\n"})
			sources := admission.NewSources(dir, []workorder.Input{{Name: "docs", Source: "docs"}})
			scanned, err := sources.Scan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := test.change(filepath.Join(dir, "docs", "a.txt")); err != nil {
				t.Fatal(err)
			}
			out := materialize(t, provider, tool, scanned, sources)
			if test.want == "" {
				if out.Knowledge != operation.Applied {
					t.Errorf("ended %s: %s", out.Knowledge, out.Detail)
				}
				return
			}
			if out.Knowledge != operation.NotApplied || out.Code != test.want || !strings.Contains(out.Detail, "a.txt") || out.Remedy == "" {
				t.Errorf("ended %s, %s: %q, %q; want %s", out.Knowledge, out.Code, out.Detail, out.Remedy, test.want)
			}
		})
	}
}

// provider makes a provider over the worker and the empty tool.
func provider(t *testing.T) (p environment.Provider, tool canonical.Digest) {
	t.Helper()
	dist := t.TempDir()
	if err := lockfile.WriteDir(dist, []lockfile.Source{{
		Kind: lockfile.Worker, Name: wasm.WorkerName, Version: "0.1.0", Platform: runtime.GOOS + "/" + runtime.GOARCH, Path: wasm.WorkerName,
		File: built.Path(t, "WRIT_TEST_WORKER", "github.com/writ-runtime/writ/go/cmd/writ-wasm", "CGO_ENABLED=0"),
	}, {
		Kind: lockfile.Tool, Name: "empty", Version: "0.1.0", Platform: "wasip1/wasm", Path: "empty.wasm",
		File: built.Path(t, "WRIT_TEST_EMPTY", "github.com/writ-runtime/writ/testing/tools/empty", "GOOS=wasip1", "GOARCH=wasm"),
	}}); err != nil {
		t.Fatal(err)
	}
	pins, err := pin.Open(dist)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := pins.Entry("tool", "empty")
	if err != nil {
		t.Fatal(err)
	}
	starter := confine.NewStarter()
	t.Cleanup(func() {
		starter.Close()
		if err := pins.Close(); err != nil {
			t.Error(err)
		}
	})
	cache := t.TempDir()
	if err := os.Chmod(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	return wasm.New(pins, starter, t.TempDir(), cache, parts.Kept(t.TempDir())), entry.Digest
}

// materialize provisions an environment, copies the inputs in, and removes it.
func materialize(t *testing.T, p environment.Provider, tool canonical.Digest, in protocol.InputManifest, sources admission.Sources) operation.Outcome {
	t.Helper()
	l, opened := fixture.Activate(t, func(b *attemptbundle.Bundle) {
		manifest, err := p.Manifest(b.Environment.Limits)
		if err != nil {
			t.Fatal(err)
		}
		b.Environment.Provider, b.Environment.Root = manifest.Provider, manifest.Root
		b.Inputs = in
		b.Execution.Tool = "empty"
		b.Pins.Tools = []attemptbundle.Pin{{Name: "empty", Version: "0.1.0", Digest: tool}}
	})
	s := opened.State
	env, err := p.Open(environment.Order{Bundle: s.Bundle, Fence: s.Fence(), Resource: s.Resource})
	if err != nil {
		t.Fatal(err)
	}
	run := func(i int, e ledger.Effect) operation.Outcome {
		settle, err := l.Run(t.Context(), opened.Permits[i], e)
		if err != nil {
			t.Fatal(err)
		}
		return settle.Outcome
	}
	// Without a permit of its own, no effect takes place.
	var zero ledger.Permit
	for what, e := range map[string]ledger.Effect{
		"provision": env.Provision(), "materialize": env.Materialize(attestation.Accepted{}, sources), "launch": env.Launch(attestation.Accepted{}, nil),
		"destroy": env.Destroy(protocol.RetentionParameters{}),
	} {
		if out := e.Perform(t.Context(), zero); out.Code != reason.OperationPermitInvalid {
			t.Errorf("%s without a permit: %+v", what, out)
		}
		if out := e.Perform(t.Context(), opened.Permits[2]); out.Code != reason.OperationPermitInvalid {
			t.Errorf("%s with the permit of prepare: %+v", what, out)
		}
	}
	if out := run(0, env.Provision()); out.Knowledge != operation.Applied {
		t.Fatalf("provision ended %s: %s", out.Knowledge, out.Detail)
	}
	accepted := attested(t, env, s)
	// Without the acceptance of what it measured, nothing gets in.
	if out := env.Materialize(attestation.Accepted{}, sources).Perform(t.Context(), opened.Permits[1]); out.Code != reason.EnvironmentMismatch {
		t.Errorf("materialize without an accepted attestation: %+v", out)
	}
	out := run(1, env.Materialize(accepted, sources))
	if found, err := p.Reconcile(t.Context(), s.Resource); err != nil || !found.Gone {
		t.Errorf("left behind: %+v, %v", found, err)
	}
	return out
}

// attested compares what the environment measured of itself with what was ordered.
func attested(t *testing.T, env environment.Environment, s kernel.State) attestation.Accepted {
	t.Helper()
	expected, report, err := env.Attest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := fixture.Kernel(t).Accept(s, expected, report)
	if err != nil {
		t.Fatal(err)
	}
	return accepted
}
