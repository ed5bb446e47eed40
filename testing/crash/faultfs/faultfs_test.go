// Package faultfs_test cuts the power of the real journal store at every call that changes
// a file, and has every such call fail.
//
// The ordinary run draws a few of them. The full run is
//
//	go test ./testing/crash/faultfs -timeout 3h -crash.seeds=100
package faultfs_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/journal/storetest"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/crash/faultfs"
)

// childVariable makes the test binary behave as the process whose power is cut: its value
// is the folder of the state.
const childVariable = "WRIT_FAULTFS_CHILD"

// quitsVariable makes the child end as soon as a commit has failed, without closing anything.
const quitsVariable = "WRIT_FAULTFS_QUITS"

// fewSeeds is what the ordinary run takes.
const fewSeeds = 3

var seeds = flag.Int("crash.seeds", fewSeeds, "how much is drawn")

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		if err := faultfs.Trap(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		child(dir)
		os.Exit(0)
	}
	flag.Parse()
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(*seeds * 30), "rapid.shrinktime": "0s", "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// lives is how often the child opens the journal; perLife how much it appends each time.
const lives, perLife = 3, 6

// batch is the batch that the child appends as its i-th; its content depends on i alone.
func batch(i int, epoch uint64) journal.Batch {
	name := strconv.Itoa(i)
	b := storetest.NewBatch(name, epoch, lifecycle.Of("machine", name), 0, 1+i%7)
	if i%3 == 1 {
		b.Blobs = []journal.Blob{storetest.NewBlob(strings.Repeat(name+" ", 1+i%20*500))}
	}
	return b
}

// child opens the journal, appends and closes it, several times, and says of each step what
// came of it. What failed in one life it repeats in the next.
func child(dir string) {
	ctx := context.Background()
	var again []int
	for life := range lives {
		var todo []int
		todo, again = again, nil
		for i := range perLife {
			todo = append(todo, life*perLife+i)
		}
		s, err := sqlite.Open(ctx, dir, sqlite.Options{Write: true, Activity: "test"})
		if err != nil {
			fmt.Println("refused", reason.CodeOf(err))
			again = todo
			continue
		}
		fmt.Println("open", s.Epoch())
		for n, i := range todo {
			if !store(ctx, s, i) {
				probe(ctx, s)
				if os.Getenv(quitsVariable) != "" {
					return
				}
				again = todo[n:]
				break
			}
		}
		if len(again) == 0 && life == 1 {
			again = together(ctx, s)
		}
		if life == lives-1 {
			return // A life need not end in good order.
		}
		if err := s.Close(); err != nil {
			fmt.Println("close", reason.CodeOf(err))
		}
	}
}

// together appends from several goroutines, so that they share commits, and returns what
// was not stored.
func together(ctx context.Context, s *sqlite.Store) (failed []int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 4 {
				if n := 1000 + g*10 + i; !store(ctx, s, n) {
					mu.Lock()
					failed = append(failed, n)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed
}

func store(ctx context.Context, s *sqlite.Store, i int) bool {
	results, err := s.Append(ctx, batch(i, s.Epoch()))
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		fmt.Println("failed", i, reason.CodeOf(err))
		return false
	}
	// One write, so that it is said whole or not at all.
	fmt.Println("stored", i, results[0].Sequence, results[0].Chain)
	return true
}

// probe asks a store that has failed for everything that it could be asked for, and says
// what it answered.
func probe(ctx context.Context, s *sqlite.Store) {
	b := batch(0, s.Epoch())
	for name, ask := range map[string]func() error{
		"append":   func() error { _, err := s.Append(ctx, batch(5000, s.Epoch())); return err },
		"page":     func() error { _, err := s.Page(ctx, 0, 10); return err },
		"events":   func() error { _, err := s.Events(ctx, b.Events[0].Subject); return err },
		"version":  func() error { _, err := s.Version(ctx, b.Events[0].Subject); return err },
		"subjects": func() error { _, err := s.Subjects(ctx, "", 10); return err },
		"lookup":   func() error { _, err := s.Lookup(ctx, b.Identity); return err },
		"blob":     func() error { _, err := s.Blob(ctx, storetest.NewBlob("x").Digest); return err },
		"verify":   func() error { _, err := s.Verify(ctx, func(journal.Damage) {}); return err },
		"health":   s.Health,
	} {
		fmt.Println("probe", name, reason.CodeOf(ask()))
	}
}

// trace is everything that a child did and said, in order.
type trace struct {
	ops []faultfs.Op
	// decide, if not nil, decides which call fails.
	decide func(op faultfs.Op) faultfs.Fault
}

func (t *trace) Done(op faultfs.Op) { t.ops = append(t.ops, op) }

func (t *trace) Decide(op faultfs.Op) faultfs.Fault {
	if t.decide == nil {
		return faultfs.Fault{}
	}
	return t.decide(op)
}

// fail is what both *testing.T and *rapid.T are for a failure.
type fail interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// runChild runs the child over the state folder in base.
func runChild(t fail, base string, tr *trace, env ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childVariable+"="+filepath.Join(base, "state")), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := faultfs.Run(cmd, base, tr); err != nil || !cmd.ProcessState.Success() {
		t.Fatalf("the child: %v, %v\n%s", err, cmd.ProcessState, errs.String())
	}
}

// words returns what was said, by line.
func words(ops []faultfs.Op) [][]string {
	var said strings.Builder
	for _, op := range ops {
		if op.Kind == faultfs.Say {
			said.Write(op.Data)
		}
	}
	var lines [][]string
	for line := range strings.Lines(said.String()) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}
