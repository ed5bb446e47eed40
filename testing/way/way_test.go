package way_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/testing/testdist"
	"github.com/writ-runtime/writ/testing/way"
)

// dist makes the release set of these tests, once.
var dist func(t *testing.T) string

// TestMain begins as a host does.
func TestMain(m *testing.M) {
	if err := confine.CloseInherited(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	work, err := os.MkdirTemp("", "writ-way-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	made := ""
	code := built.Run(m, func(b *built.Builder) {
		dist = func(t *testing.T) string {
			if made == "" {
				made = testdist.Make(t, b, "../..", work)
			}
			return made
		}
	})
	_ = os.RemoveAll(work)
	os.Exit(code)
}

func open(t *testing.T, state string) *way.Way {
	t.Helper()
	w, err := way.Open(t.Context(), dist(t), state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func carry(t *testing.T, w *way.Way, order []byte, origin string) way.Account {
	t.Helper()
	a, err := w.Carry(t.Context(), order, origin)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTheWay holds the benchmark to the real thing: six durable turns, and every step.
func TestTheWay(t *testing.T) {
	a := carry(t, open(t, t.TempDir()), way.EmptyOrder(), t.TempDir())
	if len(a.Commits) != 6 || len(a.Steps) != 9 {
		t.Errorf("%d commits, steps %v", len(a.Commits), a.Steps)
	}
}

const order = `kind: writ.workorder.v1
title: A report
objective: Count what is there.
mode: observe
role: analyst
environment:
  provider: wasm
tool:
  name: textstat
  arguments: [--input, docs]
inputs:
  - name: docs
    source: docs
outputs:
  schema: report.schema.json
  result: report.json
  max_count: 2
  max_bytes: 1048576
  paths:
    - path: report.json
      media_type: application/json
    - path: report.md
      media_type: text/markdown
`

// What admission compiles from a real order leaves nothing of B2 to B9 empty. That each
// part has its place, and is under the digest, is for the tests of attemptbundle.
func TestBundleOfARealOrder(t *testing.T) {
	origin := t.TempDir()
	write(t, filepath.Join(origin, "docs", "a.txt"), "one line\n")
	write(t, filepath.Join(origin, "report.schema.json"), `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`)
	a := carry(t, open(t, t.TempDir()), []byte(order), origin)
	if canonical.Sum(a.Bundle.Bytes()) != a.State.Bundle.Digest() {
		t.Error("the attempt ran under another bundle")
	}
	v, err := canonical.Parse(a.Bundle.Bytes(), canonical.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for id, paths := range map[string]string{
		"B2": `reservation.id reservation.digest reservation.expires_unix_ms work_order.id work_order.version work_order.digest
			attempt.id attempt.ordinal attempt.version cause.subject cause.family cause.expected_stream_version
			fence.attempt fence.generation fence.phase`,
		"B3": "role.package role.profile prompt context",
		"B4": "mode code_class requested_grants grants.0.action grants.0.resource policy.decision policy.layers.3.digest",
		"B5": `environment.provider.digest environment.platform environment.root environment.isolation_class environment.network
			environment.workspace environment.limits.memory_bytes environment.reset_policy environment.cleanup_policy
			inputs.inputs.0.name inputs.inputs.0.files.0.digest`,
		"B6": "outputs.schema outputs.result outputs.policy.paths.1.path outputs.policy.max_count outputs.policy.max_bytes outputs.policy.path_policy",
		"B7": "pins.adapter.version pins.adapter.digest pins.tools.0.version pins.tools.0.digest execution.tool execution.seed",
		"B8": "ceilings.network ceilings.processes ceilings.filesystem_bytes ceilings.wall_ms environment.limits.wall_ms environment.limits.cpu_ms",
		"B9": `checkpoint_policy cancellation_deadline_ms reconciliation.tries reconciliation.deadline_ms result_classification
			operations.namespace operations.collision_digest operations.effect_class_registry transition_registry`,
	} {
		t.Run(id, func(t *testing.T) {
			for path := range strings.FieldsSeq(paths) {
				if empty(v, path) {
					t.Errorf("%s is absent or empty in\n%s", path, a.Bundle.Bytes())
				}
			}
		})
	}
}

// empty reports whether nothing, or a value that says nothing, stands at a path.
func empty(v canonical.Value, path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		var next *canonical.Value
		for _, m := range v.Members() {
			if m.Name == name {
				next = &m.Value
			}
		}
		for i := range v.Items() {
			if fmt.Sprint(i) == name {
				next = &v.Items()[i]
			}
		}
		if next == nil {
			return true
		}
		v = *next
	}
	switch v.Kind() {
	case canonical.KindString:
		return v.Str() == ""
	case canonical.KindInteger:
		return v.Int() == 0
	}
	return false
}

// The state is one folder of plain files: a copy of it, and the folder under another name,
// hold everything, and work goes on in both. Nothing is kept anywhere else.
func TestStateFolderMoves(t *testing.T) {
	dist(t) // Made before the environment changes.
	base, elsewhere := t.TempDir(), short(t)
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TMPDIR"} {
		t.Setenv(name, elsewhere)
	}
	state := filepath.Join(base, "state")
	w := open(t, state)
	before := carry(t, w, way.EmptyOrder(), base)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	copied, moved := filepath.Join(base, "a copy"), filepath.Join(base, "moved", "elsewhere")
	if err := os.CopyFS(copied, os.DirFS(state)); err != nil {
		t.Fatalf("the state is more than files: %v", err)
	}
	if err := os.Mkdir(filepath.Dir(moved), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(state, moved); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{copied, moved} {
		w := open(t, folder)
		after, err := w.Ledger.State(t.Context(), before.State.Attempt)
		if err != nil {
			t.Fatalf("%s: %v", folder, err)
		}
		same(t, before.State, after)
		carry(t, w, way.EmptyOrder(), base)
		intact(t, w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("kept outside of the state folder: %v, %v", left, err)
	}
}

// short makes a folder whose name is short enough for sockets below it.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "w")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func same(t *testing.T, before, after kernel.State) {
	t.Helper()
	if before.Bundle.Digest() != after.Bundle.Digest() || before.Events() != after.Events() {
		t.Errorf("the attempt is another one: %+v, %+v", before, after)
	}
	if !slices.EqualFunc(before.Operations(), after.Operations(), func(a, b kernel.Operation) bool {
		return a.Intent == b.Intent && bytes.Equal(a.Record.Receipt, b.Record.Receipt)
	}) {
		t.Error("its receipts are others")
	}
}

func intact(t *testing.T, w *way.Way) {
	t.Helper()
	damaged := func(d journal.Damage) { t.Errorf("damaged: %+v", d) }
	if _, err := w.Journal.Verify(t.Context(), damaged); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Artifacts.Verify(t.Context(), damaged); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
