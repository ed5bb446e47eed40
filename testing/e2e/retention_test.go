package e2e_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/go/workorder"
)

// ago is the clock of this machine, so long ago.
type ago time.Duration

func (a ago) Now() journal.Observation {
	return journal.Observation{Domain: "host", UnixMilli: time.Now().Add(-time.Duration(a)).UnixMilli()}
}
func (ago) Micros() int64 { return 0 }
func (ago) Lot() uint32   { return 0 }

const keepOrder = `kind: writ.workorder.v1
title: Keep
mode: observe
role: analyst
environment: {provider: wasm}
tool: {name: badtools, arguments: [undeclared]}
outputs: {max_count: 1, max_bytes: 1000, paths: [{path: ok, media_type: text/plain, required: false}]}
retention: {keep: true, days: 7}
`

// keptAgo carries an order out so long ago, and returns where its workspace is kept.
func (s *suite) keptAgo(t *testing.T, state string, since time.Duration) string {
	t.Helper()
	h, err := host.Open(t.Context(), host.Options{State: state, Dist: s.dist, Activity: "a test", Clock: ago(since)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	registry, err := schema.Open()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := registry.Load("order.yaml", []byte(keepOrder), workorder.Kind)
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := h.Accept(ingress.Run, doc.Canonical)
	if err != nil {
		t.Fatal(err)
	}
	admitted, err := h.Admission.Admit(t.Context(), doc, t.TempDir(), accepted, func(s kernel.Submit) []kernel.Command { return []kernel.Command{s} })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.CarryOut(t.Context(), admitted, accepted, host.Watch{}); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(state, "retained", "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept are %v, %v", kept, err)
	}
	return kept[0]
}

// A tick removes what was kept once its time is over, tells a person, and the journal holds
// it; before its time nothing is said and nothing recorded (L5).
func TestATickRemovesWhatWasKept(t *testing.T) {
	s := ready(t)
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		since time.Duration
		over  bool
	}{
		"a day before":   {6 * day, false},
		"a minute after": {7*day + time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			copyTree(t, s.cache, filepath.Join(state, "cache"))
			if err := os.Chmod(state, 0o700); err != nil {
				t.Fatal(err)
			}
			kept := s.keptAgo(t, state, test.since)
			for i := range 2 {
				status, out, errs := s.output(t, "tick", "--state", state)
				want := "Nothing waits.\n"
				if test.over && i == 0 {
					want = "what was kept, 1 file, 19 B: removed\n"
				}
				if status != 0 || !strings.HasSuffix(out, want) {
					t.Errorf("tick %d: %d, %q, %s", i, status, out, errs)
				}
			}
			if _, err := os.Stat(kept); errors.Is(err, os.ErrNotExist) != test.over {
				t.Errorf("kept: %v", err)
			}
			id := strings.TrimSuffix(filepath.Base(kept), ".g1")
			status, out, errs := s.output(t, "show", "--state", state, id)
			if status != 0 || strings.Contains(out, ": removed") != test.over || strings.Contains(out, kept) == test.over || !strings.Contains(out, "1 file, 19 B, until ") {
				t.Errorf("show: %d\n%s%s", status, out, errs)
			}
			_, out, _ = s.output(t, "show", "--state", state, "--json", id)
			var shown struct {
				Kept struct {
					Ended *journal.Observation
					At    journal.Observation
					Until journal.Observation
				}
				Events []struct{ Family string }
			}
			if err := json.Unmarshal([]byte(out), &shown); err != nil {
				t.Fatal(err)
			}
			last := shown.Events[len(shown.Events)-1].Family
			if over := shown.Kept.Ended != nil && shown.Kept.Ended.Reached(shown.Kept.Until) && last == "environment.retention_ended"; over != test.over {
				t.Errorf("ended at %+v, until %+v; the newest event is %s", shown.Kept.Ended, shown.Kept.Until, last)
			}
			if shown.Kept.Until.UnixMilli-shown.Kept.At.UnixMilli != (7 * day).Milliseconds() {
				t.Errorf("kept from %+v until %+v", shown.Kept.At, shown.Kept.Until)
			}
			if status, out, errs := s.output(t, "verify", "--state", state); status != 0 {
				t.Errorf("verify: %d\n%s%s", status, out, errs)
			}
		})
	}
}
