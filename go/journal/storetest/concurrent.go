package storetest

import (
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
)

const clients = 64

// testRace lets many clients want the same version: one wins each round.
func testRace(t *testing.T, h *harness) {
	for round := range uint64(10) {
		var mu sync.Mutex
		var won, lost int
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				results, err := h.store.Append(t.Context(), h.batch(fmt.Sprintf("%d-%d", round, c), subjectA, round, 1))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					t.Errorf("Append: %v", err)
				case results[0].Err == nil:
					won++
				case reason.Is(results[0].Err, reason.JournalConflict):
					lost++
				default:
					t.Errorf("Append: %v", results[0].Err)
				}
			})
		}
		wg.Wait()
		if won != 1 || lost != clients-1 {
			t.Fatalf("round %d: %d winners, %d losers", round, won, lost)
		}
	}
}

// testConcurrent lets many clients append to subjects of their own while others read.
func testConcurrent(t *testing.T, h *harness) {
	const each = 10
	var wg sync.WaitGroup
	sequences := make(chan uint64, clients*each)
	for c := range clients {
		wg.Go(func() {
			subject := lifecycle.Of("machine", fmt.Sprint(c))
			for i := range uint64(each) {
				b := h.batch(fmt.Sprintf("%d-%d", c, i), subject, i, 1)
				b.Blobs = []journal.Blob{NewBlob(fmt.Sprint(c, i))}
				results, err := h.store.Append(t.Context(), b)
				if err != nil || results[0].Err != nil {
					t.Errorf("client %d: %v, %+v", c, err, results)
					return
				}
				sequences <- results[0].Sequence
				// Read your own writes, and a prefix without gaps.
				if v, err := h.store.Version(t.Context(), subject); err != nil || v != i+1 {
					t.Errorf("client %d reads version %d, %v, want %d", c, v, err, i+1)
				}
				entries, err := h.store.Page(t.Context(), results[0].Sequence-1, 1)
				if err != nil || len(entries) != 1 || entries[0].Identity != b.Identity {
					t.Errorf("client %d does not find its batch: %v", c, err)
				}
			}
		})
	}
	wg.Wait()
	close(sequences)
	seen := map[uint64]bool{}
	for s := range sequences {
		if seen[s] || s < 1 || s > clients*each {
			t.Errorf("sequence %d is answered twice or lies outside", s)
		}
		seen[s] = true
	}
	if extent := h.verify(); extent.Batches != clients*each || extent.Blobs != clients*each {
		t.Errorf("extent %+v", extent)
	}
}

// testModel holds random appends and reopenings against a map.
func testModel(t *testing.T, h *harness) {
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		versions := map[lifecycle.Subject]uint64{}
		stored := map[string]journal.Batch{}
		first := map[string]journal.Result{}
		subject := rapid.Custom(func(r *rapid.T) lifecycle.Subject {
			return lifecycle.Of("machine", fmt.Sprintf("%d-%d", round, rapid.IntRange(0, 2).Draw(r, "subject")))
		})
		r.Repeat(map[string]func(*rapid.T){
			"append": func(r *rapid.T) {
				s := subject.Draw(r, "of")
				from := versions[s] + uint64(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(r, "ahead"))
				n := rapid.IntRange(1, 3).Draw(r, "events")
				name := fmt.Sprintf("%d-%d", round, rapid.IntRange(0, 9).Draw(r, "name"))
				b := h.batch(name, s, from, n)
				results, err := h.store.Append(t.Context(), b)
				if err != nil {
					r.Fatalf("Append: %v", err)
				}
				before, known := stored[name]
				same := known && before.Events[0].Subject == s && before.Expect[0].Version == from && len(before.Events) == n
				got := results[0]
				switch {
				case same:
					if got.Err != nil || !got.Replayed || got.Sequence != first[name].Sequence || got.Chain != first[name].Chain {
						r.Fatalf("repeat: %+v, want %+v", got, first[name])
					}
				case known:
					if !reason.Is(got.Err, reason.OperationCollision) {
						r.Fatalf("collision: %+v", got)
					}
				case from != versions[s]:
					if !reason.Is(got.Err, reason.JournalConflict) {
						r.Fatalf("conflict: %+v", got)
					}
				default:
					if got.Err != nil || got.Replayed {
						r.Fatalf("append: %+v", got)
					}
					stored[name], first[name] = b, got
					versions[s] += uint64(n)
				}
			},
			"reopen": func(r *rapid.T) {
				if rapid.IntRange(0, 9).Draw(r, "really") == 0 {
					h.restart()
				}
			},
			"": func(r *rapid.T) {
				for s, want := range versions {
					if got := h.version(s); got != want {
						r.Fatalf("%s is at version %d, want %d", s, got, want)
					}
				}
			},
		})
	})
}
