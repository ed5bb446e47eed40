package sqlite

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/writ-runtime/writ/go/journal"
)

// tally is what a set of index rows comes to, whatever their order: two that agree were
// taken over the same rows, but for a chance of one in 2^64. The seed is drawn for one
// verification, so that nobody can prepare rows that agree by design.
type tally struct {
	seed maphash.Seed
	rows uint64
	sum  uint64
}

func newTally() *tally { return &tally{seed: maphash.MakeSeed()} }

// like returns an empty tally that can be compared with t.
func (t *tally) like() *tally { return &tally{seed: t.seed} }

// add counts one row: its text, its numbers, and a digest where it has one.
func (t *tally) add(text string, a, b, c int64, digest []byte) {
	var h maphash.Hash
	h.SetSeed(t.seed)
	var n [32]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(text)))
	binary.LittleEndian.PutUint64(n[8:], uint64(a))
	binary.LittleEndian.PutUint64(n[16:], uint64(b))
	binary.LittleEndian.PutUint64(n[24:], uint64(c))
	_, _ = h.Write(n[:])
	_, _ = h.WriteString(text)
	_, _ = h.Write(digest)
	t.rows++
	t.sum += h.Sum64()
}

func (t *tally) equal(o *tally) bool { return t.rows == o.rows && t.sum == o.sum }

// prefix finds how far the bodies of a journal are proven. The chain that is computed from
// them needs no stored column but the last: where it meets the stored chain of a batch,
// every body up to that one is what was appended, whatever is wrong beside them.
type prefix struct {
	next   uint64      // the sequence that follows
	head   journal.Sum // the chain before it, as computed
	intact uint64
	proven journal.Sum // the chain after the last intact batch
	ended  bool
}

func newPrefix() prefix { return prefix{next: 1, head: journal.Genesis(), proven: journal.Genesis()} }

// add looks at the next row. Preconditions: it was decoded.
func (p *prefix) add(r *row) {
	if p.ended = p.ended || r.err != nil || r.seq < 1 || uint64(r.seq) != p.next; p.ended {
		return
	}
	p.head = journal.Link(p.head, p.next, r.sum)
	if string(r.chain) == string(p.head[:]) {
		p.intact, p.proven = p.next, p.head
	}
	p.next++
}
