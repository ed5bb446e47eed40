package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
)

// draftName is the file that a recovery builds beside the journal. One that a crash left is
// removed by the next recovery; nothing else looks at it.
const draftName = fileName + ".recovering"

// maxNamed bounds how many subjects of left-out batches are named.
const maxNamed = 1000

// Recovery continues a damaged journal as a new file. It holds the writer lock. Until
// Commit has renamed the new file nothing has changed; afterwards the damaged file stands
// beside it, whole, under a name that says so. Nothing of the damaged file is ever edited:
// what can be proven is copied, indexes are made anew from bodies, and the rest stays where
// it is.
type Recovery struct {
	// Extent is that of the damaged journal. The new one begins with its intact batches.
	Extent journal.Extent
	// LeftOut counts the batches that are not proven, Named the subjects that those of
	// them name whose bodies can still be read, sorted, up to a bound. Named is a hint for
	// a person: nothing proves it.
	LeftOut uint64
	Named   []lifecycle.Subject
	// Draft reads the new journal as far as it was copied.
	Draft journal.Reader

	lock       *writerLock
	old, draft *Store
	db         *sql.DB // writes the draft
	epoch      uint64
	named      map[journal.Sum]bool
	// at, if not nil, is called wherever a crash would leave other files behind than before.
	at func(step string)
}

// step marks a point at which tests end the process.
func (r *Recovery) step(name string) {
	if r.at != nil {
		r.at(name)
	}
}

// Kept is the damaged file as it stands beside the new one.
type Kept struct {
	Name   string
	Digest canonical.Digest
	Bytes  int64
}

// Recover takes the writer lock of the state folder dir, reports everything that is wrong
// with its journal, and drafts the one that could take its place. It refuses with
// journal.missing, journal.locked, journal.foreign_file, journal.newer_version, and with
// journal.unrecoverable where no batch is intact. Whoever called it closes it.
func Recover(ctx context.Context, dir, activity string, report func(journal.Damage)) (_ *Recovery, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("recover journal %s: %w", dir, err)
	}
	path := filepath.Join(dir, fileName)
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing(path)
	case err != nil:
		return nil, refuseOS(err, "the journal cannot be looked at", path)
	case !info.Mode().IsRegular():
		return nil, foreign(path, "the journal is no regular file")
	}
	tellDriver()
	r := &Recovery{old: &Store{dir: dir, path: path}, draft: &Store{dir: dir, path: filepath.Join(dir, draftName)}}
	r.Draft = r.draft
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if r.lock, err = lockWriter(dir, activity); err != nil {
		return nil, err
	}
	if err := r.removeDraft(); err != nil {
		return nil, refuseOS(err, "what an earlier recovery left cannot be removed", r.draft.path)
	}
	if err := r.old.openPool("ro"); err != nil {
		return nil, err
	}
	if err := r.old.snapshot(ctx, "reading what is left of it", func(q querier) error { return r.build(ctx, q, report) }); err != nil {
		return nil, err
	}
	r.draft.readOnly = readOnly(r.draft.path, "the journal is a draft")
	return r, r.draft.openPool("ro")
}

// build examines the damaged journal and copies what is intact.
func (r *Recovery) build(ctx context.Context, q querier, report func(journal.Damage)) error {
	v := &verification{ctx: ctx, path: r.old.path, report: report, q: q}
	switch _, err := r.old.identify(ctx, q); {
	case reason.Is(err, reason.JournalCorrupt):
		v.damage(0, fileName, err.Error())
	case err != nil:
		return err
	}
	if err := v.walk(); err != nil {
		return err
	}
	r.Extent, r.LeftOut = v.extent, v.extent.Batches-v.extent.Intact
	if r.Extent.Intact == 0 {
		return reason.New(reason.JournalUnrecoverable, "no batch of the journal is intact, so there is nothing to go on from", r.old.path,
			"restore the journal from a copy that `writ verify` accepts, or move it away to begin anew")
	}
	if err := r.create(ctx); err != nil {
		return refuseDraft(err, r.draft.path)
	}
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return refuseDraft(err, r.draft.path)
	}
	defer func() { _ = tx.Rollback() }()
	d, err := newDrafting(ctx, tx)
	if err != nil {
		return refuseDraft(err, r.draft.path)
	}
	r.named = map[journal.Sum]bool{}
	r.epoch = v.highest
	if err := eachBatch(ctx, q, 1, int64(r.Extent.Intact), func(row *row) error {
		for _, b := range row.encoded.Blobs {
			if sum, ok := b.Digest.Bytes(); ok {
				r.named[sum] = true
			}
		}
		r.epoch = max(r.epoch, row.encoded.Epoch)
		return d.put(row.encoded, row.seq)
	}); err != nil {
		return refuseDraft(err, r.draft.path)
	}
	if err := r.copyBlobs(ctx, q, d); err != nil {
		return refuseDraft(err, r.draft.path)
	}
	// Nobody has this epoch: who writes the recovery is no writer of an earlier life.
	r.epoch++
	if err := d.setEpoch(r.epoch); err != nil {
		return refuseDraft(err, r.draft.path)
	}
	if err := tx.Commit(); err != nil {
		return refuseDraft(err, r.draft.path)
	}
	return v.tolerate(r.look(ctx, q))
}

