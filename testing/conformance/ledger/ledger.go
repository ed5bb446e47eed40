// Package ledger is the check of the public conformance suite that holds an adapter to the
// ledger: whatever it brings about is recorded under a key and a digest before it happens,
// and what it tries to bring about by itself comes to nothing and makes it not conformant
// (O7). It needs nothing but the adapter's binary and manifest, and no network: host,
// ledger, journal, environment and tool are real.
package ledger

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/adapterhost"
	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/environment/wasm"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/kernel"
	writ "github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/supervisor"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
	"github.com/writ-runtime/writ/testing/parts"
	"github.com/writ-runtime/writ/tools/lockfile"
)

// Bench is what the suite brings: the worker of the environment, and a tool that writes one
// small file named ok.
type Bench struct {
	Worker, Tool lockfile.Source
}

// Adapter is what a vendor hands in. The binary is one static executable, which is started
// from memory under the adapter's name.
type Adapter struct {
	Name, Binary, Manifest string
}

// Report is what one attempt under the adapter came to.
type Report struct {
	// Findings say why the adapter is not conformant, a sentence each; there are none for
	// one that is.
	Findings []string
	// Log is what it said.
	Log []string
}

// Check carries out one attempt under the adapter. What fails the test itself is the
// suite's own fault, or a binary that is none.
func Check(t testing.TB, b Bench, a Adapter) Report {
	t.Helper()
	r := &run{t: t, bench: b, adapter: a, performed: map[operation.Key]int{}}
	r.prepare()
	if _, err := r.attempt.Run(t.Context(), r.State); err != nil {
		t.Fatal(err)
	}
	r.judge()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report
}

// run is one attempt.
type run struct {
	*fixture.Admitted
	t       testing.TB
	bench   Bench
	adapter Adapter
	set     *pin.Set
	sockets string
	attempt supervisor.Attempt

	// mu guards the rest.
	mu     sync.Mutex
	report Report
	// performed counts how often the effect of each key was performed in the environment.
	performed map[operation.Key]int
	probed    bool
}

func (r *run) find(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Findings = append(r.report.Findings, fmt.Sprintf(format, args...))
}

