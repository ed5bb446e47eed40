package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/journal/storetest"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/built"
)

// fill makes a journal in dir that has something in every table, and closes it.
func fill(t testing.TB, dir string) {
	t.Helper()
	s := open(t, dir, true)
	for i := range 40 {
		subject := lifecycle.Of("machine", fmt.Sprint("subject-", i%7))
		b := storetest.NewBatch(fmt.Sprint("batch-", i), s.Epoch(), subject, uint64(i/7)*2, 2)
		b.Blobs = []journal.Blob{storetest.NewBlob(strings.Repeat(fmt.Sprint("blob ", i, " "), 1+i*20))}
		if results, err := s.Append(t.Context(), b); err != nil || results[0].Err != nil {
			t.Fatalf("Append: %v, %+v", err, results)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// examine opens a journal for reading and returns everything that is wrong with it.
func examine(t testing.TB, dir string) (found []string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		return []string{"open: " + err.Error()}
	}
	defer s.Close()
	extent, err := s.Verify(t.Context(), func(d journal.Damage) { found = append(found, fmt.Sprintf("%+v", d)) })
	if err != nil {
		found = append(found, "verify: "+err.Error())
	}
	if len(found) == 0 && (extent.Batches == 0 || extent.Events == 0 || extent.Subjects == 0 || extent.Blobs == 0) {
		found = append(found, fmt.Sprintf("nothing there: %+v", extent))
	}
	return found
}

func raw(t testing.TB, dir string) *sql.DB {
	return rawWith(t, dir, "_pragma=synchronous(OFF)")
}

func rawWith(t testing.TB, dir, query string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "journal.db")+"?"+query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// dump returns every value of every table, as a person would read it back.
func dump(t testing.TB, dir string) string {
	t.Helper()
	db := rawWith(t, dir, "mode=ro")
	defer db.Close()
	var b strings.Builder
	for _, q := range []string{
		`SELECT * FROM meta ORDER BY key`, `SELECT * FROM batches ORDER BY seq`, `SELECT * FROM identities ORDER BY identity`,
		`SELECT * FROM subjects ORDER BY subject`, `SELECT * FROM events ORDER BY subject, version`, `SELECT * FROM blobs ORDER BY digest`,
	} {
		rows, err := db.Query(q)
		if err != nil {
			t.Fatal(err)
		}
		columns, _ := rows.Columns()
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			for _, v := range values {
				fmt.Fprintf(&b, "%x|", *v.(*any))
			}
			b.WriteByte('\n')
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// column is one column of one table and how to find a row of it.
type column struct{ table, key, name, kind string }

func columns() []column {
	return []column{
		{"meta", "key", "key", "text"}, {"meta", "key", "value", "text"}, {"meta", "key", "sum", "blob"},
		{"batches", "seq", "seq", "int"}, {"batches", "seq", "identity", "text"}, {"batches", "seq", "body", "blob"},
		{"batches", "seq", "prev", "blob"}, {"batches", "seq", "chain", "blob"},
		{"identities", "identity", "identity", "text"}, {"identities", "identity", "seq", "int"}, {"identities", "identity", "digest", "blob"},
		{"subjects", "subject", "subject", "text"}, {"subjects", "subject", "version", "int"}, {"subjects", "subject", "seq", "int"},
		{"events", "rowno", "subject", "text"}, {"events", "rowno", "version", "int"}, {"events", "rowno", "seq", "int"}, {"events", "rowno", "ordinal", "int"},
		{"blobs", "rowid", "digest", "blob"}, {"blobs", "rowid", "bytes", "blob"},
	}
}

// TestVerifyFindsEveryFlippedBit flips one bit of one stored value at a time, past the
// triggers, in every column of every table.
func TestVerifyFindsEveryFlippedBit(t *testing.T) {
	pristine := t.TempDir()
	fill(t, pristine)
	if found := examine(t, pristine); len(found) != 0 {
		t.Fatalf("a sound journal: %v", found)
	}
	// Opening the file past the store, and taking triggers away and back, shows nothing.
	untouched := t.TempDir()
	if err := os.CopyFS(untouched, os.DirFS(pristine)); err != nil {
		t.Fatal(err)
	}
	db := raw(t, untouched)
	restore := dropTriggers(t, db)
	for _, text := range restore {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	_ = db.Close()
	if found := examine(t, untouched); len(found) != 0 {
		t.Fatalf("an untouched journal: %v", found)
	}
	try := func(t testing.TB, c column, pick func(low, high int) int) {
		t.Helper()
		dir, err := os.MkdirTemp(pristine, "flipped")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := built.Copy(filepath.Join(pristine, "journal.db"), filepath.Join(dir, "journal.db")); err != nil {
			t.Fatal(err)
		}
		if what := flip(t, pick, dir, c); what != "" && len(examine(t, dir)) == 0 {
			t.Fatalf("%s was not found", what)
		}
	}
	for _, c := range columns() {
		t.Run(c.table+"."+c.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			for range 4 {
				try(t, c, func(low, high int) int { return low + random.IntN(high-low+1) })
			}
		})
	}
	t.Run("any", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			c := rapid.SampledFrom(columns()).Draw(r, "column")
			try(t, c, func(low, high int) int { return rapid.IntRange(low, high).Draw(r, "pick") })
		})
	})
}

// dropTriggers drops every trigger and returns the statements that make them again.
func dropTriggers(t testing.TB, db *sql.DB) (restore []string) {
	rows, err := db.Query(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		names, restore = append(names, name), append(restore, text)
	}
	for _, name := range names {
		if _, err := db.Exec(`DROP TRIGGER ` + name); err != nil {
			t.Fatal(err)
		}
	}
	return restore
}

// flip changes one picked bit of a picked value of a column and says what it did. It
// says nothing where the changed value would meet another row's key, which SQLite does
// not take; no disk error looks like that.
func flip(t testing.TB, pick func(low, high int) int, dir string, c column) string {
	db := raw(t, dir)
	defer db.Close()
	restore := dropTriggers(t, db)
	var n int
	if err := db.QueryRow(`SELECT count(*) FROM ` + c.table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	at := pick(0, n-1)
	var value []byte
	var number int64
	var into any = &value
	if c.kind == "int" {
		into = &number
	}
	order := map[string]string{"rowno": "subject, version"}[c.key]
	if order == "" {
		order = c.key
	}
	if err := db.QueryRow(fmt.Sprintf(`SELECT %s FROM %s ORDER BY %s LIMIT 1 OFFSET %d`, c.name, c.table, order, at)).Scan(into); err != nil {
		t.Fatal(err)
	}
	var changed any
	if c.kind == "int" {
		changed = number ^ 1<<pick(0, 62)
	} else {
		i := pick(0, len(value)-1)
		value[i] ^= 1 << pick(0, 7)
		changed = value
		if c.kind == "text" {
			changed = string(value)
		}
	}
	where := fmt.Sprintf(`%[1]s = (SELECT %[1]s FROM %[2]s ORDER BY %[1]s LIMIT 1 OFFSET %[3]d)`, c.key, c.table, at)
	if c.key == "rowno" {
		where = fmt.Sprintf(`(subject, version) = (SELECT subject, version FROM events ORDER BY subject, version LIMIT 1 OFFSET %d)`, at)
	}
	if _, err := db.Exec(fmt.Sprintf(`UPDATE %s SET %s = ? WHERE %s`, c.table, c.name, where), changed); err != nil {
		if strings.Contains(err.Error(), "UNIQUE") {
			return ""
		}
		t.Fatal(err)
	}
	for _, text := range restore {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("%s.%s of row %d, now %x", c.table, c.name, at, changed)
}

// TestVerifyFindsRemovedRows removes one row of every table, but for the blobs, which
// may go.
func TestVerifyFindsRemovedRows(t *testing.T) {
	pristine := t.TempDir()
	fill(t, pristine)
	for _, table := range []string{"meta", "batches", "identities", "subjects", "events"} {
		for _, end := range []string{"", "DESC"} {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(pristine)); err != nil {
				t.Fatal(err)
			}
			db := raw(t, dir)
			key := map[string]string{"meta": "key", "batches": "seq", "identities": "identity", "subjects": "subject", "events": "subject"}[table]
			var text string
			trigger := table != "meta"
			if trigger {
				if err := db.QueryRow(`SELECT sql FROM sqlite_schema WHERE name = ?`, table+"_no_delete").Scan(&text); err != nil {
					t.Fatal(err)
				}
				if _, err := db.Exec(`DROP TRIGGER ` + table + `_no_delete`); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := db.Exec(fmt.Sprintf(`DELETE FROM %s WHERE %s = (SELECT %[2]s FROM %[1]s ORDER BY %[2]s %[3]s LIMIT 1)`, table, key, end)); err != nil {
				t.Fatal(err)
			}
			if trigger {
				if _, err := db.Exec(text); err != nil {
					t.Fatal(err)
				}
			}
			_ = db.Close()
			if found := examine(t, dir); len(found) == 0 {
				t.Errorf("a row was removed from %s, and it was not found", table)
			}
		}
	}
}

// TestVerifyFindsFlippedBytesOfTheFile flips bytes of the file itself. A flip that
// nobody reports must leave every value that can be read back as it was: it hit unused
// space, or a field of SQLite's file header that nothing depends on.
func TestVerifyFindsFlippedBytesOfTheFile(t *testing.T) {
	pristine := t.TempDir()
	fill(t, pristine)
	content, err := os.ReadFile(filepath.Join(pristine, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	want := dump(t, pristine)
	silent := map[string]int{}
	tries := 0
	rapid.Check(t, func(r *rapid.T) {
		dir := t.TempDir()
		// Half of the tries aim at the dense first bytes of pages.
		at := rapid.IntRange(0, len(content)-1).Draw(r, "at")
		if rapid.Bool().Draw(r, "header") {
			at = at/4096*4096 + at%64
		}
		changed := slices.Clone(content)
		changed[at] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
		if err := os.WriteFile(filepath.Join(dir, "journal.db"), changed, 0o600); err != nil {
			t.Fatal(err)
		}
		tries++
		if len(examine(t, dir)) != 0 {
			return
		}
		region := "page"
		if at < 100 {
			region = fmt.Sprint("file header byte ", at)
		}
		silent[region]++
		if got := dump(t, dir); got != want {
			r.Fatalf("byte %d of the file was flipped, nobody reports it, and other values are read back", at)
		}
	})
	t.Logf("%d of %d flips changed nothing that is read back: %v", sum(silent), tries, silent)
}

func sum(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

// TestVerifyFindsWhatNoRowShows flips bits that no query of a table would meet: in the
// file's header, and in the index by which a blob is found.
func TestVerifyFindsWhatNoRowShows(t *testing.T) {
	pristine := t.TempDir()
	fill(t, pristine)
	content, err := os.ReadFile(filepath.Join(pristine, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{"write version": 18, "read version": 19, "reserved space": 20, "default cache": 50, "text encoding": 58, "reserved byte": 80}
	digest, _ := storetest.NewBlob(strings.Repeat("blob 3 ", 61)).Digest.Bytes()
	for from := 0; ; {
		n := bytes.Index(content[from:], digest[:])
		if n < 0 {
			break
		}
		at[fmt.Sprint("digest at ", from+n)] = from + n + 7
		from += n + 1
	}
	digests := 0
	for name, at := range at {
		dir := t.TempDir()
		changed := slices.Clone(content)
		changed[at] ^= 0x10
		if err := os.WriteFile(filepath.Join(dir, "journal.db"), changed, 0o600); err != nil {
			t.Fatal(err)
		}
		found := len(examine(t, dir)) != 0
		switch {
		case !strings.HasPrefix(name, "digest"):
			if !found {
				t.Errorf("%s, byte %d, was not found", name, at)
			}
		case found:
			digests++
		}
	}
	// It may stand in unused space too, where a page was split.
	if digests != 2 {
		t.Errorf("%d flips of a blob's digest were found, want that in its row and that in the index", digests)
	}
}

// TestDamageHalts follows damage from Verify, or from the check at opening, to the halt
// that outlives the process.
func TestDamageHalts(t *testing.T) {
	for name, test := range map[string]struct {
		row    string
		verify bool // needed to find it
	}{
		"in the middle": {row: "5", verify: true},
		"at the end":    {row: "40"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir)
			change := func(from, to string) {
				t.Helper()
				db := raw(t, dir)
				defer db.Close()
				restore := dropTriggers(t, db)
				if _, err := db.Exec(`UPDATE batches SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB) WHERE seq = `+test.row, from, to); err != nil {
					t.Fatal(err)
				}
				for _, text := range restore {
					if _, err := db.Exec(text); err != nil {
						t.Fatal(err)
					}
				}
			}
			change(`"index":0`, `"index":7`)
			s := open(t, dir, true)
			if test.verify {
				if err := s.Health(); err != nil {
					t.Fatalf("Health before Verify: %v", err)
				}
				count := 0
				if _, err := s.Verify(t.Context(), func(journal.Damage) { count++ }); err != nil || count == 0 {
					t.Fatalf("Verify: %d damages, %v", count, err)
				}
			}
			for range 2 {
				if err := s.Health(); !reason.Is(err, reason.JournalHalted) {
					t.Fatalf("Health: %v", err)
				}
				if _, err := s.Append(t.Context(), storetest.NewBatch("x", s.Epoch(), "machine/new", 0, 1)); !reason.Is(err, reason.JournalHalted) {
					t.Fatalf("Append: %v", err)
				}
				if v, err := s.Version(t.Context(), "machine/subject-0"); err != nil || v == 0 {
					t.Fatalf("a halted journal is not read: %d, %v", v, err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				// Making the damage good does not clear the halt: a person has to look.
				change(`"index":7`, `"index":0`)
				s = open(t, dir, true)
			}
			if r, err := sqlite.Open(t.Context(), dir, sqlite.Options{}); err != nil || !reason.Is(r.Health(), reason.JournalHalted) {
				t.Errorf("opened for reading: %v", err)
			} else if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAppendOnly holds the triggers, which guard against this program's own mistakes.
func TestAppendOnly(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	db := raw(t, dir)
	for _, statement := range []string{
		`UPDATE batches SET identity = 'x'`, `DELETE FROM batches`, `UPDATE identities SET seq = 1`, `DELETE FROM identities`,
		`UPDATE events SET seq = 1`, `DELETE FROM events`, `UPDATE subjects SET version = version - 1`, `UPDATE subjects SET subject = 'x/y', version = 99, seq = 99`,
		`DELETE FROM subjects`, `UPDATE blobs SET bytes = x'00'`,
	} {
		if _, err := db.Exec(statement); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if _, err := db.Exec(`DELETE FROM blobs`); err != nil {
		t.Errorf("blobs cannot be collected: %v", err)
	}
	_ = db.Close()
	s := open(t, dir, false)
	extent, err := s.Verify(t.Context(), func(d journal.Damage) { t.Errorf("collecting blobs is damage: %+v", d) })
	if err != nil || extent.Collected != 40 || extent.Blobs != 0 {
		t.Errorf("extent %+v, %v", extent, err)
	}
}
