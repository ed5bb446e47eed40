package canonical_test

import (
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	"pgregory.net/rapid"
)

// FIPS 180-4's example message.
const abc = canonical.Digest("sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")

func TestSum(t *testing.T) {
	if got := canonical.Sum([]byte("abc")); got != abc {
		t.Errorf("got %s", got)
	}
	if abc.Hex() != string(abc[7:]) || !abc.Valid() || canonical.Digest("").Valid() {
		t.Error("Hex or Valid is wrong")
	}
	sum, ok := abc.Bytes()
	if !ok || canonical.DigestFromBytes(sum) != abc {
		t.Error("Bytes and DigestFromBytes disagree")
	}
}

func TestParseDigestRefuses(t *testing.T) {
	hex := abc.Hex()
	for name, bad := range map[string]string{
		"empty": "", "no prefix": hex, "other algorithm": "sha512:" + hex, "capital": "sha256:" + strings.ToUpper(hex), "short": string(abc[:70]),
		"long": string(abc) + "0", "not hexadecimal": "sha256:" + strings.Repeat("g", 64), "space": " " + string(abc[:70]),
	} {
		t.Run(name, func(t *testing.T) {
			if d, err := canonical.ParseDigest(bad); d != "" || reason.CodeOf(err) != reason.CanonicalMalformedDigest {
				t.Errorf("%q, %v", d, err)
			}
			if _, ok := canonical.Digest(bad).Bytes(); ok || canonical.Digest(bad).Hex() != "" {
				t.Error("Bytes or Hex accept it")
			}
		})
	}
}

func TestHasherEqualsSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "pieces")
		h := canonical.NewHasher()
		var all []byte
		for _, p := range pieces {
			if n, err := h.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
			all = append(all, p...)
			if h.Digest() != canonical.Sum(all) || h.Size() != int64(len(all)) {
				t.Fatal("the running digest differs")
			}
		}
		if d, err := canonical.ParseDigest(string(h.Digest())); err != nil || d != h.Digest() {
			t.Fatal(err)
		}
	})
}
