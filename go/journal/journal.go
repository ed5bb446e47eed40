// Package journal is the event store: append-only, hash-chained, the only memory of
// the kernel. The interface is narrow on purpose: SQLite serves it now, PostgreSQL
// can later, and one conformance suite holds both.
package journal

import (
	"context"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
)

// Observation is a reading of one clock. Time enters the journal only so.
type Observation = lifecycle.Observation

// Expectation is the version that a subject must have for the batch to be appended:
// the number of events it has so far, 0 for a subject without any.
type Expectation struct {
	Subject lifecycle.Subject `json:"subject"`
	Version uint64            `json:"version"`
}

// Blob is a small artifact that shares the batch's commit. The batch records its
// digest, media type and size; the bytes live apart and can be collected when nothing
// needs them.
type Blob struct {
	Digest    canonical.Digest `json:"digest"`
	MediaType string           `json:"media_type"`
	Bytes     []byte           `json:"-"`
}

// MaxBlob is the largest blob in bytes; larger artifacts are files of the artifact
// store.
const MaxBlob = 64 << 10

// Batch is what one append makes durable, all or nothing.
type Batch struct {
	// Identity is the idempotency identity. The same identity with the same content
	// answers the first result, with other content it collides. Content is identity,
	// expectations, events and blobs; not epoch, time, actor and cause, which differ
	// when a later life repeats what an earlier one asked for.
	Identity operation.Key `json:"identity"`
	// Epoch is the writer epoch the caller works under; it rises each time the
	// writer lock is taken, so that a writer of an earlier life cannot append.
	Epoch uint64 `json:"epoch"`
	// Actor is the authenticated principal, set by the ledger and never read from an
	// event; Cause is the identity of the delivery or turn that led here.
	Actor  string            `json:"actor"`
	Cause  string            `json:"cause"`
	At     Observation       `json:"at"`
	Expect []Expectation     `json:"expect"`
	Events []lifecycle.Event `json:"events"`
	Blobs  []Blob            `json:"blobs"`
}

// Result is the answer to one batch.
type Result struct {
	// Sequence counts batches from 1, without gaps.
	Sequence uint64
	// Chain is the head of the hash chain after this batch.
	Chain canonical.Digest
	// Replayed says that the batch had been appended before, with the same content;
	// Sequence and Chain are those of the first time.
	Replayed bool
	// Err is this batch's own refusal: journal.conflict, operation.collision,
	// journal.stale_epoch or journal.bad_batch. Nothing of the batch was stored, and
	// the neighbours are not touched by it.
	Err error
}

// Entry is one stored batch as it is read back.
type Entry struct {
	Batch
	Sequence uint64
	Previous canonical.Digest // the chain before this batch
	Chain    canonical.Digest // the chain after it
	Body     []byte           // the canonical bytes that the chain covers
}

// Appender writes.
type Appender interface {
	// Append appends the batches in order, in one commit that others may share. When
	// it returns without an error, every batch whose Result has no Err is durable: it
	// survives SIGKILL and power loss. An error of a halted, closed or read-only
	// store, of one that another process took over, or of a context that ended before
	// the batches were queued, means that nothing was stored. Any other error means that nothing is known of the batches:
	// the store has stopped and must be reopened, where repeating them is safe.
	//
	// A context that ends later does not end the wait: the commit is under way, and
	// its outcome is a fact that the caller needs.
	//
	// The caller must not change a batch, or what it refers to, until Append returns.
	Append(ctx context.Context, batches ...Batch) ([]Result, error)
	// Epoch is the writer epoch of this opening; 0 of a store opened for reading.
	Epoch() uint64
	// Health returns nil, or the refusal that every Append gets: journal.halted after
	// damage or after a failed write, journal.taken_over after an Append that found
	// another writer at work, journal.read_only of a store opened for reading.
	Health() error
}

// Reader reads, from one snapshot a call.
type Reader interface {
	// Page returns up to limit entries after the given sequence, in order.
	Page(ctx context.Context, after uint64, limit int) ([]Entry, error)
	// Events returns every event of a subject in order, with the sequence of its batch.
	Events(ctx context.Context, subject lifecycle.Subject) ([]Recorded, error)
	// Version returns the number of events of a subject.
	Version(ctx context.Context, subject lifecycle.Subject) (uint64, error)
	// Subjects returns up to limit subjects that begin with prefix, sorted.
	Subjects(ctx context.Context, prefix string, limit int) ([]lifecycle.Subject, error)
	// Lookup returns the entry that was appended under an identity, or nil.
	Lookup(ctx context.Context, identity operation.Key) (*Entry, error)
	// Blob returns the bytes of a blob, checked against its digest, or a refusal
	// with reason.ArtifactMissing or reason.ArtifactCorrupt.
	Blob(ctx context.Context, digest canonical.Digest) ([]byte, error)
	// Verify walks the whole journal: chain, digests, sequences, subject versions,
	// every index against the bodies, every blob. It reports what it found damaged
	// and goes on, so that a person sees the extent; an error means that it could not
	// look. On a store opened for writing, damage halts appends for good: in this
	// opening and in every later one, until a recorded recovery. On one opened for
	// reading it can only be reported; see Halter.
	Verify(ctx context.Context, report func(Damage)) (Extent, error)
}

// Halter stops appends for good.
type Halter interface {
	// Halt records damage that was found by reading, so that nothing is appended until a
	// recorded recovery. When it returns nil, the halt is durable. It refuses with
	// journal.locked where another process may be appending, which has to be stopped
	// first; with journal.replaced where the journal is not the one that was read any
	// more; and where nothing can be written.
	Halt(ctx context.Context, d Damage) error
}

// Recorded is an event with where and when it was recorded.
type Recorded struct {
	lifecycle.Event
	Sequence uint64
	// Ordinal is the event's place in its batch, from 0. Stores must fill it.
	Ordinal int
	At      Observation
	Actor   string
	Cause   string
}

// Damage is one thing that Verify found wrong.
type Damage struct {
	Sequence uint64 // of the batch, or 0
	Where    string // table and key
	What     string // one sentence
	// Artifact is the digest whose bytes are gone, or are others; empty for another damage.
	Artifact canonical.Digest
	// Tolerable says that nothing that was recorded is known to have changed: a file stands
	// there that is none of ours, or could not be looked at, or this release does not take
	// what the recorded bytes say. A person has to look; appends need not stop.
	Tolerable bool
}

// Extent says how much Verify has read.
type Extent struct {
	Batches, Events, Subjects, Blobs uint64
	// Collected counts blobs that a batch records and whose bytes are not stored any
	// more. That is no damage: blobs may be collected.
	Collected uint64
	// Head is the chain after the last batch, as computed, not as stored.
	Head canonical.Digest
	// Intact counts the batches, from the first, whose bodies are proven: the chain that
	// follows from them is the one that is stored. IntactHead is the chain after them. In
	// a sound journal both are those of the last batch.
	Intact     uint64
	IntactHead canonical.Digest
}

// Store is an open journal.
type Store interface {
	Appender
	Reader
	Close() error
}
