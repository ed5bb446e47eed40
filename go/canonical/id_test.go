package canonical_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	"pgregory.net/rapid"
)

// The example of RFC 9562, A.6: 2022-02-22 19:22:22 UTC.
func TestMintIDLaysOutUUIDv7(t *testing.T) {
	id, err := canonical.MintID(canonical.PrefixWorkOrder, 0x017f22e279b0, bytes.NewReader([]byte{0x0c, 0xc3, 0x98, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f}))
	if err != nil {
		t.Fatal(err)
	}
	if want := canonical.ID("wo_017f22e2-79b0-7cc3-98c4-dc0c0c07398f"); id != want {
		t.Errorf("got %s, want %s", id, want)
	}
	if !id.Valid() || id.Prefix() != "wo_" || id.UnixMilli() != 0x017f22e279b0 {
		t.Errorf("%v %q %d", id.Valid(), id.Prefix(), id.UnixMilli())
	}
}

func TestMintIDRefuses(t *testing.T) {
	for _, c := range []struct {
		name, prefix string
		milli        int64
		random       io.Reader
	}{
		{"no prefix", "", 1, rand.Reader},
		{"no underscore", "wo", 1, rand.Reader},
		{"capital", "Wo_", 1, rand.Reader},
		{"long", "abcdefgh_", 1, rand.Reader},
		{"negative time", "wo_", -1, rand.Reader},
		{"far future", "wo_", 1 << 48, rand.Reader},
		{"no randomness", "wo_", 1, strings.NewReader("short")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if id, err := canonical.MintID(c.prefix, c.milli, c.random); err == nil {
				t.Errorf("minted %s", id)
			}
		})
	}
}

func TestParseID(t *testing.T) {
	const good = "wo_017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
	if id, err := canonical.ParseID("wo_", good); err != nil || id != good {
		t.Fatalf("%s, %v", id, err)
	}
	for name, bad := range map[string]string{
		"empty": "", "other type": "att_017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "no prefix": good[3:], "short": good[:20], "long": good + "0",
		"capital": strings.ToUpper(good), "capital digit": strings.Replace(good, "f", "F", 1), "version 4": strings.Replace(good, "-7c", "-4c", 1),
		"variant": strings.Replace(good, "-98", "-c8", 1), "no hyphens": strings.ReplaceAll(good, "-", ""), "line break": good + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := canonical.ParseID("wo_", bad); reason.CodeOf(err) != reason.IDMalformed {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestMatchPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SampledFrom([]string{"wo_", "att_", "res_", "dec_", "dlv_"}).Draw(t, "prefix")
		random := rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "random")
		id, err := canonical.MintID(prefix, rapid.Int64Range(0, 1<<48-1).Draw(t, "milli"), bytes.NewReader(random))
		if err != nil {
			t.Fatal(err)
		}
		cut := rapid.IntRange(len(prefix)+1, len(id)).Draw(t, "cut")
		if got, ok := canonical.MatchPrefix(string(id[:cut])); !ok || got != prefix {
			t.Fatalf("%s: %q, %v", id[:cut], got, ok)
		}
		if _, err := canonical.ParseID(prefix, string(id)); err != nil {
			t.Fatal(err)
		}
	})
	for _, bad := range []string{"", "wo", "wo_", "_0", "wo_x", "wo_017f22e2x", "wo_017f22e27", "wo_017f22e2-79b0-8", "%_0", "wo__0"} {
		if _, ok := canonical.MatchPrefix(bad); ok {
			t.Errorf("%q passes", bad)
		}
	}
}

// Whatever the clock does, ids rise strictly.
func TestIDSourceIsMonotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := int64(1_000_000)
		source := canonical.NewIDSource(func() int64 { return clock }, rand.Reader)
		last := canonical.ID("")
		for range rapid.IntRange(1, 20).Draw(t, "bursts") {
			clock += rapid.Int64Range(-3, 3).Draw(t, "step")
			for range rapid.IntRange(1, 1500).Draw(t, "burst") {
				id, err := source.Mint("att_")
				if err != nil {
					t.Fatal(err)
				}
				if id <= last || !id.Valid() {
					t.Fatalf("%s does not follow %s", id, last)
				}
				last = id
			}
		}
	})
}

func TestIDSourceNeedsRandomness(t *testing.T) {
	broken := errors.New("no entropy")
	source := canonical.NewIDSource(func() int64 { return 1 }, iotest.ErrReader(broken))
	if _, err := source.Mint("wo_"); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestIDSourceIsSafeForConcurrentUse(t *testing.T) {
	source := canonical.NewIDSource(func() int64 { return 1 }, rand.Reader)
	var mu sync.Mutex
	seen := map[canonical.ID]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				id, err := source.Mint("wo_")
				mu.Lock()
				if err != nil || seen[id] {
					t.Errorf("%s twice, or %v", id, err)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
