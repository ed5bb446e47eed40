package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
)

const subjectA, subjectB = lifecycle.Subject("machine/a"), lifecycle.Subject("machine/b")

func testAppend(t *testing.T, h *harness) {
	if r := h.must(h.batch("one", subjectA, 0, 2)); r.Sequence != 1 || !r.Chain.Valid() || r.Replayed {
		t.Errorf("first result %+v", r)
	}
	if r := h.must(h.batch("two", subjectA, 2, 1)); r.Sequence != 2 {
		t.Errorf("second result %+v", r)
	}
	if v := h.version(subjectA); v != 3 {
		t.Errorf("version %d, want 3", v)
	}
}

func testAppendSeveral(t *testing.T, h *harness) {
	several := h.batch("one", subjectA, 0, 1)
	several.Events = append(several.Events, h.batch("one", subjectB, 0, 1).Events...)
	results := h.append(several, h.batch("two", subjectA, 1, 1), h.batch("three", subjectB, 1, 1))
	for i, r := range results {
		if r.Err != nil || r.Sequence != uint64(i)+1 {
			t.Errorf("result %d: %+v", i, r)
		}
	}
	if a, b := h.version(subjectA), h.version(subjectB); a != 2 || b != 2 {
		t.Errorf("versions %d and %d, want 2 and 2", a, b)
	}
}

func testReplay(t *testing.T, h *harness) {
	b := h.batch("one", subjectA, 0, 1)
	first := h.must(b)
	h.must(h.batch("two", subjectA, 1, 1))
	want := journal.Result{Sequence: first.Sequence, Chain: first.Chain, Replayed: true}
	check := func(when string, b journal.Batch) {
		t.Helper()
		if r := h.must(b); r != want {
			t.Errorf("%s: %+v, want %+v", when, r, want)
		}
	}
	check("exact repeat", b)
	b.At.UnixMilli++
	b.Actor, b.Cause = "person:other", "later"
	check("with another envelope", b)
	h.restart()
	check("under an older epoch", b)
	b.Epoch = h.store.Epoch()
	check("after reopening", b)
	if n := len(h.page(0, 10)); n != 2 {
		t.Errorf("%d batches are stored, want 2", n)
	}
}

func testReplayInOneCall(t *testing.T, h *harness) {
	b := h.batch("one", subjectA, 0, 1)
	r := h.append(b, b)
	if r[0].Err != nil || r[0].Replayed || r[1].Err != nil || !r[1].Replayed || r[0].Chain != r[1].Chain {
		t.Errorf("results %+v", r)
	}
}

func testCollision(t *testing.T, h *harness) {
	first := h.batch("one", subjectA, 0, 1)
	first.Blobs = []journal.Blob{NewBlob("blob")}
	h.must(first)
	for name, change := range map[string]func(*journal.Batch){
		"another body":       func(b *journal.Batch) { b.Events[0].Body = canonical.Raw(`{}`) },
		"another family":     func(b *journal.Batch) { b.Events[0].Family = "machine.other" },
		"another guard":      func(b *journal.Batch) { b.Events[0].Guards[0].Digest = canonical.Sum(nil) },
		"another machine":    func(b *journal.Batch) { b.Events[0].Machine++ },
		"another event":      func(b *journal.Batch) { b.Events = append(b.Events, h.batch("x", subjectB, 0, 1).Events...) },
		"fewer blobs":        func(b *journal.Batch) { b.Blobs = nil },
		"another media type": func(b *journal.Batch) { b.Blobs = []journal.Blob{NewBlob("blob")}; b.Blobs[0].MediaType = "x/y" },
		"no expectation":     func(b *journal.Batch) { b.Expect = nil },
		"versions that hold": func(b *journal.Batch) { b.Expect[0].Version, b.Events[0].Version = 1, 2 },
	} {
		b := h.batch("one", subjectA, 0, 1)
		b.Blobs = []journal.Blob{NewBlob("blob")}
		change(&b)
		t.Log(name)
		h.refused(b, reason.OperationCollision)
	}
	if n := len(h.page(0, 10)); n != 1 {
		t.Errorf("%d batches are stored, want 1", n)
	}
}

