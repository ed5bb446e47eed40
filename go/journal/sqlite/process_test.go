package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/journal/storetest"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/built"
)

// childVariable makes the test binary behave as another process: its value says what
// to do, the arguments say where.
const childVariable = "WRIT_JOURNAL_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childVariable); role != "" {
		os.Exit(child(role, os.Args[len(os.Args)-1]))
	}
	os.Exit(m.Run())
}

// child opens the journal and says "open EPOCH" or the code of the refusal. It then
// appends without end, or waits for its standard input to end.
func child(role, dir string) int {
	ctx := context.Background()
	if step, ok := strings.CutPrefix(role, "recover "); ok {
		return recoverUntil(ctx, step, dir)
	}
	s, err := sqlite.Open(ctx, dir, sqlite.Options{Write: role != "read", Activity: "child " + role})
	if err != nil {
		fmt.Println(reason.CodeOf(err), err)
		return 3
	}
	fmt.Println("open", s.Epoch())
	if role == "append" {
		for i := uint64(0); ; i++ {
			results, err := s.Append(ctx, storetest.NewBatch(fmt.Sprintf("%d-%d", s.Epoch(), i), s.Epoch(), lifecycle.Of("machine", fmt.Sprint(s.Epoch())), i, 1))
			if err != nil || results[0].Err != nil {
				fmt.Println("failed", err, results)
				return 4
			}
			fmt.Println("stored", results[0].Sequence, results[0].Chain)
		}
	}
	if role == "read" {
		extent, err := s.Verify(ctx, func(d journal.Damage) { fmt.Println("damage", d) })
		fmt.Println("verified", extent.Batches, err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Close(); err != nil {
		fmt.Println("close", err)
		return 5
	}
	return 0
}

// process is a running child.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func start(t testing.TB, role, dir string, change ...func(*exec.Cmd)) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), childVariable+"="+role)
	cmd.Stderr = os.Stderr
	for _, c := range change {
		c(cmd)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &process{cmd: cmd, stdin: in, lines: bufio.NewScanner(out)}
}

func (p *process) line(t testing.TB) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("the child said nothing: %v", p.lines.Err())
	}
	return p.lines.Text()
}

func TestTwoProcessesWantToWrite(t *testing.T) {
	dir := t.TempDir()
	// Both start on a folder without a journal, so that they race for making it too.
	first, second := start(t, "hold", dir), start(t, "hold", dir)
	a, b := first.line(t), second.line(t)
	winner, loser := first, b
	if strings.HasPrefix(b, "open") {
		winner, loser = second, a
	}
	if !strings.HasPrefix(a+b, "open 1") && !strings.HasSuffix(a+b, "open 1") {
		t.Fatalf("nobody opened: %q, %q", a, b)
	}
	if !strings.HasPrefix(loser, string(reason.JournalLocked)) {
		t.Fatalf("the loser says %q", loser)
	}
	_, err := sqlite.Open(t.Context(), dir, sqlite.Options{Write: true})
	if !reason.Is(err, reason.JournalLocked) || !strings.Contains(err.Error(), strconv.Itoa(winner.cmd.Process.Pid)) ||
		!strings.Contains(err.Error(), "child hold") || !strings.Contains(err.Error(), "reading still works") {
		t.Errorf("the refusal does not help: %v", err)
	}
	reader := open(t, dir, false)
	if _, err := reader.Page(t.Context(), 0, 1); err != nil {
		t.Errorf("reading beside another process: %v", err)
	}
	// The lock ends with the process, however it ends.
	if err := winner.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = winner.cmd.Wait()
	s := open(t, dir, true)
	if s.Epoch() != 2 {
		t.Errorf("epoch %d, want 2", s.Epoch())
	}
}

