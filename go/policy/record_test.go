package policy_test

import (
	"bytes"
	"context"
	"reflect"
	"sync"
	"testing"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/reason"
)

func TestReplayGivesTheSameBytes(t *testing.T) {
	for name, in := range map[string]policy.Input{
		"allowed": report(t),
		"denied":  report(t, request(t, "network.connect", "host:h.example:443", "")),
	} {
		recorded, err := conclude(t, load(t, shipped(t), nil), in).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := policy.ParseRecord(recorded)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parsed.Bytes(); err != nil || !bytes.Equal(again, recorded) {
			t.Errorf("%s: a parsed record has other bytes (%v)\n%s\n%s", name, err, recorded, again)
		}
		e := load(t, shipped(t), nil)
		if err := e.Replay(context.Background(), in, recorded); err != nil {
			t.Errorf("%s: %v", name, err)
		}

		other := in
		other.WorkOrder.Role = "reporter"
		changed := load(t, replaced(t, capability.ModeLayer, open+noDenial), nil)
		widened := bytes.Replace(recorded, []byte(`"input:docs/**"`), []byte(`"input:**"`), 1)
		for what, err := range map[string]error{
			"another input":  e.Replay(context.Background(), other, recorded),
			"other policies": changed.Replay(context.Background(), in, recorded),
			"other bytes":    e.Replay(context.Background(), in, widened),
		} {
			if !reason.Is(err, reason.PolicyReplayMismatch) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if err := e.Replay(context.Background(), in, append(recorded, ' ')); err == nil {
			t.Errorf("%s: bytes that are not canonical were replayed", name)
		}
	}
}

func TestDecisionsAreTheSameWhoeverAsks(t *testing.T) {
	e := load(t, shipped(t), nil)
	want, err := conclude(t, load(t, shipped(t), func(o *policy.Options) { o.Memo = -1 }), report(t)).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				d, err := e.Decide(context.Background(), report(t))
				if err != nil {
					t.Error(err)
					return
				}
				in := report(t)
				got, err := e.Conclude(in, d, agreeing(capability.SupportLayer, in), agreeing(capability.BrokerLayer, in)).Bytes()
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("another record (%v)", err)
				}
			}
		})
	}
	group.Wait()
}

func TestMemoForgetsTheOldest(t *testing.T) {
	e := load(t, shipped(t), func(o *policy.Options) { o.Memo = 2 })
	plain := load(t, shipped(t), func(o *policy.Options) { o.Memo = -1 })
	for _, title := range []string{"a", "b", "a", "c", "d", "b", "a"} {
		in := report(t)
		in.WorkOrder.Tool.Name = title
		if got, want := decide(t, e, in), decide(t, plain, in); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the remembered decision differs", title)
		}
	}
}

func TestRulesAreListedWithPlaceAndTitle(t *testing.T) {
	rules := load(t, shipped(t), nil).Rules()
	if len(rules) < 25 {
		t.Errorf("only %d rules", len(rules))
	}
	for _, r := range rules {
		if r.Title == "" || r.File == "" || r.Line < 1 || !r.Layer.Valid() {
			t.Errorf("%+v", r)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	for name, memo := range map[string]int{"fresh": -1, "remembered": 8} {
		b.Run(name, func(b *testing.B) {
			e := load(b, shipped(b), func(o *policy.Options) { o.Memo = memo })
			in := report(b)
			for b.Loop() {
				if _, err := e.Decide(context.Background(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
