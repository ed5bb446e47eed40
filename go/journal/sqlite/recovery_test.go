package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/journal/storetest"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/built"
)

// recovering is the batch that records a recovery in these tests.
func recovering(sqlite.Kept) (journal.Batch, error) {
	return storetest.NewBatch("recovered", 0, lifecycle.Of("machine", "recovery-1"), 0, 1), nil
}

// recoverUntil recovers the journal in dir and kills this process at a step, or before
// Commit for the step "begun".
func recoverUntil(ctx context.Context, step, dir string) int {
	r, err := sqlite.Recover(ctx, dir, "go test", func(journal.Damage) {})
	if err != nil {
		fmt.Println(err)
		return 3
	}
	die := func(at string) {
		if at == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	r.At(die)
	die("begun")
	_, err = r.Commit(ctx, "before-recovery-1", recovering)
	fmt.Println("done", errors.Join(err, r.Close()))
	return 0
}

// recoverNow recovers the journal in dir, and returns what came of it.
func recoverNow(t testing.TB, dir string) (*sqlite.Recovery, sqlite.Kept, journal.Result) {
	t.Helper()
	r, err := sqlite.Recover(t.Context(), dir, "go test", func(journal.Damage) {})
	if err != nil {
		t.Fatalf("Recover: %v", err)
	}
	defer r.Close()
	var kept sqlite.Kept
	result, err := r.Commit(t.Context(), "before-recovery-1", func(k sqlite.Kept) (journal.Batch, error) { kept = k; return recovering(k) })
	if err != nil {
		t.Fatalf("Commit: %v", err)
	}
	return r, kept, result
}

// bodies returns the bodies of every batch of a journal.
func bodies(t testing.TB, dir string) (all []string) {
	t.Helper()
	s := open(t, dir, false)
	defer s.Close()
	page, err := s.Page(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page {
		all = append(all, string(e.Body))
	}
	return all
}

// sound demands a journal in which nothing is wrong and to which can be appended, that
// begins with the given bodies and goes on with a recovery.
func sound(t testing.TB, dir string, before []string) {
	t.Helper()
	if found := examine(t, dir); len(found) > 0 {
		t.Fatalf("the recovered journal: %v", found)
	}
	now := bodies(t, dir)
	if len(now) != len(before)+1 || !slices.Equal(now[:len(before)], before) || !strings.Contains(now[len(before)], "machine/recovery-1") {
		t.Fatalf("%d intact batches became %d", len(before), len(now))
	}
	s := open(t, dir, true)
	defer s.Close()
	name := fmt.Sprint("later-", s.Epoch())
	if results, err := s.Append(t.Context(), storetest.NewBatch(name, s.Epoch(), lifecycle.Of("machine", name), 0, 1)); err != nil || results[0].Err != nil {
		t.Fatalf("Append: %v, %+v", err, results)
	}
}

// TestRecoverFromEveryFlippedBit flips one bit of one value of each column. Nothing but a
// body, or a sequence, costs a batch; a chain does where nothing after it proves the body.
func TestRecoverFromEveryFlippedBit(t *testing.T) {
	pristine := t.TempDir()
	fill(t, pristine)
	all := bodies(t, pristine)
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range columns() {
		t.Run(c.table+"."+c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := built.Copy(filepath.Join(pristine, "journal.db"), filepath.Join(dir, "journal.db")); err != nil {
				t.Fatal(err)
			}
			row := -1
			what := flip(t, func(low, high int) int {
				n := low + random.IntN(high-low+1)
				if row < 0 {
					row = n
				}
				return n
			}, dir, c)
			if what == "" || c.table == "batches" && row == 0 && (c.name == "body" || c.name == "seq") {
				t.Skip("nothing is left to recover from")
			}
			damaged := dump(t, dir)
			r, kept, result := recoverNow(t, dir)
			intact := int(r.Extent.Intact)
			switch {
			case c.table == "batches" && (c.name == "body" || c.name == "seq"):
				if intact != row {
					t.Errorf("%s: %d batches are intact", what, intact)
				}
			case c.table == "batches" && c.name == "chain" && row == len(all)-1:
				if intact != row {
					t.Errorf("%s: %d batches are intact", what, intact)
				}
			case intact != len(all):
				t.Errorf("%s: %d batches are intact, and each body is", what, intact)
			}
			if result.Sequence != uint64(intact)+1 || r.LeftOut != r.Extent.Batches-r.Extent.Intact {
				t.Errorf("%s: %+v, %d left out", what, result, r.LeftOut)
			}
			sound(t, dir, all[:intact])
			// The damaged file is there, with every row as it was.
			aside := t.TempDir()
			if err := built.Copy(filepath.Join(dir, kept.Name), filepath.Join(aside, "journal.db")); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(filepath.Join(aside, "journal.db"))
			if err != nil || canonical.Sum(raw) != kept.Digest || int64(len(raw)) != kept.Bytes {
				t.Errorf("the damaged file is not the one that was recorded: %v", err)
			}
			if dump(t, aside) != damaged {
				t.Error("rows of the damaged file were changed")
			}
		})
	}
}

// TestRecoveryIsKilledAnywhere kills a recovery at every step. What stands there is the
// journal of before, or the recovered one; and the next recovery, or none, completes it.
func TestRecoveryIsKilledAnywhere(t *testing.T) {
	pristine := t.TempDir()
	fill(t, pristine)
	all := bodies(t, pristine)
	c := column{"batches", "seq", "body", "blob"}
	picks := []int{30, 100, 3}
	flip(t, func(low, high int) int { n := picks[0]; picks = picks[1:]; return min(n, high) }, pristine, c)
	halting := open(t, pristine, true)
	if _, err := halting.Verify(t.Context(), func(journal.Damage) {}); err != nil || halting.Health() == nil {
		t.Fatal(err, halting.Health())
	}
	_ = halting.Close()
	for _, step := range []string{"begun", "drafted", "settled", "recorded", "proved", "synced", "linked", "renamed", "durable"} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(pristine)); err != nil {
				t.Fatal(err)
			}
			p := start(t, "recover "+step, dir)
			if p.lines.Scan() {
				t.Fatalf("it was not killed: %s", p.lines.Text())
			}
			_ = p.cmd.Wait()
			if step == "renamed" || step == "durable" {
				sound(t, dir, all[:30])
				return
			}
			for range 2 {
				s := open(t, dir, true)
				if err := s.Health(); !reason.Is(err, reason.JournalHalted) {
					t.Fatalf("Health: %v", err)
				}
				_ = s.Close()
			}
			_, kept, _ := recoverNow(t, dir)
			sound(t, dir, all[:30])
			if files, _ := filepath.Glob(filepath.Join(dir, "journal.*")); len(files) != 2 || kept.Name != "journal.before-recovery-1.db" {
				t.Errorf("%v, kept as %s", files, kept.Name)
			}
		})
	}
}

