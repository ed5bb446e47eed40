package canonical_test

import (
	"encoding/json"
	"testing"

	"github.com/gowebpki/jcs"
	"github.com/writ-runtime/writ/go/canonical"
)

// receipt has the shape and size of what the ledger marshals most.
type receipt struct {
	Kind    string           `json:"kind"`
	Attempt canonical.ID     `json:"attempt"`
	Key     string           `json:"key"`
	Digest  canonical.Digest `json:"digest"`
	Bundle  canonical.Digest `json:"bundle"`
	Fence   struct {
		Generation uint64 `json:"generation"`
		Phase      string `json:"phase"`
	} `json:"fence"`
	Outputs []output `json:"outputs"`
	At      int64    `json:"at"`
	Reason  string   `json:"reason,omitempty"`
}

type output struct {
	Path   string           `json:"path"`
	Bytes  int64            `json:"bytes"`
	Digest canonical.Digest `json:"digest"`
}

func sample() *receipt {
	r := &receipt{Kind: "writ.receipt.v1", Attempt: "att_017f22e2-79b0-7cc3-98c4-dc0c0c07398f", Key: "att/collect/1", Digest: abc, Bundle: abc,
		Outputs: []output{{"report.json", 1234, abc}, {"log/run.txt", 99, abc}}, At: 1700000000000}
	r.Fence.Generation, r.Fence.Phase = 3, "closing"
	return r
}

func BenchmarkMarshal(b *testing.B) {
	r := sample()
	b.Run("canonical", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := canonical.Marshal(r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("canonical-append", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			var err error
			if buf, err = canonical.Append(buf[:0], r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json+jcs", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			j, err := json.Marshal(r)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := jcs.Transform(j); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	in, err := canonical.Marshal(sample())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("canonical", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(in)))
		for b.Loop() {
			var r receipt
			if err := canonical.Decode(in, &r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(in)))
		for b.Loop() {
			var r receipt
			if err := json.Unmarshal(in, &r); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDigestOf(b *testing.B) {
	r := sample()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := canonical.DigestOf(r); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMarshalAllocates keeps the promise that digests are cheap enough to take everywhere.
func TestMarshalAllocates(t *testing.T) {
	r := sample()
	if _, err := canonical.Marshal(r); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = canonical.Marshal(r) }); n > 1 {
		t.Errorf("Marshal allocates %v times, want at most once", n)
	}
}
