package sqlite

import (
	"crypto/sha256"
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/reason"
)

// row is one row of batches.
type row struct {
	seq               int64
	identity          string
	body, prev, chain []byte

	// What decode finds: the digest of the body, and what it says or why it cannot be read.
	sum     journal.Sum
	encoded *journal.Encoded
	err     error
}

// decode reads the body. Nothing else in a row is expensive to look at.
func (r *row) decode() {
	if r.encoded, r.err = journal.Decode(r.body); r.err == nil {
		r.sum = r.encoded.BodySum
	} else {
		r.sum = sha256.Sum256(r.body)
	}
}

// check holds a row against the chain before it and the sequence it must have. It
// returns the chain after it as computed. At most one damage is reported: the first in
// the order sequence, chain, body, identity. Preconditions: decode was called.
func (r *row) check(before journal.Sum, want uint64) (journal.Sum, *journal.Damage) {
	bad := func(what string) *journal.Damage {
		return &journal.Damage{Sequence: uint64(r.seq), Where: "batches", What: what}
	}
	after := journal.Link(before, uint64(r.seq), r.sum)
	switch {
	case r.seq < 1 || uint64(r.seq) != want:
		return after, bad(fmt.Sprintf("the sequence is %d where %d follows", r.seq, want))
	case string(r.prev) != string(before[:]):
		return after, bad("the batch does not follow the one before it")
	case string(r.chain) != string(after[:]):
		return after, bad("the bytes of the batch do not have the digest that the chain holds")
	case r.err != nil:
		return after, bad("the body cannot be read: " + r.err.Error())
	case r.identity != string(r.encoded.Identity):
		return after, bad("the identity beside the body is not the one in it")
	}
	return after, nil
}

// entry turns a row into what readers get. It holds the row against its own digest,
// so that a reader never acts on a flipped bit; its place in the chain is for Verify.
func (r *row) entry() (journal.Entry, error) {
	if r.encoded == nil && r.err == nil {
		r.decode()
	}
	if r.err != nil {
		return journal.Entry{}, corruptRow(r.seq, r.err)
	}
	prev, okPrev := sumOf(r.prev)
	chain, okChain := sumOf(r.chain)
	if !okPrev || !okChain || journal.Link(prev, uint64(r.seq), r.sum) != chain {
		return journal.Entry{}, corruptRow(r.seq, nil)
	}
	return journal.Entry{
		Batch: r.encoded.Batch, Sequence: uint64(r.seq), Body: r.body,
		Previous: canonical.DigestFromBytes(prev), Chain: canonical.DigestFromBytes(chain),
	}, nil
}

// sumOf returns a stored digest; ok is false when it has another length.
func sumOf(b []byte) (sum journal.Sum, ok bool) {
	if len(b) != len(sum) {
		return sum, false
	}
	return journal.Sum(b), true
}

// isSum reports whether a stored digest is the given one.
func isSum(stored []byte, sum journal.Sum) bool { return string(stored) == string(sum[:]) }

func corruptRow(seq int64, cause error) error {
	return reason.New(reason.JournalCorrupt, "a stored batch does not have its digest", fmt.Sprintf("batch %d", seq),
		"run `writ verify` to see the extent").Because(cause)
}
