package lifecycle_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/schemas"
)

// Every entry of the registry says everything itself: what a reader has to guess, two
// readers guess differently (L1).
func TestEveryEntrySaysEverything(t *testing.T) {
	known := map[string]bool{}
	for _, k := range operation.Kinds() {
		known[k.ReceiptName()] = true
	}
	for _, document := range []string{
		"ActivationReceipt", "AttemptReservation", "AttemptResult", "CancellationRequest", "CheckpointEnvelope", "ClockObservation",
		"CompletionReport", "EnvironmentAttestation", "EnvironmentReconciliation", "FailureReport", "FenceObservation", "IngressReceipt",
		"OperationIntent", "OperationReceipt", "PolicyDecision", "ReconciliationResult", "ReductionReceipt", "RetentionReceipt",
	} {
		known[document] = true
	}
	names, err := fs.Glob(schemas.FS, "transitions/*.json")
	if err != nil || len(names) < 6 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		raw, err := fs.ReadFile(schemas.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		var machine struct{ Transitions []map[string]json.RawMessage }
		if err := json.Unmarshal(raw, &machine); err != nil {
			t.Fatal(err)
		}
		for _, entry := range machine.Transitions {
			for _, field := range []string{"from", "family", "to", "receipts", "effect_class", "terminal", "cleanup", "projector"} {
				if len(entry[field]) == 0 {
					t.Errorf("%s: %s leaves out %s", name, entry["family"], field)
				}
			}
		}
	}
	for _, m := range registry(t).Machines() {
		for _, tr := range m.Transitions {
			if c := operation.EffectClass(tr.EffectClass); tr.EffectClass != "none" && tr.EffectClass != "any" && !c.Valid() {
				t.Errorf("%s: no effect class is called %q", tr.Family, tr.EffectClass)
			}
			if tr.Cleanup != lifecycle.CleanupNone && tr.Cleanup != lifecycle.CleanupDestroyOrRetain {
				t.Errorf("%s: no obligation is called %q", tr.Family, tr.Cleanup)
			}
			if tr.Projector == 0 {
				t.Errorf("%s names no version of its projector", tr.Family)
			}
			for _, r := range tr.Receipts {
				if !known[r] {
					t.Errorf("%s: no receipt is called %q", tr.Family, r)
				}
			}
		}
	}
}

// A registry with any other byte of meaning has another digest: the one in a bundle pins
// every entry.
func TestTheDigestPinsEveryEntry(t *testing.T) {
	whole := registry(t).Digest()
	names, err := fs.Glob(schemas.FS, "transitions/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for changed := range names {
		var files [][]byte
		for i, name := range names {
			raw, err := fs.ReadFile(schemas.FS, name)
			if err != nil {
				t.Fatal(err)
			}
			if i == changed {
				raw = bytes.Replace(raw, []byte(`"projector": 1`), []byte(`"projector": 2`), 1)
			}
			files = append(files, raw)
		}
		r, err := lifecycle.NewRegistry(files...)
		if err != nil {
			t.Fatal(err)
		}
		if r.Digest() == whole {
			t.Errorf("a change in %s does not change the digest", names[changed])
		}
	}
}
