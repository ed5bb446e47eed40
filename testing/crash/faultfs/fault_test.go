package faultfs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/testing/crash/faultfs"
)

// failure is how one call, or all from one on, fail.
type failure struct {
	errno unix.Errno
	// short writes half of what should be written, and fails only the next write.
	short bool
	// lasting says that every later call fails too.
	lasting bool
}

func (f failure) String() string {
	return fmt.Sprintf("%v, short %t, lasting %t", f.errno, f.short, f.lasting)
}

func failures() []failure {
	var all []failure
	for _, lasting := range []bool{false, true} {
		all = append(all, failure{unix.EIO, false, lasting}, failure{unix.ENOSPC, false, lasting}, failure{unix.ENOSPC, true, lasting}, failure{unix.EIO, true, lasting})
	}
	return all
}

// TestFailingDisk has calls that change a file fail. Whatever fails: what was acknowledged is
// there, also when the power is lost later; a store whose commit failed says stop to
// everything that it is asked; and the next opening verifies.
func TestFailingDisk(t *testing.T) {
	var clean trace
	runChild(t, t.TempDir(), &clean)
	calls := 0
	for _, op := range clean.ops {
		if op.Kind != faultfs.Say {
			calls++
		}
	}
	t.Logf("%d calls", calls)
	if *seeds > fewSeeds {
		for n := range calls {
			for _, f := range failures() {
				failAt(t, n, f, n%2 == 0, uint64(n))
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		failAt(t, rapid.IntRange(0, calls-1).Draw(t, "call"), rapid.SampledFrom(failures()).Draw(t, "failure"),
			rapid.Bool().Draw(t, "quits"), rapid.Uint64().Draw(t, "seed"))
	})
}

// TestNothingRestsOnAFailedSync has one sync fail, and nothing else. Where it was the log's,
// the process ends without another word: the kernel then shows the next one bytes that are on
// no disk and that no sync will bring there. Nothing that is recorded later may rest on them,
// nor on a name that a folder never got.
func TestNothingRestsOnAFailedSync(t *testing.T) {
	var clean trace
	runChild(t, t.TempDir(), &clean)
	call, logs, others := -1, 0, 0
	for _, op := range clean.ops {
		if op.Kind == faultfs.Say {
			continue
		}
		if call++; op.Kind != faultfs.Sync {
			continue
		}
		ofLog := strings.HasSuffix(op.Path, "-wal")
		if !ofLog {
			others++
		} else if logs++; logs%4 != 1 && *seeds == fewSeeds {
			continue // They are all alike.
		}
		for seed := range uint64(3) {
			failAt(t, call, failure{errno: unix.EIO}, ofLog, seed*7)
		}
		if t.Failed() {
			t.Fatalf("with the failed sync of %s", op.Path)
		}
	}
	if logs < 10 || others < 5 {
		t.Errorf("only %d syncs of the log and %d others", logs, others)
	}
}

// failAt runs the child with its n-th call failing, and once more over the same folder on a
// disk that is sound again. quits says that the first ends without closing anything.
func failAt(t fail, n int, f failure, quits bool, seed uint64) {
	t.Helper()
	base, err := os.MkdirTemp("", "writ-fail-")
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer os.RemoveAll(base)
	at, shortened := 0, ""
	tr := &trace{}
	tr.decide = func(op faultfs.Op) faultfs.Fault {
		at++
		switch {
		case shortened == op.Path && op.Kind == faultfs.Write:
			if !f.lasting {
				shortened = ""
			}
			return faultfs.Fault{Errno: f.errno}
		case at-1 < n, at-1 > n && !f.lasting:
			return faultfs.Fault{}
		case f.short && op.Kind == faultfs.Write && len(op.Data) > 1:
			shortened = op.Path
			return faultfs.Fault{Bytes: len(op.Data) / 2}
		}
		return faultfs.Fault{Errno: f.errno}
	}
	if quits {
		runChild(t, base, tr, quitsVariable+"=1")
	} else {
		runChild(t, base, tr)
	}
	first := len(tr.ops)
	tr.decide = nil
	runChild(t, base, tr)
	when := fmt.Sprintf("call %d of %d fails: %v, quits %t", n, first, f, quits)
	said := words(tr.ops)
	for _, line := range said {
		if line[0] == "probe" && (len(line) < 3 || line[2] != "journal.halted") {
			t.Errorf("%s: after its failure the store answers %v", when, line[1:])
		}
	}
	// What a later life was told may rest on what the failing one left: the power is lost
	// after some of the things that were said since the failure, and at the end.
	for i, op := range tr.ops {
		if i >= n && op.Kind == faultfs.Say && i%23 == int(seed%23) {
			cutPower(t, tr.ops[:i+1], faultfs.LoseEverything, seed)
		}
	}
	cutPower(t, tr.ops, faultfs.LoseSome, seed)
	holds(t, filepath.Join(base, "state"), said, when)
}
