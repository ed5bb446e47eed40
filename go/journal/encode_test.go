package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/storetest"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
)

// TestBody holds the stored form of a batch, and with it every chain ever written.
func TestBody(t *testing.T) {
	b := storetest.NewBatch("golden", 7, "machine/a", 4, 1)
	b.Blobs = []journal.Blob{storetest.NewBlob("blob")}
	e, err := journal.Encode(b)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"actor":"person:tester","at":{"domain":"test","unix_ms":1700000000000},"cause":"storetest","content":{` +
		`"blobs":[{"digest":"sha256:fa2c8cc4f28176bbeed4b736df569a34c79cd3723e9ec42f9674b4d46ac6b8b8","media_type":"text/plain","size":4}],` +
		`"events":[{"body":{"index":0,"name":"golden"},"family":"machine.happened","guards":[{"digest":"` + string(canonical.Sum([]byte("golden"))) +
		`","name":"Receipt"}],"machine_version":1,"subject":"machine/a","version":5}],"expect":[{"subject":"machine/a","version":4}],` +
		`"identity":"writ/storetest/store/append/golden"},"epoch":7,"kind":"writ.journal_batch.v1"}`
	if string(e.Body) != want {
		t.Errorf("body\n%s\nwant\n%s", e.Body, want)
	}
	_, content, _ := strings.Cut(want, `"content":`)
	content, _, _ = strings.Cut(content, `,"epoch"`)
	if e.ContentSum() != sha256.Sum256([]byte(content)) || e.BodySum != sha256.Sum256(e.Body) {
		t.Error("the digests are not those of the content and the body")
	}
	chain := journal.Link(journal.Genesis(), 1, e.BodySum)
	if got := hex.EncodeToString(chain[:]); got != goldenChain {
		t.Errorf("chain %s, want %s", got, goldenChain)
	}
}

const goldenChain = "cdca1caf0251058efb302f6a62c0855ccb1b496fea760be00f6f551f5de43e1c"

func TestDecodeReadsWhatEncodeWrote(t *testing.T) {
	for _, events := range []int{1, 2, 40} {
		b := storetest.NewBatch("name", 1, "machine/a", 3, events)
		for i := range events {
			b.Events = append(b.Events, storetest.NewBatch("x", 1, lifecycle.Of("other", fmt.Sprint(i)), 0, 1).Events...)
		}
		b.Events[0].Guards = nil
		b.Blobs = []journal.Blob{storetest.NewBlob("a"), storetest.NewBlob("")}
		e, err := journal.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		if canon, err := canonical.Canonicalize(e.Body); err != nil || !bytes.Equal(canon, e.Body) {
			t.Errorf("the body is not canonical: %v", err)
		}
		d, err := journal.Decode(e.Body)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Blobs {
			b.Blobs[i].Bytes = nil
		}
		if !reflect.DeepEqual(d.Batch, b) || d.ContentSum() != e.ContentSum() || d.BodySum != e.BodySum || !reflect.DeepEqual(d.Moves, e.Moves) {
			t.Errorf("decoded\n%+v\nwant\n%+v", d, e)
		}
		if len(d.Moves) != 1+events || d.Moves[0] != (journal.Move{Subject: "machine/a", From: 3, To: 3 + uint64(events)}) {
			t.Errorf("moves %+v", d.Moves)
		}
	}
}

func TestEncodeBounds(t *testing.T) {
	// Each body could be read back; the batch could not.
	many := storetest.NewBatch("many", 1, "machine/a", 0, 2)
	for i := range many.Events {
		many.Events[i].Body = canonical.Raw(`{"a":[` + strings.Repeat("1,", 600_000) + `1]}`)
	}
	if _, err := journal.Encode(many); !reason.Is(err, reason.JournalBadBatch) {
		t.Errorf("more values than can be read back: %v", err)
	}
	deep := storetest.NewBatch("deep", 1, "machine/a", 0, 1)
	for depth := 1; depth < 70; depth++ {
		deep.Events[0].Body = canonical.Raw(`{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`)
		e, err := journal.Encode(deep)
		if err != nil {
			if depth < 40 {
				t.Errorf("depth %d is refused: %v", depth, err)
			}
			continue
		}
		if _, err := journal.Decode(e.Body); err != nil {
			t.Errorf("depth %d was taken and cannot be read back: %v", depth, err)
		}
	}
}

// FuzzDecode holds that a body which can be read says the same when written again.
func FuzzDecode(f *testing.F) {
	for i := range 3 {
		e, err := journal.Encode(storetest.NewBatch("seed", 1, "machine/a", 0, 1+i))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(e.Body)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := journal.Decode(b)
		if err != nil || len(d.Blobs) > 0 {
			return
		}
		e, err := journal.Encode(d.Batch)
		if err != nil {
			return // readable, but nothing this release would have stored
		}
		if !bytes.Equal(e.Body, b) || e.ContentSum() != d.ContentSum() || !reflect.DeepEqual(e.Moves, d.Moves) {
			t.Fatalf("read\n%s\nwritten\n%s", b, e.Body)
		}
	})
}
