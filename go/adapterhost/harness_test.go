package adapterhost_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/adapterhost"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/testing/fixture"
	"github.com/writ-runtime/writ/tools/lockfile"
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

func reference(t testing.TB) string {
	return programs.Path(t, "WRIT_TEST_REFERENCELOCAL", "github.com/writ-runtime/writ/plugins/adapters/referencelocal", "CGO_ENABLED=0")
}

func bad(t testing.TB) string {
	return programs.Path(t, "WRIT_TEST_BADADAPTER", "github.com/writ-runtime/writ/testing/adapters/badadapter", "CGO_ENABLED=0")
}

// manifest is what the bad adapter declares. Reference-local declares checkpoints too.
const manifest = `{"kind":"writ.executor_capabilities.v1","protocols":["writ.executor.v1"],
"operations":["prepare","start","cancel","collect","cleanup"],"environments":["ephemeral_isolated"],"tools":["wasm"],"checkpoint":false,
"effects":[{"operation":"prepare","effect_class":"provider_idempotent"},{"operation":"start","effect_class":"reconcilable"},
{"operation":"cancel","effect_class":"provider_idempotent"},{"operation":"collect","effect_class":"provider_idempotent"},
{"operation":"cleanup","effect_class":"provider_idempotent"}]}`

// config pins a program under a name, as a distribution does.
func config(t testing.TB, name, program string) adapterhost.Config {
	t.Helper()
	dir := t.TempDir()
	declared := filepath.Join(dir, "manifest.json")
	text := []byte(manifest)
	if program == reference(t) {
		var err error
		if text, err = os.ReadFile(filepath.Join("..", "..", "plugins", "adapters", "referencelocal", "manifest.json")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(declared, text, 0o600); err != nil {
		t.Fatal(err)
	}
	dist := filepath.Join(dir, "dist")
	if err := lockfile.WriteDir(dist, []lockfile.Source{{
		Kind: lockfile.Adapter, Name: name, Version: "1", Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Path: "adapters/" + name, File: program, Manifest: declared,
	}}); err != nil {
		t.Fatal(err)
	}
	set, err := pin.Open(dist)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := set.Entry("adapter", name)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := set.Sealed(t.Context(), entry)
	if err != nil {
		t.Fatal(err)
	}
	capabilities, err := executor.ParseCapabilities(entry.Manifest, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	// A path of a test is too long for sockets.
	folder, err := os.MkdirTemp("", "wt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return adapterhost.Config{
		Name: name, Sealed: sealed, Capabilities: capabilities, Folder: folder,
		Timeouts: adapterhost.Timeouts{Start: 10 * time.Second, Call: 10 * time.Second},
	}
}

// rig is an adapter that is activated for the fixed attempt.
type rig struct {
	t       testing.TB
	config  adapterhost.Config
	host    *adapterhost.Host
	session *adapterhost.Session
	bundle  *attemptbundle.Compiled
	fence   workorder.Fence
	desk    *desk
}

func newRig(t testing.TB, c adapterhost.Config) *rig {
	t.Helper()
	k := fixture.Kernel(t)
	r := fixture.Reserved(t, k)
	b := fixture.Bundle(t, k, r, func(b *attemptbundle.Bundle) {
		b.Pins.Adapter = attemptbundle.Pin{Name: c.Name, Version: "1", Digest: c.Sealed.Digest()}
	})
	host, err := adapterhost.Launch(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	d := &desk{launches: map[operation.Key]*launch{}}
	session, err := host.Activate(b, r.Fence, d)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, config: c, host: host, session: session, bundle: b, fence: r.Fence, desk: d}
}

// call makes the request that the kernel orders for a kind, and the call that carries it.
func (r *rig) call(kind operation.Kind) (protocol.Call, protocol.Request) {
	r.t.Helper()
	b := r.bundle.Bundle()
	var parameters any
	switch kind {
	case operation.Prepare:
		parameters = protocol.PrepareParameters{Adapter: b.Pins.Adapter.Digest}
	case operation.Start:
		parameters = protocol.StartParameters{Prompt: b.Prompt}
	case operation.Collect:
		parameters = protocol.CollectParameters{Result: b.Outputs.Result, Schema: b.Outputs.Schema}
	case operation.Cancel:
		parameters = protocol.CancelParameters{Reason: "test"}
	case operation.Cleanup:
		parameters = protocol.RetentionParameters{}
	case operation.Checkpoint:
		parameters = protocol.CheckpointParameters{PayloadKind: "writ.checkpoint.tool_progress.v1", MaxBytes: 1024}
	}
	request, err := protocol.NewRequest(kind, r.bundle.Digest(), r.fence.Attempt, b.Pins.Adapter.Name, "main", parameters)
	if err != nil {
		r.t.Fatal(err)
	}
	in, err := request.Intent(b.Operations.Namespace, "", operation.Reconcilable, r.fence.ResourceName())
	if err != nil {
		r.t.Fatal(err)
	}
	return protocol.Call{Bundle: r.bundle.Digest(), Fence: r.fence, Operation: in.Key, Digest: in.Digest}, request
}

// desk is a test's host services: it launches nothing, and keeps to their contract.
type desk struct {
	mu       sync.Mutex
	launches map[operation.Key]*launch
	asked    int
	parents  []operation.Key
	lines    []string
	// offered is what the workload has offered.
	offered []byte
	// during is called within a launch, before it is made.
	during func()
}

type launch struct {
	digest canonical.Digest
	ended  chan struct{}
	record *operation.Record
}

func (d *desk) Launch(_ context.Context, c protocol.Call, parent operation.Key, r protocol.Request) (*operation.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	if l := d.launches[c.Operation]; l != nil {
		if l.digest != c.Digest {
			return nil, reason.New(reason.OperationCollision, "another digest", string(c.Operation), "")
		}
		return l.record, nil
	}
	if d.during != nil {
		d.during()
	}
	d.parents = append(d.parents, parent)
	d.launches[c.Operation] = &launch{digest: c.Digest, ended: make(chan struct{})}
	return nil, nil
}

func (d *desk) Observe(ctx context.Context, c protocol.Call, wait time.Duration) (*operation.Record, error) {
	d.mu.Lock()
	l := d.launches[c.Operation]
	d.mu.Unlock()
	if l == nil {
		return nil, reason.New(reason.IDUnknown, "no such launch", string(c.Operation), "")
	}
	select {
	case <-l.ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(wait):
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return l.record, nil
}

func (d *desk) ReadArtifact(_ context.Context, _ protocol.Call, digest canonical.Digest, _, _ int64) ([]byte, int64, error) {
	return nil, 0, reason.New(reason.ArtifactMissing, "the bundle does not name it", string(digest), "")
}

func (d *desk) Offered(_ context.Context, c protocol.Call) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.offered == nil {
		return nil, reason.New(reason.CheckpointForeign, "nothing was asked for", string(c.Operation), "")
	}
	return d.offered, nil
}

func (d *desk) Log(_ context.Context, _ protocol.Call, level, message string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, level+" "+message)
}

// end settles the only launch.
func (d *desk) end(t testing.TB) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, l := range d.launches {
		result, err := canonical.Marshal(protocol.LaunchResult{Tool: canonical.Sum(nil), Ended: protocol.EndedExited, Status: 0})
		if err != nil {
			t.Fatal(err)
		}
		l.record = &operation.Record{
			Intent:  operation.Intent{Key: key, Digest: l.digest, Kind: operation.Launch, Class: operation.Reconcilable, Resource: "r"},
			Outcome: operation.Outcome{Knowledge: operation.Applied, Result: result}, Receipt: canonical.Raw(`{}`),
		}
		close(l.ended)
	}
}

func (d *desk) line(prefix string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lines {
		if rest, ok := strings.CutPrefix(l, prefix); ok {
			return rest
		}
	}
	return fmt.Sprint(d.lines)
}
