package journal

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// BodyKind is the registered kind of a batch's body.
const BodyKind = "writ.journal_batch.v1"

// Bounds of one batch. They keep a body readable by every default parser and one
// commit short.
const (
	MaxBody    = 4 << 20 // bytes of the canonical body
	MaxEvents  = 4096
	MaxBlobs   = 4096
	maxSubject = 1024
	// sureToParse is a size in bytes at which no body holds more values than every
	// default parser takes.
	sureToParse = 1 << 20
	// maxBodyDepth leaves room for the objects of the batch around an event's body.
	maxBodyDepth = 56
)

// Move is what a batch does to one subject: from the version it expects to the
// version it leaves, which are equal for a subject that it only expects.
type Move struct {
	Subject  lifecycle.Subject
	From, To uint64
}

// Encoded is a batch made ready to be stored. Callers encode in their own goroutine;
// the one writer only compares versions, chains digests and inserts.
type Encoded struct {
	Batch
	// Body is the canonical JSON that the chain covers; BodySum is its SHA-256.
	Body    []byte
	BodySum Sum
	// content is the part of the body that the identity stands for, contentSum its SHA-256
	// where that is known already.
	content    []byte
	contentSum *Sum
	// Moves holds each subject once, in the order of first mention.
	Moves []Move
}

// content is what an identity stands for.
type content struct {
	Blobs    []blobRecord      `json:"blobs"`
	Events   []lifecycle.Event `json:"events"`
	Expect   []Expectation     `json:"expect"`
	Identity operation.Key     `json:"identity"`
}

type blobRecord struct {
	Digest    canonical.Digest `json:"digest"`
	MediaType string           `json:"media_type"`
	Size      int64            `json:"size"`
}

// envelope is who recorded the content, when and why. Its fields sort before
// "content", epoch and kind after it: Encode relies on that.
type envelope struct {
	Actor string      `json:"actor"`
	At    Observation `json:"at"`
	Cause string      `json:"cause"`
}

type body struct {
	envelope
	Content content `json:"content"`
	Epoch   uint64  `json:"epoch"`
	Kind    string  `json:"kind"`
}

// contentKey stands before the content of every body.
const contentKey = `,"content":`

// appendTail appends what stands behind it.
func appendTail(dst []byte, epoch uint64) []byte {
	dst = append(dst, `,"epoch":`...)
	dst = strconv.AppendUint(dst, epoch, 10)
	return append(dst, `,"kind":"`+BodyKind+`"}`...)
}

// Encode checks a batch and makes it ready. The error is a refusal with
// journal.bad_batch: the batch contradicts itself, or could not be read back.
func Encode(b Batch) (*Encoded, error) {
	e := &Encoded{Batch: b}
	if err := e.check(); err != nil {
		return nil, err
	}
	c := content{Blobs: make([]blobRecord, len(b.Blobs)), Events: b.Events, Expect: b.Expect, Identity: b.Identity}
	for i, blob := range b.Blobs {
		c.Blobs[i] = blobRecord{Digest: blob.Digest, MediaType: blob.MediaType, Size: int64(len(blob.Bytes))}
	}
	// The content is encoded once and stands in the body as it is, so that its digest
	// can be checked from the body alone.
	head, err := canonical.Marshal(envelope{Actor: b.Actor, At: b.At, Cause: b.Cause})
	if err != nil {
		return nil, badBatch(b.Identity, "the envelope has no canonical form").Because(err)
	}
	size := len(head) + 256
	for _, ev := range b.Events {
		size += len(ev.Body) + len(ev.Subject) + len(ev.Family) + 128*(1+len(ev.Guards))
	}
	size += 128 * (len(b.Blobs) + len(b.Expect))
	out := append(make([]byte, 0, size), head[:len(head)-1]...)
	out = append(out, contentKey...)
	start := len(out)
	if out, err = canonical.Append(out, c); err != nil {
		return nil, badBatch(b.Identity, "the content has no canonical form").Because(err)
	}
	sum := Sum(sha256.Sum256(out[start:]))
	e.contentSum = &sum
	out = appendTail(out, b.Epoch)
	if len(out) > MaxBody {
		return nil, badBatch(b.Identity, fmt.Sprintf("the batch has %d bytes, more than %d", len(out), MaxBody))
	}
	if len(out) > sureToParse {
		// Far more values than a usual body holds may still be too many to be read back.
		if _, err := canonical.Parse(out, canonical.Limits{}); err != nil {
			return nil, badBatch(b.Identity, "the batch cannot be read back").Because(err)
		}
	}
	e.Body, e.BodySum = out, sha256.Sum256(out)
	return e, nil
}

// Decode reads a stored body, which must not change afterwards: the bodies of its events are
// parts of it. Blobs come back without their bytes. ContentSum and
// Moves are computed as Encode computes them, so that indexes can be checked and
// rebuilt from bodies alone.
func Decode(stored []byte) (*Encoded, error) {
	var bd body
	if err := canonical.DecodeStored(stored, &bd); err != nil {
		return nil, fmt.Errorf("read a batch: %w", err)
	}
	if bd.Kind != BodyKind {
		return nil, fmt.Errorf("read a batch: its kind is %q, not %q", bd.Kind, BodyKind)
	}
	// The bytes are canonical, so that the content stands in them where Encode puts it.
	head, err := canonical.Marshal(bd.envelope)
	if err != nil {
		return nil, fmt.Errorf("read a batch: %w", err)
	}
	start, end := len(head)-1+len(contentKey), len(stored)-len(appendTail(nil, bd.Epoch))
	if start > end {
		return nil, fmt.Errorf("read a batch: its content ends at byte %d, before byte %d where it begins", end, start)
	}
	e := &Encoded{
		Batch: Batch{
			Identity: bd.Content.Identity, Epoch: bd.Epoch, Actor: bd.Actor, Cause: bd.Cause, At: bd.At,
			Expect: bd.Content.Expect, Events: bd.Content.Events,
		},
		Body: stored, BodySum: sha256.Sum256(stored), content: stored[start:end],
	}
	for _, r := range bd.Content.Blobs {
		e.Blobs = append(e.Blobs, Blob{Digest: r.Digest, MediaType: r.MediaType})
	}
	if err := e.moves(); err != nil {
		return nil, err
	}
	return e, nil
}

