package e2e_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// flips is how many bytes TestVerifyFindsAnyFlippedByte flips, each in a state folder of
// its own.
const flips = 36

// place is somewhere a byte can be flipped: a column of the journal, or a file.
type place struct{ table, column string }

func places() []place {
	return []place{
		{"batches", "body"}, {"batches", "identity"}, {"batches", "prev"}, {"batches", "chain"},
		{"identities", "identity"}, {"identities", "seq"}, {"identities", "digest"},
		{"subjects", "subject"}, {"subjects", "version"}, {"subjects", "seq"},
		{"events", "subject"}, {"events", "version"}, {"events", "seq"}, {"events", "ordinal"},
		{"blobs", "digest"}, {"blobs", "bytes"}, {"meta", "value"}, {"meta", "sum"},
		{"cas", ""},
	}
}

// TestVerifyFindsAnyFlippedByte flips one bit at random in what is stored (events with
// the receipts in them, indexes, blobs, files), with the journal's own guards against
// changes taken down and put up again, and demands that verify finds it.
func TestVerifyFindsAnyFlippedByte(t *testing.T) {
	s := ready(t)
	state := work(t, s)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, seed))
	all := places()
	for i := range flips {
		// Each place is visited, and bodies and blobs, where nearly all bytes are, more often.
		p := all[i%len(all)]
		if i >= len(all) {
			p = []place{{"batches", "body"}, {"blobs", "bytes"}, {"cas", ""}}[i%3]
		}
		dir := filepath.Join(t.TempDir(), "state")
		copyTree(t, state, dir)
		what, err := flip(r, dir, p)
		if err != nil {
			t.Fatalf("%s.%s: %v", p.table, p.column, err)
		}
		status, out, errs := s.output(t, "verify", "--state", dir)
		if status != 7 || !strings.Contains(out+errs, "damaged") && !strings.Contains(errs, "journal.") {
			t.Errorf("flipped %s: exit status %d\n%s%s", what, status, out, errs)
		}
	}
}

// TestVerifyNamesTheDamage reads what verify says of one known byte, as text and as JSON,
// and sees that nothing is appended to a journal that is known to be damaged.
func TestVerifyNamesTheDamage(t *testing.T) {
	s := ready(t)
	dir := filepath.Join(t.TempDir(), "state")
	copyTree(t, work(t, s), dir)
	if _, err := change(dir, "batches", "body", "seq = 2", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }); err != nil {
		t.Fatal(err)
	}
	status, out, _ := s.output(t, "verify", "--state", dir)
	if status != 7 || !strings.Contains(out, "damaged  turn 2, batches") {
		t.Errorf("exit status %d\n%s", status, out)
	}
	status, out, _ = s.output(t, "verify", "--json", "--state", dir)
	var v struct {
		Damage []struct{ Where, What string }
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || status != 7 || len(v.Damage) == 0 || v.Damage[0].What == "" {
		t.Errorf("exit status %d, %v\n%s", status, err, out)
	}
}

// TestVerifyFindsWhatIsGone removes what receipts name: a file, and a blob.
func TestVerifyFindsWhatIsGone(t *testing.T) {
	s := ready(t)
	state := work(t, s)
	for name, remove := range map[string]func(dir string) error{
		"file": func(dir string) error { return os.Remove(casFiles(t, dir)[0]) },
		"report": func(dir string) error {
			return statement(dir, `DELETE FROM blobs WHERE CAST(bytes AS TEXT) LIKE '# Corpus report%'`)
		},
		"schema": func(dir string) error {
			return statement(dir, `DELETE FROM blobs WHERE CAST(bytes AS TEXT) LIKE '%"title": "Report of textstat%'`)
		},
		"batch": func(dir string) error {
			return unguarded(dir, func(db *sql.DB) error {
				_, err := db.Exec(`DELETE FROM batches WHERE seq = 3`)
				return err
			})
		},
	} {
		dir := filepath.Join(t.TempDir(), "state")
		copyTree(t, state, dir)
		if err := remove(dir); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if status, out, errs := s.output(t, "verify", "--state", dir); status != 7 {
			t.Errorf("%s: exit status %d\n%s%s", name, status, out, errs)
		}
	}
}

