package faultfs_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/schemas"
)

// edge is one registered transition from one of its states, with a way to that state.
type edge struct {
	machine *lifecycle.Machine
	from    lifecycle.State
	way     []lifecycle.Transition
	step    lifecycle.Transition
}

func registry(t testing.TB) *lifecycle.Registry {
	t.Helper()
	names, err := fs.Glob(schemas.FS, "transitions/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var files [][]byte
	for _, name := range names {
		raw, err := fs.ReadFile(schemas.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, raw)
	}
	r, err := lifecycle.NewRegistry(files...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// edges are all edges of a machine, each with the shortest way to where it begins.
func edges(m *lifecycle.Machine) []edge {
	ways := map[lifecycle.State][]lifecycle.Transition{"": {}}
	for queue := []lifecycle.State{""}; len(queue) > 0; queue = queue[1:] {
		for _, tr := range m.Transitions {
			for _, from := range tr.From {
				if _, known := ways[tr.To]; from == queue[0] && !known {
					ways[tr.To] = append(ways[from][:len(ways[from]):len(ways[from])], tr)
					queue = append(queue, tr.To)
				}
			}
		}
	}
	var all []edge
	for _, tr := range m.Transitions {
		for _, from := range tr.From {
			all = append(all, edge{m, from, ways[from], tr})
		}
	}
	return all
}

// event is the n-th event of a subject, by a transition, with every receipt that it needs.
func event(m *lifecycle.Machine, s lifecycle.Subject, n int, tr lifecycle.Transition) lifecycle.Event {
	e := lifecycle.Event{Subject: s, Version: uint64(n), Family: tr.Family, Machine: m.Version, Body: canonical.Raw("{}")}
	for _, name := range tr.Receipts {
		e.Guards = append(e.Guards, lifecycle.Guard{Name: name, Digest: canonical.Sum([]byte(name))})
	}
	return e
}

// Every edge of every machine of the registry is crashed in: whatever the log had of its
// turn when the power went, the subject stands where it stood or where the edge leads, the
// edge is there once it was acknowledged, and only what the registry lets pass is read back
// (L6).
func TestEveryEdgeIsCrashedIn(t *testing.T) {
	r := registry(t)
	total := 0
	for _, m := range r.Machines() {
		all := edges(m)
		total += len(all)
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Write: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for i, e := range all {
				e.crash(t, r, s, dir, lifecycle.Of(m.Name, fmt.Sprintf("x%d", i)))
			}
		})
	}
	if total < 200 {
		t.Errorf("there are only %d edges", total)
	}
}

// crash brings a subject to where the edge begins, takes the edge, and opens what a crash
// would leave at several lengths of the log.
func (e edge) crash(t *testing.T, r *lifecycle.Registry, s *sqlite.Store, dir string, subject lifecycle.Subject) {
	t.Helper()
	var events []lifecycle.Event
	for i, tr := range e.way {
		events = append(events, event(e.machine, subject, i+1, tr))
	}
	if len(events) > 0 {
		add(t, s, "way", events)
	}
	last := event(e.machine, subject, len(e.way)+1, e.step)
	log := filepath.Join(dir, "journal.db-wal")
	before := size(t, log)
	add(t, s, "edge", []lifecycle.Event{last})
	after := size(t, log)
	if after <= before {
		t.Fatalf("%s: the log has %d bytes after the turn, %d before it: the test knows nothing of it", last.Family, after, before)
	}
	for _, left := range []int64{before, before + (after-before)/2, after - 1, after} {
		image := filepath.Join(t.TempDir(), "state")
		if err := os.CopyFS(image, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(image, "journal.db-shm")) // Shared memory dies with the machine.
		if err := os.Truncate(filepath.Join(image, "journal.db-wal"), left); err != nil {
			t.Fatal(err)
		}
		e.stands(t, r, image, subject, left == after)
	}
}

// stands opens an image and holds where the subject stands against the registry.
func (e edge) stands(t *testing.T, r *lifecycle.Registry, image string, subject lifecycle.Subject, taken bool) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), image, sqlite.Options{Write: true})
	if err != nil {
		t.Fatalf("%s: %v", e.step.Family, err)
	}
	defer s.Close()
	recorded, err := s.Events(t.Context(), subject)
	if err != nil {
		t.Fatalf("%s: %v", e.step.Family, err)
	}
	var state lifecycle.State
	for _, ev := range recorded {
		tr, err := r.Apply(state, ev.Event, nil)
		if err != nil {
			t.Fatalf("%s: %v", e.step.Family, err)
		}
		state = tr.To
	}
	want, n := e.from, len(e.way)
	if taken {
		want, n = e.step.To, n+1
	}
	if state != want || len(recorded) != n {
		t.Errorf("%s from %q: after the crash it is %q, by %d events; want %q, by %d", e.step.Family, e.from, state, len(recorded), want, n)
	}
	// The turn can be repeated: it is there already, or takes place now.
	add(t, s, "edge", []lifecycle.Event{event(e.machine, subject, len(e.way)+1, e.step)})
	if again, err := s.Events(t.Context(), subject); err != nil || len(again) != len(e.way)+1 {
		t.Errorf("%s: repeated after the crash it has %d events, %v", e.step.Family, len(again), err)
	}
}

// add appends events of one subject in one turn, under an identity of their own.
func add(t *testing.T, s *sqlite.Store, what string, events []lifecycle.Event) {
	t.Helper()
	subject := events[0].Subject
	results, err := s.Append(context.Background(), journal.Batch{
		Identity: operation.Key(fmt.Sprintf("writ/%s/test/turn/%s", strings.ReplaceAll(string(subject), "/", "-"), what)),
		Epoch:    s.Epoch(), Actor: "person:tester", Cause: "edges", At: journal.Observation{Domain: "test", UnixMilli: 1_700_000_000_000},
		Expect: []journal.Expectation{{Subject: subject, Version: events[0].Version - 1}}, Events: events,
	})
	if err != nil || results[0].Err != nil {
		t.Fatalf("%s: %v, %v", events[0].Family, err, results)
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