// ContentSum is the SHA-256 of the content, the part of the body that the identity stands
// for.
func (e *Encoded) ContentSum() Sum {
	if e.contentSum != nil {
		return *e.contentSum
	}
	return sha256.Sum256(e.content)
}

func (e *Encoded) check() error {
	if _, err := operation.ParseKey(string(e.Identity)); err != nil {
		return badBatch(e.Identity, "the identity is not an operation key").Because(err)
	}
	if len(e.Events) == 0 {
		return badBatch(e.Identity, "the batch records no event")
	}
	if len(e.Events) > MaxEvents || len(e.Expect) > MaxEvents || len(e.Blobs) > MaxBlobs {
		return badBatch(e.Identity, "the batch has too many events, expectations or blobs")
	}
	for _, blob := range e.Blobs {
		switch {
		case len(blob.Bytes) > MaxBlob:
			return badBatch(e.Identity, fmt.Sprintf("blob %s has %d bytes, more than %d", blob.Digest, len(blob.Bytes), MaxBlob))
		case canonical.Sum(blob.Bytes) != blob.Digest:
			return badBatch(e.Identity, fmt.Sprintf("the bytes of blob %q have another digest", blob.Digest))
		}
	}
	for _, ev := range e.Events {
		switch {
		case !strings.HasPrefix(string(ev.Family), ev.Subject.Machine()+"."):
			return badBatch(e.Identity, fmt.Sprintf("event %q does not belong to subject %q", ev.Family, ev.Subject))
		case len(ev.Body) == 0 || ev.Body[0] != '{':
			return badBatch(e.Identity, fmt.Sprintf("the body of %s is not an object", ev.Family))
		}
		// A body is raw JSON that nobody has checked yet. One that cannot be read back
		// would be damage for ever, and one that goes on after its end could speak for
		// the event around it.
		if err := canonical.Check(ev.Body, canonical.Limits{Depth: maxBodyDepth}); reason.Is(err, reason.CanonicalNotCanonical) {
			return badBatch(e.Identity, fmt.Sprintf("the body of %s is not in canonical form", ev.Family))
		} else if err != nil {
			return badBatch(e.Identity, fmt.Sprintf("the body of %s cannot be read back", ev.Family)).Because(err)
		}
		for _, g := range ev.Guards {
			if !g.Digest.Valid() {
				return badBatch(e.Identity, fmt.Sprintf("guard %q of %s has no digest", g.Name, ev.Family))
			}
		}
	}
	return e.moves()
}

// moves fills Moves and refuses versions that contradict each other.
func (e *Encoded) moves() error {
	e.Moves = make([]Move, 0, len(e.Expect)+1)
	index := subjectIndex{moves: &e.Moves}
	for _, x := range e.Expect {
		if !validSubject(x.Subject) {
			return badBatch(e.Identity, fmt.Sprintf("%q is not a subject", x.Subject))
		}
		if index.find(x.Subject) >= 0 {
			return badBatch(e.Identity, fmt.Sprintf("subject %s is expected twice", x.Subject))
		}
		index.add(Move{Subject: x.Subject, From: x.Version, To: x.Version})
	}
	for _, ev := range e.Events {
		i := index.find(ev.Subject)
		if i < 0 {
			// An event names its own version, which is as good as an expectation.
			if !validSubject(ev.Subject) {
				return badBatch(e.Identity, fmt.Sprintf("%q is not a subject", ev.Subject))
			}
			if ev.Version == 0 {
				return badBatch(e.Identity, fmt.Sprintf("an event of %s has no version", ev.Subject))
			}
			i = index.add(Move{Subject: ev.Subject, From: ev.Version - 1, To: ev.Version - 1})
		}
		if e.Moves[i].To++; ev.Version != e.Moves[i].To {
			return badBatch(e.Identity, fmt.Sprintf("an event of %s has version %d where %d follows", ev.Subject, ev.Version, e.Moves[i].To))
		}
	}
	return nil
}

// subjectIndex finds the move of a subject: by looking at each of a few, else by map.
type subjectIndex struct {
	moves *[]Move
	by    map[lifecycle.Subject]int
}

func (x *subjectIndex) find(s lifecycle.Subject) int {
	if x.by != nil {
		if i, ok := x.by[s]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(*x.moves, func(m Move) bool { return m.Subject == s })
}

func (x *subjectIndex) add(m Move) int {
	const few = 16
	i := len(*x.moves)
	*x.moves = append(*x.moves, m)
	if x.by != nil {
		x.by[m.Subject] = i
	} else if i == few {
		x.by = make(map[lifecycle.Subject]int, 2*few)
		for j, m := range *x.moves {
			x.by[m.Subject] = j
		}
	}
	return i
}

func validSubject(s lifecycle.Subject) bool {
	return len(s) <= maxSubject && s.Machine() != "" && s.ID() != "" && utf8.ValidString(string(s)) &&
		!strings.ContainsFunc(string(s), unicode.IsControl)
}

func badBatch(identity operation.Key, what string) *reason.Refusal {
	return reason.New(reason.JournalBadBatch, what, strconv.Quote(string(identity)), "this is a fault of the caller: report it")
}
