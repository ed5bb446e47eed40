package sqlite_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/writ-runtime/writ/go/journal"
)

// What was read of a row stays what it was while later rows are read, and after other reads.
func TestRowsKeepTheirBytes(t *testing.T) {
	s := open(t, t.TempDir(), true)
	var batches []journal.Batch
	for i := range 200 {
		batches = append(batches, batchOf(s.Epoch(), fmt.Sprint(i)))
	}
	if _, err := s.Append(t.Context(), batches...); err != nil {
		t.Fatal(err)
	}
	page, err := s.Page(t.Context(), 0, len(batches))
	if err != nil || len(page) != len(batches) {
		t.Fatalf("%d entries, %v", len(page), err)
	}
	if _, err := s.Page(t.Context(), 50, len(batches)); err != nil {
		t.Fatal(err)
	}
	for i, b := range batches {
		want, err := journal.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(page[i].Body, want.Body) || i > 0 && page[i].Previous != page[i-1].Chain {
			t.Fatalf("batch %d was read as\n%s\nand is\n%s", i+1, page[i].Body, want.Body)
		}
		for n, ev := range page[i].Events {
			if !bytes.Equal(ev.Body, b.Events[n].Body) {
				t.Fatalf("event %d of batch %d was read as %s", n, i+1, ev.Body)
			}
		}
	}
}
