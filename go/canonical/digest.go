package canonical

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/writ-runtime/writ/go/reason"
)

// digestPrefix names the one algorithm that carries trust here.
const digestPrefix = "sha256:"

// digestLen is the length of a digest's text: the prefix and 64 hexadecimal digits.
const digestLen = len(digestPrefix) + 2*sha256.Size

// Digest is the SHA-256 of a byte string as text, "sha256:" followed by 64 lower-case hexadecimal digits. The
// zero value "" means no digest and is not Valid.
type Digest string

// Sum returns the digest of exactly these bytes.
func Sum(b []byte) Digest { return digestOf(sha256.Sum256(b)) }

func digestOf(sum [sha256.Size]byte) Digest {
	var text [digestLen]byte
	copy(text[:], digestPrefix)
	hex.Encode(text[len(digestPrefix):], sum[:])
	return Digest(text[:])
}

// ParseDigest returns s as a Digest, or a Refusal with code canonical.malformed_digest.
func ParseDigest(s string) (Digest, error) {
	if d := Digest(s); d.Valid() {
		return d, nil
	}
	return "", reason.New(reason.CanonicalMalformedDigest, fmt.Sprintf("%s is not a digest", QuoteShort(s)), "",
		"write sha256: and 64 lower-case hexadecimal digits")
}

// Valid reports whether d is "sha256:" and 64 lower-case hexadecimal digits.
func (d Digest) Valid() bool {
	if len(d) != digestLen || d[:len(digestPrefix)] != digestPrefix {
		return false
	}
	for i := len(digestPrefix); i < len(d); i++ {
		if c := d[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Hex returns the 64 hexadecimal digits, or "" when d is not Valid.
func (d Digest) Hex() string {
	if !d.Valid() {
		return ""
	}
	return string(d[len(digestPrefix):])
}

// Bytes returns the 32 raw bytes; ok is false when d is not Valid.
func (d Digest) Bytes() (sum [sha256.Size]byte, ok bool) {
	if !d.Valid() {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(d[len(digestPrefix):]))
	return sum, err == nil
}

// DigestFromBytes returns the text form of a raw SHA-256 sum.
func DigestFromBytes(sum [sha256.Size]byte) Digest { return digestOf(sum) }

// Hasher takes a digest over bytes that arrive in pieces. It is an io.Writer that never fails.
type Hasher struct {
	h hash.Hash
	n int64
}

// NewHasher returns a Hasher over nothing yet.
func NewHasher() *Hasher { return &Hasher{h: sha256.New()} }

// Write adds b.
func (h *Hasher) Write(b []byte) (int, error) {
	n, err := h.h.Write(b)
	h.n += int64(n)
	return n, err
}

// Digest returns the digest of everything written so far; writing may go on afterwards.
func (h *Hasher) Digest() Digest {
	var sum [sha256.Size]byte
	h.h.Sum(sum[:0])
	return digestOf(sum)
}

// Size returns the number of bytes written so far.
func (h *Hasher) Size() int64 { return h.n }
