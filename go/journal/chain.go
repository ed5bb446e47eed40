package journal

import (
	"crypto/sha256"
	"encoding/binary"
)

// Sum is a raw SHA-256: what the chain is computed over and stores keep.
type Sum = [sha256.Size]byte

// Genesis is the chain before the first batch. It is not zero, so that a chain of
// this journal cannot be mistaken for one of another kind.
func Genesis() Sum { return sha256.Sum256([]byte("writ.journal.v1")) }

// Link returns the chain after a batch: SHA-256 over the chain before it, its
// sequence as eight bytes with the highest first, and the SHA-256 of its body.
func Link(previous Sum, sequence uint64, body Sum) Sum {
	var b [sha256.Size + 8 + sha256.Size]byte
	copy(b[:], previous[:])
	binary.BigEndian.PutUint64(b[sha256.Size:], sequence)
	copy(b[sha256.Size+8:], body[:])
	return sha256.Sum256(b[:])
}
