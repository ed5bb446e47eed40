package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/killpoint"
	"github.com/writ-runtime/writ/go/reason"
)

// errGuessedWrong says that a subject taken for new has events.
var errGuessedWrong = errors.New("a subject taken for new has events")

// transact stores a group in one transaction. It first takes every subject that is
// expected to be new for new, since most are and asking costs a quarter of a batch. The
// insert shows when one was not: then the group is rolled back and done again, asking.
func (w *writer) transact(group []*request) error {
	err := w.attempt(group, false)
	if errors.Is(err, errGuessedWrong) {
		err = w.attempt(group, true)
	}
	return err
}

func (w *writer) attempt(group []*request, ask bool) error {
	if _, err := w.statements.begin.run(); err != nil {
		return err
	}
	seq, chain := w.seq, w.chain
	err := func() error {
		// Whoever has taken the folder over has raised the epoch. What is remembered here
		// says nothing then, and nothing may be concluded from what does not fit it.
		if err := w.held(); err != nil {
			return err
		}
		for _, req := range group {
			for i, e := range req.batches {
				if e == nil {
					continue
				}
				req.results[i] = journal.Result{}
				if err := w.append(e, &req.results[i], ask); err != nil {
					return err
				}
			}
		}
		_, err := w.statements.commit.run()
		return err
	}()
	if err != nil {
		_, _ = w.statements.rollback.run()
		w.seq, w.chain, w.versions = seq, chain, versions{}
	}
	return err
}

// held refuses once another process has raised the epoch.
func (w *writer) held() error {
	var stored [2]driver.Value
	found, err := w.statements.selectMeta.row(stored[:], keyEpoch)
	if err != nil {
		return err
	}
	value, _ := stored[0].(string)
	sum, _ := stored[1].([]byte)
	epoch, err := parseEpoch(value, found && string(sum) == string(metaSum(keyEpoch, value)))
	if err != nil {
		return err
	}
	return w.store.holds(epoch)
}

// append stores one batch inside the open transaction. It first looks whether the
// batch may be stored, and writes nothing if not, so that a refusal needs no
// savepoint. An error is a failure of the store.
func (w *writer) append(e *journal.Encoded, r *journal.Result, ask bool) error {
	refusal, err := w.admit(e, ask)
	if err != nil {
		return err
	}
	if refusal != nil {
		// An exact repeat is answered whatever has changed since.
		known, err := w.repeat(e, r)
		if err == nil && !known {
			r.Err = refusal
		}
		return err
	}
	seq := w.seq + 1
	content := e.ContentSum()
	changed, err := w.statements.identity.run(string(e.Identity), int64(seq), content[:])
	if err != nil {
		return err
	}
	if changed == 0 {
		_, err := w.repeat(e, r)
		return err
	}
	chain := journal.Link(w.chain, seq, e.BodySum)
	if _, err := w.statements.batch.run(int64(seq), string(e.Identity), e.Body, w.chain[:], chain[:]); err != nil {
		return err
	}
	for _, m := range e.Moves {
		if err := w.move(m, seq); err != nil {
			return err
		}
	}
	for i, ev := range e.Events {
		if _, err := w.statements.event.run(string(ev.Subject), int64(ev.Version), int64(seq), int64(i)); err != nil {
			return err
		}
	}
	for _, b := range e.Blobs {
		sum, _ := b.Digest.Bytes()
		bytes := b.Bytes
		if bytes == nil {
			bytes = []byte{} // nil would be NULL
		}
		if _, err := w.statements.blob.run(sum[:], bytes); err != nil {
			return err
		}
	}
	killpoint.Turn("store.inserted", e.Events, e.Identity)
	w.seq, w.chain = seq, chain
	r.Sequence, r.Chain = seq, canonical.DigestFromBytes(chain)
	return nil
}

// admit returns the refusal of a batch whose epoch or expected versions do not hold.
func (w *writer) admit(e *journal.Encoded, ask bool) (*reason.Refusal, error) {
	if e.Epoch != w.store.epoch {
		return reason.New(reason.JournalStaleEpoch,
			fmt.Sprintf("the batch was made under writer epoch %d, this is epoch %d", e.Epoch, w.store.epoch), string(e.Identity),
			"read the journal again and decide anew"), nil
	}
	for _, m := range e.Moves {
		version, known := w.versions.get(m.Subject)
		if !known && (ask || m.From != 0 || m.To == 0) {
			var stored [1]driver.Value
			found, err := w.statements.selectVersion.row(stored[:], string(m.Subject))
			if err != nil {
				return nil, err
			}
			if found {
				n, _ := stored[0].(int64)
				version = uint64(n)
			}
			w.versions.put(m.Subject, version)
		}
		if version != m.From {
			return reason.New(reason.JournalConflict,
				fmt.Sprintf("the subject is at version %d, the batch expects %d", version, m.From), string(m.Subject),
				"read the subject again and decide anew"), nil
		}
	}
	return nil, nil
}

// repeat answers a batch whose identity is stored: with the first result when the
// content is the same, with a collision when not.
func (w *writer) repeat(e *journal.Encoded, r *journal.Result) (known bool, err error) {
	var stored [3]driver.Value
	found, err := w.statements.selectFirst.row(stored[:], string(e.Identity))
	if err != nil || !found {
		return false, err
	}
	seq, _ := stored[0].(int64)
	digest, _ := stored[1].([]byte)
	chain, _ := stored[2].([]byte)
	if !isSum(digest, e.ContentSum()) {
		r.Err = reason.New(reason.OperationCollision,
			fmt.Sprintf("the identity was used before, in batch %d, with other content", seq), string(e.Identity),
			"a repeat must be exact; for something else use another key")
		return true, nil
	}
	head, ok := sumOf(chain)
	if !ok {
		return true, corruptRow(seq, nil)
	}
	r.Sequence, r.Chain, r.Replayed = uint64(seq), canonical.DigestFromBytes(head), true
	return true, nil
}

// move writes the version that a batch leaves. Where it was guessed, the insert finds
// out; where it was known, the row must be there.
func (w *writer) move(m journal.Move, seq uint64) error {
	if m.From == m.To {
		return nil
	}
	if m.From == 0 {
		_, known := w.versions.get(m.Subject)
		changed, err := w.statements.subjectNew.run(string(m.Subject), int64(m.To), int64(seq))
		if err == nil && changed == 0 {
			if err = errGuessedWrong; known {
				err = lostVersion(m)
			}
		}
		if err != nil {
			return err
		}
	} else {
		changed, err := w.statements.subjectMoved.run(string(m.Subject), int64(m.To), int64(seq), int64(m.From))
		if err == nil && changed != 1 {
			err = lostVersion(m)
		}
		if err != nil {
			return err
		}
	}
	w.versions.put(m.Subject, m.To)
	return nil
}

func lostVersion(m journal.Move) error {
	return reason.New(reason.JournalCorrupt, "the index of subjects lost a version that it had", string(m.Subject),
		"run `writ verify` to see the extent")
}
