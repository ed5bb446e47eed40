package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/journal/storetest"
	"github.com/writ-runtime/writ/go/reason"
)

func TestOpenRefusesWhatIsNoJournal(t *testing.T) {
	statement := func(statements ...string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			fill(t, dir)
			db := raw(t, dir)
			for _, s := range statements {
				if _, err := db.Exec(s); err != nil {
					t.Fatal(err)
				}
			}
			_ = db.Close()
		}
	}
	content := func(content string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "journal.db"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
		code    reason.Code
		says    string
	}{
		{"text", content(strings.Repeat("hello ", 1000)), reason.JournalForeignFile, ""},
		{"another program's database", func(t *testing.T, dir string) {
			db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(`CREATE TABLE mine (x)`); err != nil {
				t.Fatal(err)
			}
			_ = db.Close()
		}, reason.JournalForeignFile, "another program"},
		{"another application's id", statement(`PRAGMA application_id = 7`), reason.JournalForeignFile, "another program"},
		{"newer", statement(`PRAGMA user_version = 2`), reason.JournalNewerVersion, "use that release"},
		{"newer with other tables", statement(`PRAGMA user_version = 9`, `CREATE TABLE extra (x)`), reason.JournalNewerVersion, "use that release"},
		{"version nobody made", statement(`PRAGMA user_version = -1`), reason.JournalCorrupt, ""},
		{"table added", statement(`CREATE TABLE extra (x)`), reason.JournalCorrupt, "tables"},
		{"table lost", statement(`DROP TABLE blobs`), reason.JournalCorrupt, "tables"},
		{"trigger lost", statement(`DROP TRIGGER events_no_delete`), reason.JournalCorrupt, "tables"},
		{"folder", func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "journal.db"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, reason.JournalForeignFile, "no regular file"},
		{"truncated", func(t *testing.T, dir string) {
			fill(t, dir)
			if err := os.Truncate(filepath.Join(dir, "journal.db"), 8192); err != nil {
				t.Fatal(err)
			}
		}, reason.JournalCorrupt, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			test.prepare(t, dir)
			for _, write := range []bool{false, true} {
				s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Write: write})
				if err == nil {
					_ = s.Close()
				}
				if !reason.Is(err, test.code) || !strings.Contains(fmt.Sprint(err), test.says) {
					t.Errorf("write %v: %v, want %s with %q", write, err, test.code, test.says)
				}
			}
		})
	}
}

func TestOpenWithoutJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if _, err := sqlite.Open(t.Context(), dir, sqlite.Options{}); !reason.Is(err, reason.JournalMissing) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("reading made the folder")
	}
	s := open(t, dir, true)
	if s.Epoch() != 1 {
		t.Errorf("first epoch %d", s.Epoch())
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "journal.db"): 0o600, filepath.Join(dir, "writer.lock"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// An empty file is what a crash while making the journal leaves at worst.
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "journal.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), empty, sqlite.Options{}); !reason.Is(err, reason.JournalMissing) {
		t.Errorf("empty file: %v", err)
	}
	open(t, empty, true)
}

func TestOpenPathsWithOddCharacters(t *testing.T) {
	for _, name := range []string{"a b", "a?b", "a#b", "a%20b", "ä", "a&mode=memory", "a'b"} {
		dir := filepath.Join(t.TempDir(), name)
		fill(t, dir)
		if found := examine(t, dir); len(found) != 0 {
			t.Errorf("%s: %v", name, found)
		}
		if _, err := os.Stat(filepath.Join(dir, "journal.db")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFullDisk fills a small file system: the store stops, and after reopening with
// space what it acknowledged is there and what it did not know can be repeated.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s := open(t, dir, true)
	var stored uint64
	var refused journal.Batch
	var err error
	for i := uint64(0); i < 1000; i++ {
		refused = storetest.NewBatch(fmt.Sprint(i), s.Epoch(), "machine/a", i, 1)
		refused.Blobs = []journal.Blob{storetest.NewBlob(strings.Repeat(fmt.Sprint(i, " "), 4000))}
		if _, err = s.Append(t.Context(), refused); err != nil {
			break
		}
		stored++
	}
	if !reason.Is(err, reason.JournalFull) {
		t.Fatalf("after %d batches: %v", stored, err)
	}
	if _, err := s.Append(t.Context(), refused); !reason.Is(err, reason.JournalHalted) {
		t.Errorf("append after failing: %v", err)
	}
	if _, err := s.Version(t.Context(), "machine/a"); !reason.Is(err, reason.JournalHalted) {
		t.Errorf("a store that failed reads back: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Logf("Close: %v", err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, true)
	if _, err := s.Verify(t.Context(), func(d journal.Damage) { t.Errorf("damage: %+v", d) }); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Version(t.Context(), "machine/a"); err != nil || v < stored || v > stored+1 {
		t.Errorf("version %d, %v, acknowledged were %d", v, err, stored)
	}
	refused.Epoch = s.Epoch()
	if results, err := s.Append(t.Context(), refused); err != nil || results[0].Err != nil {
		t.Errorf("repeating: %v, %+v", err, results)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), dir, sqlite.Options{Write: true}); !reason.Is(err, reason.JournalReadOnly) {
		t.Errorf("writing on a read-only file system: %v", err)
	}
	if found := examine(t, dir); len(found) != 0 {
		t.Errorf("reading on a read-only file system: %v", found)
	}
}

// TestFrozenJournalThaws opens a journal that nobody can have open, and sees a writer
// come.
func TestFrozenJournalThaws(t *testing.T) {
	dir, view := t.TempDir(), t.TempDir()
	fill(t, dir)
	if err := errors.Join(unix.Mount(dir, view, "", unix.MS_BIND, ""), unix.Mount("", view, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")); err != nil {
		t.Skipf("mounting a read-only view: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(view, unix.MNT_DETACH) })
	frozen := open(t, view, false)
	if _, err := frozen.Page(t.Context(), 0, 1); err != nil {
		t.Fatalf("reading: %v", err)
	}
	s := open(t, dir, true)
	if _, err := s.Append(t.Context(), storetest.NewBatch("new", s.Epoch(), "machine/new", 0, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := frozen.Page(t.Context(), 0, 1); !reason.Is(err, reason.JournalReadOnly) {
		t.Errorf("reading what has changed: %v", err)
	}
}