// TestRecoverRefuses asks for recoveries that cannot be, and sees that nothing changed.
func TestRecoverRefuses(t *testing.T) {
	recover := func(dir string) error {
		r, err := sqlite.Recover(t.Context(), dir, "go test", func(journal.Damage) {})
		if err == nil {
			err = r.Close()
		}
		return err
	}
	empty := t.TempDir()
	if err := recover(empty); !reason.Is(err, reason.JournalMissing) {
		t.Errorf("nothing there: %v", err)
	}
	if files, _ := os.ReadDir(empty); len(files) != 0 {
		t.Errorf("it made %v", files)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "journal.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := recover(foreign); !reason.Is(err, reason.JournalForeignFile) {
		t.Errorf("no journal: %v", err)
	}
	dir := t.TempDir()
	fill(t, dir)
	writer := open(t, dir, true)
	if err := recover(dir); !reason.Is(err, reason.JournalLocked) {
		t.Errorf("beside a writer: %v", err)
	}
	_ = writer.Close()
	before := dump(t, dir)
	// Whoever only reads has the file open, and must not be left with half of two journals.
	reader := open(t, dir, false)
	if _, err := reader.Page(t.Context(), 0, 1); err != nil {
		t.Fatal(err)
	}
	r, err := sqlite.Recover(t.Context(), dir, "go test", func(journal.Damage) {})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Commit(t.Context(), "before-recovery-1", recovering); !reason.Is(err, reason.JournalLocked) {
		t.Errorf("beside a reader: %v", err)
	}
	_, _ = r.Close(), reader.Close()
	if err := recover(dir); err != nil {
		t.Error(err)
	}
	if dump(t, dir) != before {
		t.Error("a recovery that was refused changed the journal")
	}
	db := raw(t, dir)
	dropTriggers(t, db)
	if _, err := db.Exec(`UPDATE batches SET body = x'00' WHERE seq = 1`); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	if err := recover(dir); !reason.Is(err, reason.JournalUnrecoverable) {
		t.Errorf("no batch is intact: %v", err)
	}
}

// TestRecoverWithoutTables recovers a journal whose indexes and triggers are gone: bodies
// are enough.
func TestRecoverWithoutTables(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	all := bodies(t, dir)
	db := raw(t, dir)
	dropTriggers(t, db)
	for _, table := range []string{"identities", "events", "subjects", "meta"} {
		if _, err := db.Exec(`DROP TABLE ` + table); err != nil {
			t.Fatal(err)
		}
	}
	_ = db.Close()
	if _, err := sqlite.Open(t.Context(), dir, sqlite.Options{Write: true}); !reason.Is(err, reason.JournalCorrupt) {
		t.Fatalf("Open: %v", err)
	}
	recoverNow(t, dir)
	sound(t, dir, all)
}

// TestHaltByReading halts a journal through a store that only reads it, unless somebody
// writes, or another journal stands there by now.
func TestHaltByReading(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	found := journal.Damage{Where: "a file", What: "it is gone"}
	reader := open(t, dir, false)
	halt := func() error { return reader.(journal.Halter).Halt(t.Context(), found) }
	writer := open(t, dir, true)
	if err := halt(); !reason.Is(err, reason.JournalLocked) {
		t.Errorf("beside a writer: %v", err)
	}
	if err := writer.Health(); err != nil {
		t.Errorf("the writer: %v", err)
	}
	_ = writer.Close()
	if err := halt(); err != nil {
		t.Fatalf("Halt: %v", err)
	}
	for range 2 {
		s := open(t, dir, true)
		if err := s.Health(); !reason.Is(err, reason.JournalHalted) || !strings.Contains(err.Error(), "it is gone") {
			t.Errorf("Health: %v", err)
		}
		if _, err := s.Append(t.Context(), storetest.NewBatch("x", s.Epoch(), "machine/new", 0, 1)); !reason.Is(err, reason.JournalHalted) {
			t.Errorf("Append: %v", err)
		}
		_ = s.Close()
	}
	_ = reader.Close()
	recoverNow(t, dir)
	reader = open(t, dir, false)
	other := t.TempDir()
	fill(t, other)
	if err := os.Rename(filepath.Join(other, "journal.db"), filepath.Join(dir, "journal.db")); err != nil {
		t.Fatal(err)
	}
	if err := halt(); !reason.Is(err, reason.JournalReplaced) {
		t.Errorf("another journal: %v", err)
	}
}