func testConflict(t *testing.T, h *harness) {
	h.must(h.batch("one", subjectA, 0, 2))
	for _, from := range []uint64{0, 1, 3, canonical.MaxInteger - 1} {
		h.refused(h.batch("late", subjectA, from, 1), reason.JournalConflict)
		// An event's own version is as good as an expectation.
		b := h.batch("late", subjectA, from, 1)
		b.Expect = nil
		h.refused(b, reason.JournalConflict)
	}
	// What was refused left nothing behind, its identity neither.
	h.must(h.batch("late", subjectA, 2, 1))
}

func testConflictLeavesNeighbours(t *testing.T, h *harness) {
	h.must(h.batch("one", subjectA, 0, 1))
	bad := h.batch("bad", subjectA, 0, 1)
	bad.Events = append(bad.Events, h.batch("bad", subjectB, 0, 1).Events...)
	results := h.append(h.batch("two", subjectA, 1, 1), bad, h.batch("one", subjectB, 0, 1), h.batch("three", subjectB, 0, 1))
	if results[0].Err != nil || results[3].Err != nil {
		t.Errorf("neighbours were refused: %+v", results)
	}
	if !reason.Is(results[1].Err, reason.JournalConflict) || !reason.Is(results[2].Err, reason.OperationCollision) {
		t.Errorf("refusals: %v and %v", results[1].Err, results[2].Err)
	}
	if results[0].Sequence != 2 || results[3].Sequence != 3 {
		t.Errorf("sequences %d and %d, want 2 and 3", results[0].Sequence, results[3].Sequence)
	}
	if v := h.version(subjectB); v != 1 {
		t.Errorf("version %d, want 1", v)
	}
}

// testConflictAfterReopening meets a store that has not seen the subject in this life.
func testConflictAfterReopening(t *testing.T, h *harness) {
	old := h.must(h.batch("one", subjectA, 0, 2))
	h.restart()
	mixed := h.batch("mixed", subjectB, 0, 1)
	mixed.Events = append(mixed.Events, h.batch("mixed", subjectA, 0, 1).Events...)
	results := h.append(h.batch("first", "machine/c", 0, 1), h.batch("late", subjectA, 0, 1), mixed,
		h.batch("one", subjectA, 0, 2), h.batch("last", "machine/d", 0, 1))
	if results[0].Err != nil || results[0].Sequence != 2 || results[4].Err != nil || results[4].Sequence != 3 {
		t.Errorf("neighbours: %+v", results)
	}
	for _, r := range results[1:3] {
		if !reason.Is(r.Err, reason.JournalConflict) {
			t.Errorf("conflict: %+v", r)
		}
	}
	if r := results[3]; r.Err != nil || !r.Replayed || r.Chain != old.Chain {
		t.Errorf("repeat: %+v", r)
	}
	if a, b := h.version(subjectA), h.version(subjectB); a != 2 || b != 0 {
		t.Errorf("versions %d and %d, want 2 and 0", a, b)
	}
}

func testExpectationWithoutEvent(t *testing.T, h *harness) {
	h.must(h.batch("one", subjectA, 0, 1))
	b := h.batch("two", subjectB, 0, 1)
	b.Expect = append(b.Expect, journal.Expectation{Subject: subjectA, Version: 0})
	h.refused(b, reason.JournalConflict)
	b.Expect[1].Version = 1
	h.must(b)
	if v := h.version(subjectA); v != 1 {
		t.Errorf("expecting moved the subject to %d", v)
	}
}

