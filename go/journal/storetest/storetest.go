// Package storetest is the conformance suite of journal stores. A store is one when
// Run passes; the suite knows nothing of how it keeps its bytes.
package storetest

import (
	"fmt"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// Opener opens the store whose state is in dir: for writing, making it where there is
// none, or for reading beside a writer.
type Opener func(t testing.TB, dir string, write bool) journal.Store

// Run runs the whole suite. After each test the store is closed, opened again and
// verified from end to end.
func Run(t *testing.T, open Opener) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *harness)
	}{
		{"Append", testAppend},
		{"AppendSeveral", testAppendSeveral},
		{"Replay", testReplay},
		{"ReplayInOneCall", testReplayInOneCall},
		{"Collision", testCollision},
		{"Conflict", testConflict},
		{"ConflictLeavesNeighbours", testConflictLeavesNeighbours},
		{"ConflictAfterReopening", testConflictAfterReopening},
		{"ExpectationWithoutEvent", testExpectationWithoutEvent},
		{"BadBatch", testBadBatch},
		{"StaleEpoch", testStaleEpoch},
		{"CancelledContext", testCancelledContext},
		{"Page", testPage},
		{"Events", testEvents},
		{"Subjects", testSubjects},
		{"Lookup", testLookup},
		{"Blobs", testBlobs},
		{"Chain", testChain},
		{"Empty", testEmpty},
		{"Reopen", testReopen},
		{"ReadBesideWriter", testReadBesideWriter},
		{"Race", testRace},
		{"Concurrent", testConcurrent},
		{"Model", testModel},
		{"Closed", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &harness{TB: t, dir: t.TempDir(), open: open}
			h.start()
			test.run(t, h)
			h.restart()
			h.verify()
			h.stop()
		})
	}
}

// harness holds one store and the shortest way to say what a test wants of it.
type harness struct {
	testing.TB
	dir   string
	open  Opener
	store journal.Store
}

func (h *harness) start() { h.Helper(); h.store = h.open(h, h.dir, true) }

func (h *harness) stop() {
	h.Helper()
	if err := h.store.Close(); err != nil {
		h.Fatalf("Close: %v", err)
	}
}

func (h *harness) restart() { h.Helper(); h.stop(); h.start() }

// verify fails the test for any damage, and returns the extent.
func (h *harness) verify() journal.Extent {
	h.Helper()
	extent, err := h.store.Verify(h.Context(), func(d journal.Damage) { h.Errorf("damage: %+v", d) })
	if err != nil {
		h.Fatalf("Verify: %v", err)
	}
	if err := h.store.Health(); err != nil {
		h.Fatalf("Health: %v", err)
	}
	return extent
}

// append appends and fails the test when the store does.
func (h *harness) append(batches ...journal.Batch) []journal.Result {
	h.Helper()
	results, err := h.store.Append(h.Context(), batches...)
	if err != nil {
		h.Fatalf("Append: %v", err)
	}
	if len(results) != len(batches) {
		h.Fatalf("Append answered %d results for %d batches", len(results), len(batches))
	}
	return results
}

// must appends one batch that has to be stored.
func (h *harness) must(b journal.Batch) journal.Result {
	h.Helper()
	r := h.append(b)[0]
	if r.Err != nil {
		h.Fatalf("%s: %v", b.Identity, r.Err)
	}
	return r
}

// refused appends one batch that has to be refused with a code.
func (h *harness) refused(b journal.Batch, code reason.Code) {
	h.Helper()
	r := h.append(b)[0]
	if !reason.Is(r.Err, code) {
		h.Fatalf("%s: %v, want %s", b.Identity, r.Err, code)
	}
	if r.Sequence != 0 || r.Chain != "" || r.Replayed {
		h.Errorf("a refused batch has the result %+v", r)
	}
}

func (h *harness) version(s lifecycle.Subject) uint64 {
	h.Helper()
	v, err := h.store.Version(h.Context(), s)
	if err != nil {
		h.Fatalf("Version: %v", err)
	}
	return v
}

func (h *harness) page(after uint64, limit int) []journal.Entry {
	h.Helper()
	entries, err := h.store.Page(h.Context(), after, limit)
	if err != nil {
		h.Fatalf("Page: %v", err)
	}
	return entries
}

// batch makes a batch that moves one subject by the given number of events.
func (h *harness) batch(name string, subject lifecycle.Subject, from uint64, events int) journal.Batch {
	return NewBatch(name, h.store.Epoch(), subject, from, events)
}

// NewBatch makes a batch of the given number of events for one subject, which must be
// at version from. The name makes its identity.
func NewBatch(name string, epoch uint64, subject lifecycle.Subject, from uint64, events int) journal.Batch {
	b := journal.Batch{
		Identity: operation.Key("writ/storetest/store/append/" + name), Epoch: epoch, Actor: "person:tester", Cause: "storetest",
		At:     journal.Observation{Domain: "test", UnixMilli: 1_700_000_000_000},
		Expect: []journal.Expectation{{Subject: subject, Version: from}},
	}
	for i := range events {
		b.Events = append(b.Events, lifecycle.Event{
			Subject: subject, Version: from + uint64(i) + 1, Family: lifecycle.Family(subject.Machine() + ".happened"), Machine: 1,
			Guards: []lifecycle.Guard{{Name: "Receipt", Digest: canonical.Sum([]byte(name))}},
			Body:   canonical.Raw(fmt.Sprintf(`{"index":%d,"name":%q}`, i, name)),
		})
	}
	return b
}

// NewBlob makes a blob.
func NewBlob(bytes string) journal.Blob {
	return journal.Blob{Digest: canonical.Sum([]byte(bytes)), MediaType: "text/plain", Bytes: []byte(bytes)}
}