// work makes a state folder with attempts of several kinds in it, and an output that is
// too large for the journal.
func work(t *testing.T, s *suite) string {
	t.Helper()
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	copyTree(t, s.cache, filepath.Join(state, "cache"))
	copyTree(t, filepath.Join(s.examples, "json-transform"), filepath.Join(dir, "large"))
	var books []string
	for i := range 1500 {
		books = append(books, fmt.Sprintf(`{"title": "Book %d", "author": "Somebody", "year": 1900, "pages": 100, "shelf": "coast", "isbn": %d}`, i, i))
	}
	write(t, filepath.Join(dir, "large", "data", "books-a.json"), "["+strings.Join(books, ",\n")+"]")
	for _, run := range []struct {
		order  string
		status int
	}{
		{filepath.Join(s.examples, "corpus-report", "work-order.yaml"), 0},
		{filepath.Join(s.examples, "denied", "work-order.yaml"), 4},
		{filepath.Join(dir, "large", "work-order.yaml"), 0},
	} {
		if status, out, errs := s.output(t, "run", "--state", state, run.order); status != run.status {
			t.Fatalf("exit status %d\n%s%s", status, out, errs)
		}
	}
	if err := os.RemoveAll(filepath.Join(state, "cache")); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := s.output(t, "verify", "--state", state); status != 0 {
		t.Fatalf("exit status %d\n%s%s", status, out, errs)
	}
	if len(casFiles(t, state)) == 0 {
		t.Fatal("no output was large enough to be a file")
	}
	return state
}

func casFiles(t *testing.T, state string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(state, "cas", "sha256"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// flip flips one bit somewhere in a place, and says where.
func flip(r *rand.Rand, dir string, p place) (string, error) {
	bit := func(b []byte) []byte {
		// The lowest bits keep text text.
		b[r.IntN(len(b))] ^= 1 << r.IntN(3)
		return b
	}
	if p.table != "cas" {
		return change(dir, p.table, p.column, "", bit, r)
	}
	files, err := filepath.Glob(filepath.Join(dir, "cas", "sha256", "*", "*"))
	if err != nil || len(files) == 0 {
		return "", errors.Join(err, errors.New("no file"))
	}
	file := files[r.IntN(len(files))]
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if err := os.Chmod(file, 0o600); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, bit(raw), 0o600)
}

// change changes one value of the journal: of the row that where names, or of any that
// is not empty.
func change(dir, table, column, where string, with func([]byte) []byte, random ...*rand.Rand) (what string, err error) {
	err = unguarded(dir, func(db *sql.DB) error {
		if where == "" {
			where = fmt.Sprintf("length(%s) > 0", column)
		}
		// One row of those: the tables are small, so that all can be read.
		rows, err := db.Query(fmt.Sprintf(`SELECT %s, typeof(%s) FROM %s WHERE %s ORDER BY 1`, column, column, table, where))
		if err != nil {
			return err
		}
		type cell struct {
			raw  []byte
			kind string
		}
		var cells []cell
		for rows.Next() {
			var c cell
			if err := rows.Scan(&c.raw, &c.kind); err != nil {
				return err
			}
			cells = append(cells, c)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		if len(cells) == 0 {
			return errors.New("no row")
		}
		c := cells[0]
		if len(random) > 0 {
			c = cells[random[0].IntN(len(cells))]
		}
		old, now := any(c.raw), any(nil)
		switch c.kind {
		case "integer":
			old, now = string(c.raw), "1"+string(c.raw)
		case "text":
			old, now = string(c.raw), string(with(append([]byte(nil), c.raw...)))
		default:
			now = with(append([]byte(nil), c.raw...))
		}
		// A column that other rows share is changed in one of them.
		key := "rowid"
		switch table {
		case "meta":
			key = "key"
		case "identities":
			key = "identity"
		case "subjects":
			key = "subject"
		case "events":
			key = "subject || '/' || version"
		}
		done, err := db.Exec(fmt.Sprintf(`UPDATE %s SET %s = ? WHERE %s = (SELECT %s FROM %s WHERE %s = ? LIMIT 1)`, table, column, key, key, table, column), now, old)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n != 1 {
			return fmt.Errorf("%d rows were changed: %w", n, err)
		}
		what = fmt.Sprintf("%s.%s: %.60q became %.60q", table, column, old, now)
		return nil
	})
	return what, err
}

// unguarded takes the journal's triggers down for a while.
func unguarded(dir string, do func(*sql.DB) error) (err error) {
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Query(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`)
	if err != nil {
		return err
	}
	guards := map[string]string{}
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return err
		}
		guards[name] = text
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for name := range guards {
		if _, err := db.Exec("DROP TRIGGER " + name); err != nil {
			return err
		}
	}
	if err := do(db); err != nil {
		return err
	}
	for _, text := range guards {
		if _, err := db.Exec(text); err != nil {
			return err
		}
	}
	return nil
}

func statement(dir, text string) error {
	return unguarded(dir, func(db *sql.DB) error {
		done, err := db.Exec(text)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n != 1 {
			return fmt.Errorf("%d rows were changed: %w", n, err)
		}
		return nil
	})
}