// prepare pins what runs and admits the attempt.
func (r *run) prepare() {
	t := r.t
	t.Helper()
	r.set = parts.Pin(t, r.bench.Worker, r.bench.Tool, parts.Adapter(r.adapter.Name, r.adapter.Binary, r.adapter.Manifest))
	entry, err := r.set.Entry("adapter", r.adapter.Name)
	if err != nil {
		t.Fatal(err)
	}
	workspaces := t.TempDir()
	provider := wasm.New(r.set, parts.Starter(t), workspaces, parts.Cache(t), parts.Kept(t.TempDir()))
	r.Admitted = fixture.Admit(t, func(b *attemptbundle.Bundle) {
		parts.Order(t, b, provider, r.set, r.bench.Tool.Name)
		b.Pins.Adapter = attemptbundle.Pin{Name: entry.Name, Version: entry.Version, Digest: entry.Digest}
		b.Outputs.Policy.Paths = []protocol.Declared{{Path: "ok", MediaType: "text/plain", Required: true}}
		b.Outputs.Result, b.Outputs.Schema = "", ""
	})
	fence := r.State.Fence()
	env, err := provider.Open(environment.Order{Bundle: r.Bundle, Fence: fence, Resource: fence.ResourceName()})
	if err != nil {
		t.Fatal(err)
	}
	store, err := artifact.Open(r.Dir, r.Store, artifact.Options{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	docs := t.TempDir()
	if err := os.WriteFile(filepath.Join(docs, "a.txt"), []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A path of a test is too long for sockets.
	if r.sockets, err = os.MkdirTemp("", "wc"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(r.sockets) })
	r.attempt = supervisor.Attempt{
		Bundle: r.Bundle, First: []kernel.Command{r.Activation()}, Ledger: r.Ledger, Environment: counting{env, r}, Provider: provider,
		Executor: r.start, Artifacts: store, Inputs: admission.NewSources(docs, []workorder.Input{{Name: "docs", Source: docs}}), Actor: "uid:0",
		Log: func(level, message string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.report.Log = append(r.report.Log, level+" "+message)
		},
	}
}

// start starts the adapter as the product does, with services that are looked at.
func (r *run) start(s supervisor.Services) (supervisor.Executor, error) {
	entry, err := r.set.Entry("adapter", r.adapter.Name)
	if err != nil {
		return nil, err
	}
	capabilities, err := executor.ParseCapabilities(entry.Manifest, entry.Name)
	if err != nil {
		return nil, err
	}
	sealed, err := r.set.Sealed(r.t.Context(), entry)
	if err != nil {
		return nil, err
	}
	h, err := adapterhost.Launch(r.t.Context(), adapterhost.Config{
		Name: entry.Name, Sealed: sealed, Capabilities: capabilities, Folder: r.sockets,
		Denied: func(what string) { r.find("it tried to have an effect by itself: %s", what) },
	})
	if err != nil {
		return nil, err
	}
	session, err := h.Activate(r.Bundle, r.State.Fence(), probing{s, r})
	if err != nil {
		_ = h.Close()
		return nil, err
	}
	return activated{session, h}, nil
}

type activated struct {
	*adapterhost.Session
	host *adapterhost.Host
}

func (a activated) Close() error { return a.host.Close() }

// counting counts what is launched in the environment.
type counting struct {
	environment.Environment
	run *run
}

func (c counting) Launch(a attestation.Accepted, offered func(payload []byte)) writ.Effect {
	return counted{c.Environment.Launch(a, offered), c.run}
}

type counted struct {
	writ.Effect
	run *run
}

func (c counted) Perform(ctx context.Context, p writ.Permit) operation.Outcome {
	in := p.Intent()
	// The intent is durable before its effect begins, and not only afterwards.
	if n, err := c.run.Store.Version(ctx, operationSubject(in.Key)); err != nil || n != 1 {
		c.run.find("%s is performed with %d events of it in the journal, %v", in.Key, n, err)
	}
	c.run.mu.Lock()
	c.run.performed[in.Key]++
	c.run.mu.Unlock()
	return c.Effect.Perform(ctx, p)
}

// probing hands the adapter's launches on, and tries beside each what must not work.
type probing struct {
	supervisor.Services
	run *run
}

func (p probing) Launch(ctx context.Context, c protocol.Call, parent operation.Key, q protocol.Request) (*operation.Record, error) {
	record, err := p.Services.Launch(ctx, c, parent, q)
	if err != nil {
		p.run.find("it asked for a launch that it cannot have: %v", err)
		return nil, err
	}
	p.run.mu.Lock()
	first := !p.run.probed
	p.run.probed = true
	p.run.mu.Unlock()
	if first {
		p.probe(ctx, c, parent, q)
	}
	return record, nil
}

// probe asks for the same launch again, and for others in its place.
func (p probing) probe(ctx context.Context, c protocol.Call, parent operation.Key, q protocol.Request) {
	if _, err := p.Services.Launch(ctx, c, parent, q); err != nil {
		p.run.find("the same launch asked for twice is refused: %v", err)
	}
	other := q
	other.Parameters = []byte(strings.Replace(string(q.Parameters), `"arguments":[`, `"arguments":["--more",`, 1))
	if _, err := p.Services.Launch(ctx, c, parent, other); err == nil {
		p.run.find("another launch under the same key is not refused")
	}
	foreign := c
	foreign.Operation = operation.Key(strings.Replace(string(c.Operation), "/"+c.Operation.Purpose(), "/foreign", 1))
	if _, err := p.Services.Launch(ctx, foreign, parent, q); err == nil {
		p.run.find("a launch under a key of its own is not refused")
	}
	if _, err := p.Services.Launch(ctx, c, operation.Key(strings.Replace(string(parent), "/start/", "/prepare/", 1)), q); err == nil {
		p.run.find("a launch under another parent is not refused")
	}
	if _, err := p.Services.Observe(ctx, foreign, time.Millisecond); err == nil {
		p.run.find("a launch that there is none of can be observed")
	}
}
