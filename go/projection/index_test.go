package projection_test

import (
	"bytes"
	"io/fs"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/schemas"
	"github.com/writ-runtime/writ/testing/fixture"
)

// An index can be dropped and built again to the same bytes, and says where an attempt
// stands at every turn.
func TestIndex(t *testing.T) {
	store, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	k := fixture.Kernel(t)
	var state kernel.State
	turn := func(identity operation.Key, commands ...kernel.Command) {
		t.Helper()
		d, err := k.Decide(state, commands...)
		if err != nil {
			t.Fatal(err)
		}
		results, err := store.Append(t.Context(), journal.Batch{
			Identity: identity, Epoch: store.Epoch(), Actor: "uid:0", At: fixture.Clock{}.Now(), Events: d.Events,
		})
		if err != nil || results[0].Err != nil {
			t.Fatal(err, results)
		}
		state = d.State
	}
	build := func() *projection.Index {
		t.Helper()
		a, err := projection.Build(t.Context(), store, k.Transitions())
		if err != nil {
			t.Fatal(err)
		}
		b, err := projection.Build(t.Context(), store, k.Transitions())
		if err != nil {
			t.Fatal(err)
		}
		first, err := canonical.DigestOf(a)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := canonical.DigestOf(b); err != nil || again != first {
			t.Errorf("built again the index differs: %v", err)
		}
		return a
	}
	if x := build(); len(x.Attempts) != 0 || x.Sequence != 0 {
		t.Errorf("the index of an empty journal is %+v", x)
	}
	turn("writ/a/ledger/turn/1", fixture.Submit(), kernel.Reserve{Reservation: fixture.Reserved(t, k)})
	x := build()
	if len(x.Attempts) != 1 || x.Attempts[0].State != "reserved" || x.Attempts[0].Terminal(k.Transitions()) || x.Attempts[0].Result != nil {
		t.Fatalf("%+v", x.Attempts)
	}
	turn("writ/a/ledger/turn/2", kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Lost, Detail: "test"}})
	x = build()
	a := x.Attempts[0]
	if !a.Terminal(k.Transitions()) || a.Result == nil || a.Result.Conclusion != workorder.Lost || a.Order != "submitted" || x.Sequence != 2 {
		t.Errorf("%+v", a)
	}
	for prefix, want := range map[string]bool{string(fixture.Attempt): true, string(fixture.WorkOrder)[:8]: true, "att_": true, "att_f": false} {
		if one, _ := x.Find(prefix); (one != nil) != want {
			t.Errorf("find %q: %v", prefix, one)
		}
	}
}

// versions is the shipped registry, with what change makes of each file beside it.
func versions(t *testing.T, keep bool, change func([]byte) []byte) *lifecycle.Registry {
	t.Helper()
	names, err := fs.Glob(schemas.FS, "transitions/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var files [][]byte
	for _, name := range names {
		b, err := fs.ReadFile(schemas.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		if files = append(files, change(b)); keep {
			files = append(files, b)
		}
	}
	r, err := lifecycle.NewRegistry(files...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A journal of the first version of every machine gives the same index, byte for byte,
// and the same attempts at their end, under a registry that has a second one in which a
// failed attempt is not at its end and a destroyed environment still owes something (L3). An index refuses what only a newer projector
// understands.
func TestIndexUnderASecondVersion(t *testing.T) {
	store, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	k := fixture.Kernel(t)
	var state kernel.State
	turn := func(identity operation.Key, commands ...kernel.Command) {
		t.Helper()
		d, err := k.Decide(state, commands...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Append(t.Context(), journal.Batch{
			Identity: identity, Epoch: store.Epoch(), Actor: "uid:0", At: fixture.Clock{}.Now(), Events: d.Events,
		}); err != nil {
			t.Fatal(err)
		}
		state = d.State
	}
	reserved := fixture.Reserved(t, k)
	turn("writ/a/ledger/turn/1", fixture.Submit(), kernel.Reserve{Reservation: reserved})
	turn("writ/a/ledger/turn/2", kernel.Activate{Bundle: fixture.Bundle(t, k, reserved, nil), Now: fixture.At(0)},
		kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.AttemptFailed, Detail: "test"}})
	plan, err := k.Next(state)
	if err != nil || len(plan.Begin) != 1 {
		t.Fatalf("%+v, %v", plan, err)
	}
	turn("writ/a/ledger/turn/3", kernel.Begin{Intent: plan.Begin[0]})
	turn("writ/a/ledger/turn/4", kernel.Settle{Key: plan.Begin[0].Key, Outcome: operation.Outcome{Knowledge: operation.Applied}, Receipt: canonical.Raw("{}"), Generation: 1})
	second := versions(t, true, func(b []byte) []byte {
		b = bytes.Replace(b, []byte(`"version": 1`), []byte(`"version": 2`), 1)
		lines := bytes.Split(b, []byte("\n"))
		for i, line := range lines {
			switch {
			case bytes.Contains(line, []byte(`"family": "attempt.`)) && bytes.Contains(line, []byte(`"to": "failed"`)):
				lines[i] = bytes.Replace(line, []byte(`"terminal": true`), []byte(`"terminal": false`), 1)
			case bytes.Contains(line, []byte(`"family": "environment.`)) && bytes.Contains(line, []byte(`"to": "destroyed"`)):
				lines[i] = bytes.Replace(line, []byte(`"cleanup": "none"`), []byte(`"cleanup": "destroy_or_retain"`), 1)
			}
		}
		if !bytes.Contains(b, []byte(`"machine": "attempt"`)) {
			return bytes.Join(lines, []byte("\n"))
		}
		return bytes.Replace(bytes.Join(lines, []byte("\n")), []byte(`"transitions": [`), []byte(`"transitions": [
			{"from": ["failed"], "family": "attempt.filed", "to": "filed", "receipts": [], "effect_class": "none", "terminal": true, "cleanup": "none", "projector": 1},`), 1)
	})
	before, err := projection.Build(t.Context(), store, k.Transitions())
	if err != nil {
		t.Fatal(err)
	}
	after, err := projection.Build(t.Context(), store, second)
	if err != nil {
		t.Fatal(err)
	}
	a, err := canonical.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := canonical.Marshal(after); err != nil || !bytes.Equal(a, b) {
		t.Errorf("under a second version the index is\n%s\nand was\n%s\n%v", b, a, err)
	}
	if !before.Attempts[0].Terminal(k.Transitions()) || !after.Attempts[0].Terminal(second) {
		t.Error("the attempt is not at its end under both versions")
	}
	newer := versions(t, false, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"projector": 1`), []byte(`"projector": 2`)) })
	if _, err := projection.Build(t.Context(), store, newer); !reason.Is(err, reason.ProjectionNewerVersion) {
		t.Errorf("an index was built of events that need a newer projector: %v", err)
	}
}
