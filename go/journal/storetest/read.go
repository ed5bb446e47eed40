package storetest

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
)

func testEmpty(t *testing.T, h *harness) {
	if entries := h.page(0, 10); len(entries) != 0 {
		t.Errorf("entries of an empty journal: %+v", entries)
	}
	if v := h.version(subjectA); v != 0 {
		t.Errorf("version %d of an unknown subject", v)
	}
	if events, err := h.store.Events(t.Context(), subjectA); err != nil || len(events) != 0 {
		t.Errorf("events %v, %v of an unknown subject", events, err)
	}
	if extent := h.verify(); extent.Head != canonical.DigestFromBytes(journal.Genesis()) {
		t.Errorf("head %s of an empty journal", extent.Head)
	}
}

func testPage(t *testing.T, h *harness) {
	var want []canonical.Digest
	for i := range 25 {
		want = append(want, h.must(h.batch(fmt.Sprint(i), subjectA, uint64(i), 1)).Chain)
	}
	for _, limit := range []int{1, 7, 25, 100} {
		var got []canonical.Digest
		after := uint64(0)
		for {
			entries := h.page(after, limit)
			if len(entries) == 0 {
				break
			}
			if len(entries) > limit {
				t.Fatalf("a page of %d entries, limit %d", len(entries), limit)
			}
			for _, e := range entries {
				if e.Sequence != after+1 {
					t.Fatalf("entry %d follows %d", e.Sequence, after)
				}
				after = e.Sequence
				got = append(got, e.Chain)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("pages of %d differ from what was appended", limit)
		}
	}
	if len(h.page(0, 0)) != 0 || len(h.page(0, -1)) != 0 || len(h.page(1<<63, 10)) != 0 {
		t.Error("a page without room, or behind the end, holds entries")
	}
}

func testEvents(t *testing.T, h *harness) {
	first := h.batch("one", subjectA, 0, 2)
	first.Events = append(first.Events, h.batch("one", subjectB, 0, 1).Events...)
	second := h.batch("two", subjectA, 2, 1)
	second.Actor, second.Cause, second.At.UnixMilli = "person:second", "second cause", 42
	h.must(first)
	h.must(second)
	events, err := h.store.Events(t.Context(), subjectA)
	if err != nil {
		t.Fatal(err)
	}
	want := []journal.Recorded{
		{Event: first.Events[0], Sequence: 1, At: first.At, Actor: first.Actor, Cause: first.Cause},
		{Event: first.Events[1], Sequence: 1, Ordinal: 1, At: first.At, Actor: first.Actor, Cause: first.Cause},
		{Event: second.Events[0], Sequence: 2, At: second.At, Actor: second.Actor, Cause: second.Cause},
	}
	if !reflect.DeepEqual(events, want) {
		t.Errorf("events\n%+v\nwant\n%+v", events, want)
	}
}

func testSubjects(t *testing.T, h *harness) {
	for i, s := range []lifecycle.Subject{"m/b", "m/a", "m2/a", "m/a/x", "m/ä", "m/\U0001F600", "n/a"} {
		h.must(h.batch(fmt.Sprint(i), s, 0, 1))
	}
	for prefix, want := range map[string]string{
		"":      "m/a m/a/x m/b m/ä m/\U0001F600 m2/a n/a",
		"m/":    "m/a m/a/x m/b m/ä m/\U0001F600",
		"m":     "m/a m/a/x m/b m/ä m/\U0001F600 m2/a",
		"m/a/":  "m/a/x",
		"none/": "",
		"m/%":   "",
	} {
		got, err := h.store.Subjects(t.Context(), prefix, 100)
		if err != nil {
			t.Fatal(err)
		}
		if join(got) != want {
			t.Errorf("subjects of %q: %q, want %q", prefix, join(got), want)
		}
	}
	if got, err := h.store.Subjects(t.Context(), "m", 2); err != nil || join(got) != "m/a m/a/x" {
		t.Errorf("two subjects: %q, %v", join(got), err)
	}
}

func join(subjects []lifecycle.Subject) string {
	var names []string
	for _, s := range subjects {
		names = append(names, string(s))
	}
	return strings.Join(names, " ")
}

func testLookup(t *testing.T, h *harness) {
	b := h.batch("one", subjectA, 0, 1)
	b.Blobs = []journal.Blob{NewBlob("bytes")}
	r := h.must(b)
	e, err := h.store.Lookup(t.Context(), b.Identity)
	if err != nil || e == nil {
		t.Fatalf("Lookup: %v, %v", e, err)
	}
	b.Blobs[0].Bytes = nil // a batch records a blob by digest
	if !reflect.DeepEqual(e.Batch, b) || e.Sequence != r.Sequence || e.Chain != r.Chain {
		t.Errorf("entry\n%+v\nwant\n%+v", e, b)
	}
	if e, err := h.store.Lookup(t.Context(), "writ/storetest/store/append/none"); e != nil || err != nil {
		t.Errorf("unknown identity: %v, %v", e, err)
	}
}

func testBlobs(t *testing.T, h *harness) {
	b := h.batch("one", subjectA, 0, 1)
	b.Blobs = []journal.Blob{NewBlob("first"), NewBlob(""), NewBlob(strings.Repeat("x", journal.MaxBlob)), NewBlob("first")}
	h.must(b)
	again := h.batch("two", subjectA, 1, 1)
	again.Blobs = []journal.Blob{NewBlob("first")}
	again.Blobs[0].MediaType = "application/other"
	h.must(again)
	for _, want := range b.Blobs {
		got, err := h.store.Blob(t.Context(), want.Digest)
		if err != nil || string(got) != string(want.Bytes) {
			t.Errorf("blob %s: %d bytes, %v", want.Digest, len(got), err)
		}
	}
	if _, err := h.store.Blob(t.Context(), canonical.Sum([]byte("none"))); !reason.Is(err, reason.ArtifactMissing) {
		t.Errorf("unknown blob: %v", err)
	}
	if _, err := h.store.Blob(t.Context(), "none"); !reason.Is(err, reason.CanonicalMalformedDigest) {
		t.Errorf("malformed digest: %v", err)
	}
	refused := h.batch("late", subjectA, 0, 1)
	refused.Blobs = []journal.Blob{NewBlob("refused")}
	h.refused(refused, reason.JournalConflict)
	if _, err := h.store.Blob(t.Context(), refused.Blobs[0].Digest); !reason.Is(err, reason.ArtifactMissing) {
		t.Errorf("blob of a refused batch: %v", err)
	}
	if extent := h.verify(); extent.Blobs != 3 || extent.Collected != 0 {
		t.Errorf("extent %+v, want 3 blobs", extent)
	}
}

func testChain(t *testing.T, h *harness) {
	for i := range 5 {
		h.must(h.batch(fmt.Sprint(i), subjectA, uint64(i), 1))
	}
	head := journal.Genesis()
	for _, e := range h.page(0, 10) {
		if e.Previous != canonical.DigestFromBytes(head) {
			t.Errorf("entry %d does not follow", e.Sequence)
		}
		head = journal.Link(head, e.Sequence, sha256.Sum256(e.Body))
		if e.Chain != canonical.DigestFromBytes(head) {
			t.Errorf("entry %d has another chain", e.Sequence)
		}
		decoded, err := journal.Decode(e.Body)
		if err != nil || !reflect.DeepEqual(decoded.Batch, e.Batch) {
			t.Errorf("entry %d: the body says something else, %v", e.Sequence, err)
		}
	}
	if extent := h.verify(); extent.Head != canonical.DigestFromBytes(head) || extent.Batches != 5 || extent.Events != 5 || extent.Subjects != 1 {
		t.Errorf("extent %+v", extent)
	}
}

func testReopen(t *testing.T, h *harness) {
	var last journal.Result
	for i := range 5 {
		last = h.must(h.batch(fmt.Sprint(i), subjectA, uint64(i), 1))
		h.restart()
	}
	entries := h.page(4, 1)
	if len(entries) != 1 || entries[0].Chain != last.Chain {
		t.Errorf("after reopening: %+v", entries)
	}
	if r := h.must(h.batch("next", subjectA, 5, 1)); r.Sequence != 6 {
		t.Errorf("sequence %d, want 6", r.Sequence)
	}
}

func testReadBesideWriter(t *testing.T, h *harness) {
	h.must(h.batch("one", subjectA, 0, 1))
	reader := h.open(t, h.dir, false)
	for i := range 5 {
		if v, err := reader.Version(t.Context(), subjectA); err != nil || v != uint64(i)+1 {
			t.Fatalf("the reader sees version %d, %v, want %d", v, err, i+1)
		}
		h.must(h.batch(fmt.Sprint(i), subjectA, uint64(i)+1, 1))
	}
	if _, err := reader.Append(t.Context(), h.batch("more", subjectA, 6, 1)); !reason.Is(err, reason.JournalReadOnly) {
		t.Errorf("a reader appends: %v", err)
	}
	if _, err := reader.Verify(t.Context(), func(d journal.Damage) { t.Errorf("damage: %+v", d) }); err != nil {
		t.Errorf("Verify: %v", err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}
