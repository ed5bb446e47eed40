package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/environment/wasm/worker"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/testing/built"
)

// suite holds what the tests of this package share: programs, and the code compiled from the tools.
type suite struct {
	built   *built.Builder
	starter *confine.Starter
	cache   string
}

var shared suite

func TestMain(m *testing.M) {
	if role := os.Getenv("WRIT_TEST_ROLE"); role == "host" {
		os.Exit(hostRole())
	}
	cache, err := os.MkdirTemp("", "writ-cache-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared.cache = cache
	shared.starter = confine.NewStarter()
	status := built.Run(m, func(b *built.Builder) { shared.built = b })
	_ = os.RemoveAll(cache)
	os.Exit(status)
}

func (s *suite) workerPath(t testing.TB) string {
	return s.built.Path(t, "WRIT_TEST_WORKER", "github.com/writ-runtime/writ/go/cmd/writ-wasm", "CGO_ENABLED=0")
}

func (s *suite) badtools(t testing.TB) []byte {
	return read(t, s.built.Path(t, "WRIT_TEST_BADTOOLS", "github.com/writ-runtime/writ/testing/tools/badtools", "GOOS=wasip1", "GOARCH=wasm"))
}

func (s *suite) empty(t testing.TB) []byte {
	return read(t, s.built.Path(t, "WRIT_TEST_EMPTY", "github.com/writ-runtime/writ/testing/tools/empty", "GOOS=wasip1", "GOARCH=wasm"))
}

// pinned returns the worker sealed by way of a lock file, as the product does.
func pinned(t testing.TB, path string) *pin.Sealed {
	t.Helper()
	sealed, closeSet, err := seal(t.TempDir(), path)
	must(t, err)
	t.Cleanup(func() { _ = closeSet() })
	return sealed
}

func seal(dir, path string) (*pin.Sealed, func() error, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	lock := map[string]any{"kind": pin.AdaptersKind, "entries": []any{map[string]any{
		"name": "writ-wasm", "kind": "worker", "version": "0.0.0", "platform": "linux/amd64", "path": "writ-wasm", "sha256": canonical.Sum(data), "size": len(data),
	}}}
	text, err := json.Marshal(lock)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, pin.AdaptersFile), text, 0o600), os.WriteFile(filepath.Join(dir, "writ-wasm"), data, 0o600)); err != nil {
		return nil, nil, err
	}
	set, err := pin.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	entry, err := set.Entry("worker", "writ-wasm")
	if err != nil {
		return nil, nil, err
	}
	sealed, err := set.Sealed(context.Background(), entry)
	return sealed, set.Close, err
}

func limits() worker.Limits {
	return worker.Limits{
		MemoryPages: 1024, CPUSeconds: 20, StdioBytes: 64 << 10, WorkspaceBytes: 16 << 20, WorkspaceFiles: 64, FileBytes: 8 << 20,
		NameBytes: 256, Depth: 8, OpenFiles: 80, InputBytes: 1 << 20, InputFiles: 16,
	}
}

const generation = 7

// ordered is the order that the workers of these tests serve.
func ordered() worker.Order {
	return worker.Order{Bundle: canonical.Sum([]byte("bundle")), Attempt: "att_01939a3c-7c1e-7000-8000-000000000002", Generation: generation}
}

// begin starts a worker named "one" with the limits; it is closed with the test.
func begin(t testing.TB, l worker.Limits) *worker.Worker {
	t.Helper()
	w, err := worker.Start(context.Background(), worker.StartRequest{
		Binary: pinned(t, shared.workerPath(t)), Starter: shared.starter, Dir: t.TempDir(), Name: "one", Limits: l, Order: ordered(),
	})
	must(t, err)
	t.Cleanup(func() { must(t, w.Close(context.Background())) })
	return w
}

// provisioned starts a worker with the module, and compares its report.
func provisioned(t testing.TB, l worker.Limits, module []byte) (*worker.Worker, attestation.Report) {
	t.Helper()
	w := begin(t, l)
	report, err := w.Provision(context.Background(), module, worker.Provision{Digest: canonical.Sum(module), CacheDir: shared.cache})
	if err != nil {
		t.Fatalf("%v\nworker said: %s", err, w.Stderr())
	}
	return w, report
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
