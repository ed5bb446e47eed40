package worker_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment/wasm/worker"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/reason"
)

// What a guest offers as a checkpoint comes to the host while the guest runs: in order,
// unaltered, within its bound; and nothing comes where none may be offered.
func TestOffers(t *testing.T) {
	module := shared.badtools(t)
	for name, c := range map[string]struct {
		args    []string
		most    int64
		offers  []string
		code    uint32
		touched []worker.Limit
	}{
		"three":                {[]string{"offer", "one", "two", "three"}, 100, []string{"one", "two", "three"}, 0, nil},
		"exactly the bound":    {[]string{"offer", "abcde"}, 5, []string{"abcde"}, 0, nil},
		"beyond the bound":     {[]string{"offer", "abcde", "abcdef"}, 5, []string{"abcde"}, 0, []worker.Limit{wire.LimitOffer}},
		"more than may be":     {[]string{"offer-much"}, wire.MaxOffer, nil, 0, []worker.Limit{wire.LimitOffer}},
		"where none are taken": {[]string{"offer", "one"}, 0, nil, 1, nil},
		"to be made more of":   {[]string{"offer-else"}, 100, nil, 0, nil},
		"nothing":              {[]string{"offer", ""}, 100, nil, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := provisioned(t, limits(), module)
			last := []byte("{}")
			must(t, w.Materialize(context.Background(), []worker.File{{Mount: "checkpoint", Path: "last.json", Digest: canonical.Sum(last), Bytes: last}}))
			var got []string
			exit, err := w.Run(context.Background(), worker.RunRequest{
				Args: append([]string{"badtools"}, c.args...), Seed: "s", WallMillis: 30_000,
				MaxOffer: c.most, Offered: func(payload []byte) { got = append(got, string(payload)) },
			})
			must(t, err)
			if !slices.Equal(got, c.offers) {
				t.Errorf("offered %q, want %q", got, c.offers)
			}
			if name == "beyond the bound" {
				// The tool gave up at the write that failed: that explains its status.
				if exit.Kind != wire.ExitLimit || exit.Limit != wire.LimitOffer {
					t.Errorf("ended %+v", exit.Exit)
				}
			} else if exit.Kind != wire.ExitCode || exit.Code != c.code {
				t.Errorf("ended %+v, stderr %s", exit.Exit, exit.Stderr)
			}
			if !slices.Equal(exit.Touched, c.touched) {
				t.Errorf("touched %v, want %v", exit.Touched, c.touched)
			}
			entries, err := w.List(context.Background())
			must(t, err)
			for _, e := range entries {
				if e.Path != "ok" && e.Path != "own" {
					t.Errorf("what was offered is an output: %s", e.Path)
				}
			}
		})
	}
}

// An offer comes while the guest still runs: this one never ends by itself.
func TestAnOfferComesBeforeTheEnd(t *testing.T) {
	w, _ := provisioned(t, limits(), shared.badtools(t))
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var got []byte
	_, err := w.Run(ctx, worker.RunRequest{
		Args: []string{"badtools", "offer-loop", "here"}, Seed: "s", WallMillis: 60_000, MaxOffer: 100,
		Offered: func(payload []byte) { got = payload; cancel(fmt.Errorf("seen")) },
	})
	if err == nil || string(got) != "here" {
		t.Errorf("got %q and %v", got, err)
	}
}

// Offers larger than any checkpoint are refused before the guest begins.
func TestOffersAreBounded(t *testing.T) {
	for _, most := range []int64{-1, wire.MaxOffer + 1} {
		w, _ := provisioned(t, limits(), shared.empty(t))
		_, err := w.Run(context.Background(), worker.RunRequest{Args: []string{"empty"}, Seed: "s", WallMillis: 1000, MaxOffer: most, Offered: func([]byte) {}})
		if !reason.Is(err, reason.EnvironmentProtocol) {
			t.Errorf("offers of %d bytes: %v", most, err)
		}
	}
}
