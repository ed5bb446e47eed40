// Package toolrun runs a WebAssembly tool in a real confined worker, for tests of the tool. What is under test is the
// tool; how the worker contains it is tested with the worker.
package toolrun

import (
	"context"
	"flag"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/environment/wasm/worker"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/tools/lockfile"
)

// Runner runs one tool any number of times, each in a fresh worker.
type Runner struct {
	module  []byte
	binary  *pin.Sealed
	starter *confine.Starter
	cache   string
}

// Result is how a run ended and every file that it left in its workspace.
type Result struct {
	Exit    worker.Exit
	Outputs map[string]string
	// Offers are the checkpoints that it offered, in order.
	Offers []string
}

// New returns a runner of the tool in goPackage. Under Bazel the environment variable toolEnv names the built tool,
// and WRIT_TEST_WORKER the built worker.
func New(t testing.TB, toolEnv, goPackage string) *Runner {
	t.Helper()
	r := &Runner{module: read(t, built.Path(t, toolEnv, goPackage, "GOOS=wasip1", "GOARCH=wasm")), starter: confine.NewStarter(), cache: t.TempDir()}
	t.Cleanup(r.starter.Close)
	must(t, os.Chmod(r.cache, 0o700)) // the worker takes no cache that others may write to
	r.binary = seal(t, built.Path(t, "WRIT_TEST_WORKER", "github.com/writ-runtime/writ/go/cmd/writ-wasm", "CGO_ENABLED=0"))
	return r
}

// Run runs the tool once with the inputs: the first level of each tree's path is the name of the input.
func (r *Runner) Run(t testing.TB, inputs map[string]string, args ...string) Result {
	t.Helper()
	ctx := context.Background()
	w, err := worker.Start(ctx, worker.StartRequest{Binary: r.binary, Starter: r.starter, Dir: t.TempDir(), Name: "run", Limits: wire.Defaults(), Order: worker.Order{
		Bundle: canonical.Sum([]byte("run")), Attempt: "run", Generation: 1,
	}})
	must(t, err)
	defer func() { must(t, w.Close(ctx)) }()
	_, err = w.Provision(ctx, r.module, worker.Provision{Digest: canonical.Sum(r.module), CacheDir: r.cache})
	must(t, err)
	for path, text := range inputs {
		mount, rel := split(path)
		must(t, w.Materialize(ctx, []worker.File{{Mount: mount, Path: rel, Digest: canonical.Sum([]byte(text)), Bytes: []byte(text)}}))
	}
	res := Result{Outputs: map[string]string{}}
	res.Exit, err = w.Run(ctx, worker.RunRequest{Args: append([]string{"tool"}, args...), Seed: "seed", WallMillis: 120_000, MaxOffer: wire.MaxOffer,
		Offered: func(payload []byte) { res.Offers = append(res.Offers, string(payload)) }})
	must(t, err)
	entries, err := w.List(ctx)
	must(t, err)
	for _, e := range entries {
		if e.Dir {
			continue
		}
		data, err := io.ReadAll(w.Open(ctx, e.Path))
		must(t, err)
		res.Outputs[e.Path] = string(data)
	}
	return res
}

// update writes the golden files anew. They are read by eye before they are committed.
//
//writ:immutable the flag package sets it before any test runs
var update = flag.Bool("update", false, "write the golden files")

// Golden runs the tool twice over the inputs, holds what it writes to the files of testdata, and the named result to
// the JSON Schema in a file. It returns what the tool wrote.
func (r *Runner) Golden(t testing.TB, schemaFile, result string, inputs map[string]string, args ...string) map[string]string {
	t.Helper()
	res := r.Run(t, inputs, args...)
	must(t, res.Exit.Err("tool"))
	for name, got := range res.Outputs {
		if *update {
			must(t, os.WriteFile(filepath.Join("testdata", name), []byte(got), 0o600))
		}
	}
	golden := Tree(t, "", "testdata")
	for name, got := range res.Outputs {
		if golden["/"+name] != got {
			t.Errorf("%s is not the golden one (run with -update to see the difference in git):\n%s", name, got)
		}
	}
	if len(res.Outputs) != len(golden) {
		t.Errorf("wrote %d files, %d are golden", len(res.Outputs), len(golden))
	}
	if err := schema.ValidateResult(read(t, schemaFile), []byte(res.Outputs[result])); err != nil {
		t.Error(err)
	}
	if again := r.Run(t, inputs, args...); !maps.Equal(res.Outputs, again.Outputs) {
		t.Error("a second run wrote other bytes")
	}
	return res.Outputs
}

// Tree returns the files below root, or the one file that root is, as inputs of Run, under the name of the input.
func Tree(t testing.TB, input, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	root, err := filepath.EvalSymlinks(root)
	must(t, err)
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if rel == "." {
			rel = filepath.Base(path)
		}
		if err == nil {
			out[input+"/"+filepath.ToSlash(rel)] = string(read(t, path))
		}
		return err
	}))
	return out
}

func seal(t testing.TB, file string) *pin.Sealed {
	t.Helper()
	dir := t.TempDir()
	must(t, lockfile.WriteDir(dir, []lockfile.Source{{
		Kind: lockfile.Worker, Name: "writ-wasm", Version: "0.0.0", Platform: runtime.GOOS + "/" + runtime.GOARCH, Path: "writ-wasm", File: file,
	}}))
	set, err := pin.Open(dir)
	must(t, err)
	t.Cleanup(func() { must(t, set.Close()) })
	entry, err := set.Entry("worker", "writ-wasm")
	must(t, err)
	sealed, err := set.Sealed(context.Background(), entry)
	must(t, err)
	return sealed
}

func split(path string) (mount, rel string) {
	for i := range path {
		if path[i] == '/' {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
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