func testBadBatch(t *testing.T, h *harness) {
	for name, change := range map[string]func(*journal.Batch){
		"no event":              func(b *journal.Batch) { b.Events = nil },
		"identity is no key":    func(b *journal.Batch) { b.Identity = "x" },
		"empty subject":         func(b *journal.Batch) { b.Events[0].Subject, b.Expect = "machine/", nil },
		"subject with newline":  func(b *journal.Batch) { b.Events[0].Subject, b.Expect = "machine/a\n", nil },
		"foreign family":        func(b *journal.Batch) { b.Events[0].Family = "other.happened" },
		"version zero":          func(b *journal.Batch) { b.Events[0].Version, b.Expect = 0, nil },
		"version skips":         func(b *journal.Batch) { b.Events[0].Version = 7 },
		"expected twice":        func(b *journal.Batch) { b.Expect = append(b.Expect, b.Expect[0]) },
		"body is no JSON":       func(b *journal.Batch) { b.Events[0].Body = canonical.Raw(`{"a"`) },
		"body is no object":     func(b *journal.Batch) { b.Events[0].Body = canonical.Raw(`1`) },
		"body is empty":         func(b *journal.Batch) { b.Events[0].Body = nil },
		"body breaks out":       func(b *journal.Batch) { b.Events[0].Body = canonical.Raw(`{},"extra":{}`) },
		"body is not canonical": func(b *journal.Batch) { b.Events[0].Body = canonical.Raw(`{"b":1,"a":1}`) },
		"body is too deep": func(b *journal.Batch) {
			b.Events[0].Body = canonical.Raw(`{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`)
		},
		"guard without digest": func(b *journal.Batch) { b.Events[0].Guards[0].Digest = "" },
		"blob's other digest": func(b *journal.Batch) {
			b.Blobs = []journal.Blob{{Digest: canonical.Sum([]byte("x")), Bytes: []byte("y")}}
		},
		"blob too large":    func(b *journal.Batch) { b.Blobs = []journal.Blob{NewBlob(strings.Repeat("x", journal.MaxBlob+1))} },
		"actor is no UTF-8": func(b *journal.Batch) { b.Actor = "\xff" },
		"batch too large": func(b *journal.Batch) {
			b.Events[0].Body = canonical.Raw(`{"a":"` + strings.Repeat("x", journal.MaxBody) + `"}`)
		},
	} {
		b := h.batch("bad", subjectA, 0, 1)
		change(&b)
		t.Log(name)
		r := h.append(b, h.batch("good-"+strings.Map(keyRune, name), lifecycle.Of("machine", strings.Map(keyRune, name)), 0, 1))
		if !reason.Is(r[0].Err, reason.JournalBadBatch) || r[1].Err != nil {
			t.Errorf("%s: results %+v", name, r)
		}
	}
	h.must(h.batch("bad", subjectA, 0, 1))
}

func keyRune(r rune) rune {
	if (r < 'a' || r > 'z') && r != '-' {
		return '_'
	}
	return r
}

func testStaleEpoch(t *testing.T, h *harness) {
	before := h.store.Epoch()
	h.must(h.batch("one", subjectA, 0, 1))
	h.restart()
	if h.store.Epoch() <= before {
		t.Fatalf("epoch %d after %d", h.store.Epoch(), before)
	}
	for _, epoch := range []uint64{0, before, h.store.Epoch() + 1} {
		h.refused(NewBatch("two", epoch, subjectA, 1, 1), reason.JournalStaleEpoch)
	}
	h.must(h.batch("two", subjectA, 1, 1))
}

func testCancelledContext(t *testing.T, h *harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 100 {
		// Whichever way the race goes, error means nothing stored and result means stored.
		results, err := h.store.Append(ctx, h.batch("one", subjectA, uint64(i), 1))
		switch {
		case err != nil && !errors.Is(err, context.Canceled):
			t.Fatalf("Append: %v", err)
		case err == nil:
			t.Fatalf("an ended context was not noticed: %+v", results)
		case h.version(subjectA) != 0:
			t.Fatal("an ended context left events")
		}
	}
	h.must(h.batch("one", subjectA, 0, 1))
}

func testClosed(t *testing.T, h *harness) {
	b := h.batch("one", subjectA, 0, 1)
	h.stop()
	if _, err := h.store.Append(t.Context(), b); err == nil {
		t.Error("a closed store appends")
	}
	if _, err := h.store.Page(t.Context(), 0, 1); err == nil {
		t.Error("a closed store reads")
	}
	if err := h.store.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	h.start()
}