// create makes the draft's file and its tables. Nothing of it is durable before Commit,
// which syncs the whole file.
func (r *Recovery) create(ctx context.Context) (err error) {
	if err := createFile(r.draft.path); err != nil {
		return err
	}
	if r.db, err = sql.Open("sqlite", dsn(r.draft.path, "rw", "synchronous(OFF)")); err != nil {
		return err
	}
	r.db.SetMaxOpenConns(1)
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return err
	}
	r.draft.conn = conn
	err = r.draft.create(ctx)
	r.draft.conn = nil
	return errors.Join(err, conn.Close())
}

// copyBlobs copies the blobs that intact batches record and whose bytes have their digest.
func (r *Recovery) copyBlobs(ctx context.Context, q querier, d *drafting) error {
	left := make(map[journal.Sum]bool, len(r.named))
	for sum := range r.named {
		left[sum] = true
	}
	take := func(sum journal.Sum, bytes []byte) error {
		if !left[sum] || sha256.Sum256(bytes) != sum {
			return nil
		}
		delete(left, sum)
		if bytes == nil {
			bytes = []byte{}
		}
		_, err := d.blob.ExecContext(ctx, sum[:], bytes)
		return err
	}
	rows, err := q.QueryContext(ctx, `SELECT digest, bytes FROM blobs`)
	if err == nil {
		err = func() error {
			defer rows.Close()
			for rows.Next() {
				var digest, bytes []byte
				if err := rows.Scan(&digest, &bytes); err != nil {
					return err
				}
				if sum, ok := sumOf(digest); ok {
					if err := take(sum, bytes); err != nil {
						return err
					}
				}
			}
			return rows.Err()
		}()
	}
	if err == nil || !malformed(err) {
		return err
	}
	// The table cannot be read through; some rows may still be reached by their key.
	for _, sum := range slices.SortedFunc(keys(left), func(a, b journal.Sum) int { return slices.Compare(a[:], b[:]) }) {
		var bytes []byte
		if err := q.QueryRowContext(ctx, `SELECT bytes FROM blobs WHERE digest = ?`, sum[:]).Scan(&bytes); err == nil {
			if err := take(sum, bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// look finds whom the left-out batches are about, as far as they can be read.
func (r *Recovery) look(ctx context.Context, q querier) error {
	named := map[lifecycle.Subject]bool{}
	err := eachBatch(ctx, q, int64(r.Extent.Intact)+1, all, func(row *row) error {
		if row.encoded == nil {
			return nil
		}
		for _, m := range row.encoded.Moves {
			if len(named) < maxNamed {
				named[m.Subject] = true
			}
		}
		return nil
	})
	r.Named = slices.Sorted(keys(named))
	return err
}

func keys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// Commit appends the batch that records the recovery to the draft, makes the draft durable,
// and puts it in the journal's place. The batch is made once it is known how the damaged
// file is kept; its epoch is set here. name is how that file will be called, for example
// "before-recovery-1".
//
// When it returns without an error, the recovery is durable. An error before the one
// rename leaves the damaged journal where it was; after a crash the same holds.
func (r *Recovery) Commit(ctx context.Context, name string, record func(Kept) (journal.Batch, error)) (journal.Result, error) {
	if err := errors.Join(r.old.pool.Close(), r.draft.pool.Close()); err != nil {
		return journal.Result{}, refuse(err, "closing it", r.old.path)
	}
	r.step("drafted")
	if err := r.settle(ctx); err != nil {
		return journal.Result{}, err
	}
	r.step("settled")
	kept, err := r.keptAs(name)
	if err != nil {
		return journal.Result{}, refuseOS(err, "the damaged journal cannot be read", r.old.path)
	}
	batch, err := record(kept)
	if err != nil {
		return journal.Result{}, err
	}
	batch.Epoch = r.epoch
	e, err := journal.Encode(batch)
	if err != nil {
		return journal.Result{}, err
	}
	result, err := r.record(ctx, e)
	if err != nil {
		return journal.Result{}, refuseDraft(err, r.draft.path)
	}
	r.step("recorded")
	if err := r.prove(ctx, result); err != nil {
		return journal.Result{}, err
	}
	r.step("proved")
	if err := r.replace(kept); err != nil {
		return journal.Result{}, refuseOS(err, "the recovered journal cannot be put in its place", r.draft.path)
	}
	return result, nil
}

// Halt makes durable that nothing is appended to the damaged journal, for a recovery that
// is not accepted.
func (r *Recovery) Halt(ctx context.Context, d journal.Damage) error {
	return writeHalt(ctx, r.old.path, d)
}

// settle takes the damaged file out of the mode in which others share it through files
// beside it: afterwards it is all there is, and nobody has it open. Opening it for writing
// would bring it back.
func (r *Recovery) settle(ctx context.Context) error {
	db, err := sql.Open("sqlite", dsn(r.old.path, "rw", "synchronous(FULL)"))
	if err != nil {
		return refuse(err, "settling it", r.old.path)
	}
	defer db.Close()
	var mode string
	err = db.QueryRowContext(ctx, `PRAGMA journal_mode = DELETE`).Scan(&mode)
	switch {
	case err == nil && mode == "delete":
		return nil
	case err == nil:
		return reason.New(reason.JournalLocked, "another process has the journal open", r.old.path, "end what reads it, and run again")
	case malformed(err):
		// SQLite cannot write its header. That is enough where nothing stands in the log.
		if log, serr := os.Stat(r.old.path + "-wal"); errors.Is(serr, fs.ErrNotExist) || serr == nil && log.Size() == 0 {
			return nil
		}
	}
	return refuse(err, "settling it", r.old.path)
}

// keptAs chooses the name under which the damaged file stays, and digests it. A name that
// a crashed recovery gave it is used again.
func (r *Recovery) keptAs(name string) (Kept, error) {
	ours, err := os.Stat(r.old.path)
	if err != nil {
		return Kept{}, err
	}
	kept := Kept{Bytes: ours.Size()}
	for i := 1; kept.Name == ""; i++ {
		try := "journal." + name + ".db"
		if i > 1 {
			try = fmt.Sprintf("journal.%s-%d.db", name, i)
		}
		theirs, err := os.Lstat(filepath.Join(r.old.dir, try))
		if errors.Is(err, fs.ErrNotExist) || err == nil && os.SameFile(ours, theirs) {
			kept.Name = try
		} else if err != nil {
			return Kept{}, err
		}
	}
	f, err := os.Open(r.old.path)
	if err != nil {
		return Kept{}, err
	}
	defer f.Close()
	h := canonical.NewHasher()
	if _, err := io.Copy(h, f); err != nil {
		return Kept{}, err
	}
	kept.Digest = h.Digest()
	return kept, nil
}

// record appends the batch to the draft.
func (r *Recovery) record(ctx context.Context, e *journal.Encoded) (journal.Result, error) {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return journal.Result{}, err
	}
	defer func() { _ = tx.Rollback() }()
	d, err := newDrafting(ctx, tx)
	if err != nil {
		return journal.Result{}, err
	}
	if d.chain, err = chainOf(ctx, tx, r.Extent.Intact); err != nil {
		return journal.Result{}, err
	}
	seq := r.Extent.Intact + 1
	if err := d.put(e, int64(seq)); err != nil {
		return journal.Result{}, err
	}
	for _, b := range e.Blobs {
		sum, _ := b.Digest.Bytes()
		if _, err := d.blob.ExecContext(ctx, sum[:], append([]byte{}, b.Bytes...)); err != nil {
			return journal.Result{}, err
		}
	}
	return journal.Result{Sequence: seq, Chain: canonical.DigestFromBytes(d.chain)}, tx.Commit()
}

// prove verifies the draft from end to end, by the same walk as any journal.
func (r *Recovery) prove(ctx context.Context, want journal.Result) error {
	s := &Store{dir: r.draft.dir, path: r.draft.path}
	if err := s.openPool("ro"); err != nil {
		return err
	}
	defer s.pool.Close()
	var found []string
	extent, err := s.Verify(ctx, func(d journal.Damage) { found = append(found, haltText(d)) })
	if err != nil {
		return err
	}
	if len(found) > 0 || extent.Head != want.Chain || extent.IntactHead != want.Chain || extent.Batches != want.Sequence {
		return reason.New(reason.InternalBug, "the recovered journal does not verify: "+strings.Join(found, "; "), r.draft.path,
			"the damaged one stands as it was; please report it")
	}
	return nil
}

// replace makes the draft durable and gives it the journal's name.
func (r *Recovery) replace(kept Kept) error {
	// The mode is kept in the file. The last connection takes the files beside it away.
	var mode string
	err := r.db.QueryRow(`PRAGMA journal_mode = WAL`).Scan(&mode)
	if err = errors.Join(err, r.db.Close()); err != nil {
		return err
	}
	r.db = nil
	for _, side := range []string{"-wal", "-journal"} {
		if info, err := os.Stat(r.draft.path + side); err == nil && info.Size() > 0 {
			return fmt.Errorf("%s%s was left", r.draft.path, side)
		}
	}
	if err := syncPath(r.draft.path); err != nil {
		return err
	}
	r.step("synced")
	aside := filepath.Join(r.old.dir, kept.Name)
	if err := os.Link(r.old.path, aside); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := syncPath(r.old.dir); err != nil {
		return err
	}
	r.step("linked")
	if err := os.Rename(r.draft.path, r.old.path); err != nil {
		return err
	}
	r.step("renamed")
	if err := syncPath(r.old.dir); err != nil {
		return err
	}
	r.step("durable")
	// A courtesy: nothing writes there any more.
	_ = os.Chmod(aside, 0o400)
	return nil
}

// Close gives the writer lock back, and removes a draft that took nobody's place.
func (r *Recovery) Close() error {
	var errs []error
	for _, s := range []*Store{r.old, r.draft} {
		if s.pool != nil {
			errs = append(errs, s.pool.Close())
		}
	}
	if r.db != nil {
		errs = append(errs, r.db.Close())
	}
	if r.lock != nil {
		errs = append(errs, r.removeDraft(), r.lock.release())
		r.lock = nil
	}
	return errors.Join(errs...)
}

func (r *Recovery) removeDraft() error {
	var errs []error
	for _, side := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(r.draft.path + side); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// drafting inserts batches into a draft in order.
type drafting struct {
	ctx                                   context.Context
	chain                                 journal.Sum
	batch, identity, event, subject, blob *sql.Stmt
	epoch                                 *sql.Stmt
}

func newDrafting(ctx context.Context, tx *sql.Tx) (*drafting, error) {
	d := &drafting{ctx: ctx, chain: journal.Genesis()}
	for _, p := range []struct {
		to   **sql.Stmt
		text string
	}{
		{&d.batch, insertBatch}, {&d.identity, insertIdentity}, {&d.event, insertEvent}, {&d.blob, insertBlob},
		{&d.subject, `INSERT INTO subjects (subject, version, seq) VALUES (?1, ?2, ?3) ON CONFLICT (subject) DO UPDATE SET version = ?2, seq = ?3`},
		{&d.epoch, `UPDATE meta SET value = ?, sum = ? WHERE key = ?`},
	} {
		var err error
		if *p.to, err = tx.PrepareContext(ctx, p.text); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// put inserts a batch and makes its index rows from its body.
func (d *drafting) put(e *journal.Encoded, seq int64) error {
	before := d.chain
	d.chain = journal.Link(before, uint64(seq), e.BodySum)
	if _, err := d.batch.ExecContext(d.ctx, seq, string(e.Identity), e.Body, before[:], d.chain[:]); err != nil {
		return err
	}
	content := e.ContentSum()
	if _, err := d.identity.ExecContext(d.ctx, string(e.Identity), seq, content[:]); err != nil {
		return err
	}
	for _, m := range e.Moves {
		if m.From == m.To {
			continue
		}
		if _, err := d.subject.ExecContext(d.ctx, string(m.Subject), int64(m.To), seq); err != nil {
			return err
		}
	}
	for i, ev := range e.Events {
		if _, err := d.event.ExecContext(d.ctx, string(ev.Subject), int64(ev.Version), seq, int64(i)); err != nil {
			return err
		}
	}
	return nil
}

func (d *drafting) setEpoch(epoch uint64) error {
	value := fmt.Sprint(epoch)
	_, err := d.epoch.ExecContext(d.ctx, value, metaSum(keyEpoch, value), keyEpoch)
	return err
}

func chainOf(ctx context.Context, q querier, seq uint64) (journal.Sum, error) {
	var chain []byte
	if err := q.QueryRowContext(ctx, `SELECT chain FROM batches WHERE seq = ?`, int64(seq)).Scan(&chain); err != nil {
		return journal.Sum{}, err
	}
	sum, ok := sumOf(chain)
	if !ok {
		return sum, corruptRow(int64(seq), nil)
	}
	return sum, nil
}

// refuseDraft says of an error with the draft that it is not about the journal.
func refuseDraft(err error, path string) error {
	return refuse(err, "drafting the recovered one", path)
}

// syncPath makes a file, or the names in a folder, durable.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
