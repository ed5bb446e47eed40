// Package parts gives tests the real parts of a host: programs that are pinned in a lock,
// and what starts them.
package parts

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/environment/wasm"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/retention"
	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/testing/fixture"
	"github.com/writ-runtime/writ/tools/lockfile"
)

// Version is the version at which everything is pinned.
const Version = "0.1.0"

// Worker is the wasm provider's worker.
func Worker(t testing.TB, b *built.Builder) lockfile.Source {
	t.Helper()
	return native(lockfile.Worker, wasm.WorkerName, b.Path(t, "WRIT_TEST_WORKER", "github.com/writ-runtime/writ/go/cmd/writ-wasm", "CGO_ENABLED=0"))
}

// Empty is the tool that writes one small file, named ok.
func Empty(t testing.TB, b *built.Builder) lockfile.Source {
	t.Helper()
	return tool("empty", b.Path(t, "WRIT_TEST_EMPTY", "github.com/writ-runtime/writ/testing/tools/empty", "GOOS=wasip1", "GOARCH=wasm"))
}

// BadTools is the tool that misbehaves as its first argument says.
func BadTools(t testing.TB, b *built.Builder) lockfile.Source {
	t.Helper()
	return tool("badtools", b.Path(t, "WRIT_TEST_BADTOOLS", "github.com/writ-runtime/writ/testing/tools/badtools", "GOOS=wasip1", "GOARCH=wasm"))
}

// Adapter is an executor adapter with the manifest of its vendor.
func Adapter(name, file, manifest string) lockfile.Source {
	s := native(lockfile.Adapter, name, file)
	s.Manifest = manifest
	return s
}

func native(kind lockfile.Kind, name, file string) lockfile.Source {
	return lockfile.Source{
		Kind: kind, Name: name, Version: Version, Platform: runtime.GOOS + "/" + runtime.GOARCH, Path: string(kind) + "s/" + name, File: file,
	}
}

func tool(name, file string) lockfile.Source {
	return lockfile.Source{Kind: lockfile.Tool, Name: name, Version: Version, Platform: "wasip1/wasm", Path: "tools/" + name + ".wasm", File: file}
}

// Pin pins sources in a release set of its own.
func Pin(t testing.TB, sources ...lockfile.Source) *pin.Set {
	t.Helper()
	dist := filepath.Join(t.TempDir(), "dist")
	if err := lockfile.WriteDir(dist, sources); err != nil {
		t.Fatal(err)
	}
	set, err := pin.Open(dist)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

// Starter returns a starter of processes; what it started is killed with the test.
func Starter(t testing.TB) *confine.Starter {
	t.Helper()
	s := confine.NewStarter()
	t.Cleanup(s.Close)
	return s
}

// Cache makes a folder in which a provider keeps compiled code.
func Cache(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Kept returns where a provider keeps workspaces, below dir, by a clock that stands still.
func Kept(dir string) *retention.Store {
	return retention.Open(dir, func() lifecycle.Observation { return fixture.Clock{}.Now() })
}

// Order makes a bundle order a pinned tool in an environment of the provider.
func Order(t testing.TB, b *attemptbundle.Bundle, p environment.Provider, set *pin.Set, tool string, arguments ...string) {
	t.Helper()
	manifest, err := p.Manifest(b.Environment.Limits)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := set.Entry("tool", tool)
	if err != nil {
		t.Fatal(err)
	}
	b.Environment.Provider, b.Environment.Root = manifest.Provider, manifest.Root
	b.Execution.Tool, b.Execution.Arguments = tool, arguments
	b.Pins.Tools = []attemptbundle.Pin{{Name: tool, Version: entry.Version, Digest: entry.Digest}}
}
