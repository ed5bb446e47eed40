package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// reader is a journal that can become another one, as by a recovery, and whose reading can fail.
type reader struct {
	journal.Reader
	fails error
}

func (r *reader) Page(ctx context.Context, after uint64, limit int) ([]journal.Entry, error) {
	if r.fails != nil {
		return nil, r.fails
	}
	return r.Reader.Page(ctx, after, limit)
}

func marshal(t *testing.T, x *projection.Index, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := canonical.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// same holds a view against an index that is built anew, and returns both's bytes.
func same(t *testing.T, v *projection.View, j journal.Reader, k kernel.Kernel) []byte {
	t.Helper()
	x, err := v.Index(t.Context())
	got := marshal(t, x, err)
	x, err = projection.Build(t.Context(), j, k.Transitions())
	if want := marshal(t, x, err); !bytes.Equal(got, want) {
		t.Fatalf("the view has\n%s\nand built anew it is\n%s", got, want)
	}
	return got
}

func abandon(why string) kernel.Abandon {
	return kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Lost, Detail: why}}
}

// A view that is asked at every turn has the index as it is built anew, byte for byte, and what
// it has answered stays as it was.
func TestAViewIsTheIndexAtEveryTurn(t *testing.T) {
	a := fixture.Admit(t, nil)
	k := a.Ledger.Kernel()
	v := projection.NewView(a.Store, k.Transitions())
	first, err := v.Index(t.Context())
	before := marshal(t, first, err)
	turns := map[string]bool{string(before): true}
	for _, commands := range [][]kernel.Command{
		{a.Activation()},
		{kernel.Fence{Why: "test"}},
	} {
		a.Next(commands...)
		turns[string(same(t, v, a.Store, k))] = true
		same(t, v, a.Store, k) // Nothing new.
	}
	if len(turns) != 3 {
		t.Errorf("three turns had %d indexes", len(turns))
	}
	if !bytes.Equal(marshal(t, first, nil), before) {
		t.Error("an index that was answered has changed")
	}
}

// What was pending when a view was asked is what its answer says, whatever is decided later.
func TestAnAnswerOfAViewKeepsWhatWasPending(t *testing.T) {
	a := fixture.Admit(t, nil)
	deliver := func(n int, at kernel.Standing, c func(kernel.Delivery) kernel.Command) {
		t.Helper()
		d := kernel.Delivery{ID: fixture.Delivery(n), At: at}
		if _, err := a.Ledger.CommitDelivery(t.Context(), d, ledger.Turn{Commands: []kernel.Command{c(d)}, Actor: "uid:0"}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 {
		deliver(n, kernel.Standing{}, func(d kernel.Delivery) kernel.Command {
			return kernel.Receive{Delivery: d, Receipt: fixture.Digest("receipt")}
		})
	}
	v := projection.NewView(a.Store, a.Ledger.Kernel().Transitions())
	x, err := v.Index(t.Context())
	before := marshal(t, x, err)
	if len(x.Pending) != 3 {
		t.Fatalf("%v are pending", x.Pending)
	}
	deliver(0, kernel.Standing{State: "received", Version: 1, Machine: 1}, func(d kernel.Delivery) kernel.Command {
		return kernel.Reject{Delivery: d, As: "command.malformed", Failure: kernel.Failure{Detail: "test"}}
	})
	same(t, v, a.Store, a.Ledger.Kernel())
	if !bytes.Equal(marshal(t, x, nil), before) {
		t.Error("an index that was answered has changed")
	}
}

// A view sees that its journal was recovered to another one: shorter, as long and longer.
func TestAViewOfAnotherJournalBeginsAnew(t *testing.T) {
	a, b := fixture.Admit(t, nil), fixture.Admit(t, nil)
	k := a.Ledger.Kernel()
	j := &reader{Reader: a.Store}
	v := projection.NewView(j, k.Transitions())
	a.Next(abandon("the first"))
	same(t, v, j, k)
	j.Reader = b.Store
	same(t, v, j, k) // The same first turn, and no second one.
	b.Next(abandon("the other"))
	same(t, v, j, k)
	j.Reader = a.Store
	same(t, v, j, k) // Another second turn.
	c := fixture.Admit(t, nil)
	c.Next(c.Activation())
	c.Next(kernel.Fence{Why: "test"})
	j.Reader = c.Store
	same(t, v, j, k) // Another second turn, and a third.
}

// A view goes on after a journal that could not be read, and refuses what is refused as often as
// it is asked.
func TestAViewGoesOnAfterAFailure(t *testing.T) {
	a := fixture.Admit(t, nil)
	k := a.Ledger.Kernel()
	j := &reader{Reader: a.Store}
	v := projection.NewView(j, k.Transitions())
	same(t, v, j, k)
	d, err := k.Decide(a.State, abandon("forged"))
	if err != nil {
		t.Fatal(err)
	}
	a.Next(a.Activation())
	j.fails = errors.New("the disk is away")
	if _, err := v.Index(t.Context()); !errors.Is(err, j.fails) {
		t.Fatalf("got %v", err)
	}
	j.fails = nil
	same(t, v, j, k)
	for i := range d.Events {
		d.Events[i].Guards, d.Events[i].Version = nil, a.State.Standing(d.Events[i].Subject).Version+1
	}
	results, err := a.Store.Append(t.Context(), journal.Batch{
		Identity: "writ/forged/ledger/turn/1", Epoch: a.Store.Epoch(), Actor: "uid:0", At: fixture.Clock{}.Now(), Events: d.Events[:1],
	})
	if err != nil || results[0].Err != nil {
		t.Fatal(err, results)
	}
	for range 2 {
		var refused *projection.RefusedError
		if _, err := v.Index(t.Context()); !errors.As(err, &refused) {
			t.Fatalf("a forged turn: %v", err)
		}
	}
}
