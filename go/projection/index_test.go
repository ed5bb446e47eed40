package projection_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/workorder"
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