func TestLockedByAFileThatSaysNothing(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "writer.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"", "{", `{"pid":0}`, strings.Repeat("x", 10000), `{"pid":7,"activity":"a\u001b[2Jb"}`} {
		if err := os.WriteFile(f.Name(), []byte(says), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := sqlite.Open(t.Context(), dir, sqlite.Options{Write: true})
		if !reason.Is(err, reason.JournalLocked) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v", says, err)
		}
	}
}

// TestKilledWriter kills a process while it appends: what it said was stored is there,
// in order and unbroken, and the next writer goes on.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	stored := map[string]string{}
	for round := range 5 {
		p := start(t, "append", dir)
		if got, want := p.line(t), fmt.Sprint("open ", round+1); got != want {
			t.Fatalf("round %d: %q, want %q", round, got, want)
		}
		for range 20 * (round + 1) {
			fields := strings.Fields(p.line(t))
			if len(fields) != 3 || fields[0] != "stored" {
				t.Fatalf("round %d: %q", round, fields)
			}
			stored[fields[1]] = fields[2]
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for p.lines.Scan() { // what it said before it died counts
			if fields := strings.Fields(p.lines.Text()); len(fields) == 3 {
				stored[fields[1]] = fields[2]
			}
		}
		_ = p.cmd.Wait()
	}
	s := open(t, dir, true)
	if _, err := s.Verify(t.Context(), func(d journal.Damage) { t.Errorf("damage: %+v", d) }); err != nil {
		t.Fatal(err)
	}
	entries, err := s.Page(t.Context(), 0, 10000)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < len(stored) {
		t.Fatalf("%d batches are stored, %d were acknowledged", len(entries), len(stored))
	}
	for _, e := range entries {
		seq := fmt.Sprint(e.Sequence)
		if chain, acknowledged := stored[seq]; acknowledged && chain != string(e.Chain) {
			t.Errorf("batch %s is stored as %s, acknowledged was %s", seq, e.Chain, chain)
		}
		delete(stored, seq)
	}
	if len(stored) != 0 {
		t.Errorf("lost: %v", stored)
	}
}

// TestReadOnlyFolder opens a journal as somebody who may not write beside it.
func TestReadOnlyFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("becoming somebody else needs root")
	}
	base := t.TempDir()
	for dir := base; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(base, "child")
	if err := built.Copy(os.Args[0], binary); err != nil {
		t.Fatal(err)
	}
	somebody := func(cmd *exec.Cmd) {
		cmd.Path, cmd.Dir = binary, base
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	readable := func(dir string) {
		t.Helper()
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if e.IsDir() {
				return os.Chmod(path, 0o755)
			}
			return os.Chmod(path, 0o644)
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	t.Run("closed journal", func(t *testing.T) {
		dir := filepath.Join(base, "closed")
		fill(t, dir)
		readable(dir)
		p := start(t, "read", dir, somebody)
		if got := p.line(t) + " " + p.line(t); got != "open 0 verified 40 <nil>" {
			t.Errorf("reading: %q", got)
		}
		if got := start(t, "hold", dir, somebody).line(t); !strings.HasPrefix(got, string(reason.JournalReadOnly)) {
			t.Errorf("writing: %q", got)
		}
	})
	t.Run("journal in use", func(t *testing.T) {
		dir := filepath.Join(base, "live")
		fill(t, dir)
		s := open(t, dir, true)
		if _, err := s.Append(t.Context(), storetest.NewBatch("live", s.Epoch(), "machine/live", 0, 1)); err != nil {
			t.Fatal(err)
		}
		readable(dir)
		p := start(t, "read", dir, somebody)
		if got := p.line(t) + " " + p.line(t); got != "open 0 verified 41 <nil>" {
			t.Errorf("reading beside a writer: %q", got)
		}
	})
	t.Run("left open by a crash", func(t *testing.T) {
		dir := filepath.Join(base, "crashed")
		w := start(t, "append", dir)
		_, _ = w.line(t), w.line(t)
		if err := w.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = w.cmd.Wait()
		if err := os.Remove(filepath.Join(dir, "journal.db-shm")); err != nil {
			t.Fatal(err)
		}
		readable(dir)
		got := start(t, "read", dir, somebody).line(t)
		if !strings.HasPrefix(got, string(reason.JournalReadOnly)) || !strings.Contains(got, "left open by a crash") {
			t.Errorf("reading: %q", got)
		}
	})
	t.Run("unreadable journal", func(t *testing.T) {
		dir := filepath.Join(base, "secret")
		fill(t, dir)
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if got := start(t, "read", dir, somebody).line(t); !strings.HasPrefix(got, "journal.") {
			t.Errorf("reading: %q", got)
		}
	})
}

// TestTakenOver removes the lock of a writer under it. Once another one has begun, the
// first stores nothing more, and says why; it does not take for damage, or for a collision,
// what it has not seen.
func TestTakenOver(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir, true).(*sqlite.Store)
	batch := storetest.NewBatch("one", first.Epoch(), "machine/a", 0, 1)
	if _, err := first.Append(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if err := first.Held(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "writer.lock")); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir, true)
	if err := first.Held(t.Context()); !reason.Is(err, reason.JournalTakenOver) {
		t.Errorf("whether it is held: %v", err)
	}
	// The same identity with other content, and the next event of what the first knows.
	for i, b := range []journal.Batch{
		storetest.NewBatch("two", second.Epoch(), "machine/a", 1, 1), storetest.NewBatch("three", second.Epoch(), "machine/b", 0, 1),
	} {
		if results, err := second.Append(t.Context(), b); err != nil || results[0].Err != nil {
			t.Fatalf("batch %d of the second: %v, %+v", i, err, results)
		}
	}
	for _, b := range []journal.Batch{
		storetest.NewBatch("two", first.Epoch(), "machine/a", 1, 2), batch, storetest.NewBatch("four", first.Epoch(), "machine/a", 1, 1),
	} {
		if results, err := first.Append(t.Context(), b); !reason.Is(err, reason.JournalTakenOver) {
			t.Errorf("batch %s of the first: %v, %+v", b.Identity, err, results)
		}
	}
	if err := first.Health(); !reason.Is(err, reason.JournalTakenOver) {
		t.Errorf("health: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if results, err := second.Append(t.Context(), storetest.NewBatch("five", second.Epoch(), "machine/a", 2, 1)); err != nil || results[0].Err != nil {
		t.Errorf("the second goes on: %v, %+v", err, results)
	}
	if _, err := second.Verify(t.Context(), func(d journal.Damage) { t.Errorf("damage: %+v", d) }); err != nil {
		t.Error(err)
	}
}
