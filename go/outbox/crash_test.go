package outbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/reason"
)

// effectors are what a crash is tried on, with whether what they make is there.
func effectors() map[operation.Kind]func(w *world) bool {
	return map[operation.Kind]func(w *world) bool{
		operation.Publish:      func(w *world) bool { return exists(filepath.Join(w.releases, w.proposal(operation.Publish).Name())) },
		operation.ReviewPacket: func(w *world) bool { return exists(filepath.Join(w.reviews, w.proposal(operation.Publish).Name())) },
		operation.Branch:       func(w *world) bool { return exists(filepath.Join(w.project, ".git", "refs", "heads", branchName)) },
	}
}

// small is a proposal of one file, in a folder: every step counts, and their number does not.
func small(w *world, kind operation.Kind) outbox.Proposal {
	p := w.proposal(kind)
	p.Files = p.Files[:1]
	return p
}

// settled fails the test unless asking finds the truth, sending again makes it whole, and
// nothing unfinished is left but what git itself removes.
func settled(t *testing.T, w *world, kind operation.Kind, there func(*world) bool, reported operation.Outcome) {
	t.Helper()
	p := small(w, kind)
	stood, marked := there(w), w.marked()
	switch {
	case reported.Knowledge == operation.Applied && !stood, reported.Knowledge == operation.NotApplied && stood:
		t.Fatalf("it was reported %s, and that it is there is %v", reported.Knowledge, stood)
	case stood && marked:
		t.Fatal("it is there, and marked as not sent")
	}
	switch out := w.ask(p); {
	case stood:
		want(t, "what is there", out, operation.Applied, "")
	case marked:
		want(t, "what is marked", out, operation.NotApplied, reason.OutboxAbsent)
	default:
		want(t, "what is neither there nor marked", out, operation.Unknown, reason.OutboxVanished)
	}
	want(t, "again", w.send(p), operation.Applied, "")
	if w.marked() {
		t.Fatal("what was sent is marked as not sent")
	}
	for _, dir := range []string{w.releases, w.reviews} {
		if left, _ := filepath.Glob(filepath.Join(dir, ".writ-*")); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(w.project, ".git", "refs", "heads", "writ", "*", "*.lock")); len(left) > 0 {
		t.Fatalf("left: %v", left)
	}
	if kind == operation.Branch {
		run(t, w.project, git(t), "fsck", "--strict", "--no-dangling")
		run(t, w.project, git(t), "update-ref", "-d", "refs/heads/"+branchName) // no lock is in the way
	}
	w.open(git(t))
	if left, _ := filepath.Glob(filepath.Join(w.dir, "outbox", "*")); len(left) > 0 {
		t.Fatalf("left: %v", left)
	}
}

// A life that ends before or after any step leaves nothing half made under the name, and
// the next one finds the truth. Whatever was begun by it can do nothing any more: not even
// clean up.
func TestEveryStepMayBeTheLast(t *testing.T) {
	dead := errors.New("dead")
	for kind, there := range effectors() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			for last := 0; ; last++ {
				w := newWorld(t, capability.Production)
				steps := 0
				begun, spent := false, false
				box := w.box.WithSteps(func(step string) error {
					if steps++; steps > last {
						return dead
					}
					begun, spent = begun || step == "after mark", spent || step == "before spend"
					return nil
				})
				out := w.perform(w.prepare(box, small(w, kind)))
				if begun && !spent && !w.marked() {
					t.Fatalf("the mark was gone after %d steps", last)
				}
				settled(t, w, kind, there, out)
				if steps <= last {
					if last < 20 {
						t.Fatalf("only %d steps", last)
					}
					return
				}
			}
		})
	}
}

// A step that fails, of a life that goes on, is reported as what it is, and cleaned up after.
func TestEveryStepMayFail(t *testing.T) {
	for kind, there := range effectors() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			for failing := 1; ; failing++ {
				w := newWorld(t, capability.Production)
				steps, name := 0, ""
				box := w.box.WithSteps(func(step string) error {
					if steps++; steps == failing {
						name = step
						return unix.EIO
					}
					return nil
				})
				out := w.perform(w.prepare(box, small(w, kind)))
				if steps < failing {
					want(t, "undisturbed", out, operation.Applied, "")
					return
				}
				if out.Knowledge == operation.NotApplied {
					for _, dir := range []string{w.releases, w.reviews} {
						if left := snapshot(t, dir, "."); len(left) > 0 && name != "before unlink" && name != "after unlink" && name != "before rmdir" {
							t.Fatalf("%q failed, and left %v", name, left)
						}
					}
				}
				settled(t, w, kind, there, out)
			}
		})
	}
}

// Whatever appeared may be taken away before anybody asks, by those for whom it is. Then nothing is sent
// again unless a person says that it never was there (O3, B13).
func TestWhatWasTakenAwayIsNotSentAgain(t *testing.T) {
	dead := errors.New("dead")
	for kind, there := range effectors() {
		appeared := "after rename"
		if kind == operation.Branch {
			appeared = "after link"
		}
		for name, instead := range map[string]func(at string){
			"nothing": func(string) {},
			"another": func(at string) { write(t, at, "something else") },
		} {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				w := newWorld(t, capability.Production)
				gone := false
				box := w.box.WithSteps(func(step string) error {
					if gone = gone || step == appeared; gone {
						return dead
					}
					return nil
				})
				p := small(w, kind)
				sending := w.prepare(box, p)
				want(t, "the life that ends", w.perform(sending), operation.Unknown, reason.OutboxIO)
				if !there(w) {
					t.Fatal("it is not there")
				}
				at := filepath.Join(w.project, ".git", "refs", "heads", branchName)
				switch kind {
				case operation.Publish:
					at = filepath.Join(w.releases, p.Name())
				case operation.ReviewPacket:
					at = filepath.Join(w.reviews, p.Name())
				}
				fatal(t, os.RemoveAll(at))
				instead(at)
				want(t, "asked", w.ask(p), operation.Unknown, reason.OutboxVanished)
				again := w.prepare(w.box, p)
				want(t, "under the same key", again.PerformAs(t.Context(), w.call(again.Intent()), again.Intent()), operation.Unknown, reason.OutboxVanished)
				if name == "nothing" && there(w) {
					t.Error("it was sent again")
				}
			})
		}
	}
}

// killed is the environment variable by which this test is started to be killed: the number
// of the step, the effector and the folder, joined by spaces.
const killed = "OUTBOX_TEST_KILLED"

// TestChild is what TestKilled starts. By itself it does nothing.
func TestChild(t *testing.T) {
	order := os.Getenv(killed)
	if order == "" {
		return
	}
	parts := strings.SplitN(order, " ", 3)
	last, err := strconv.Atoi(parts[0])
	fatal(t, err)
	w := newWorldAt(t, parts[2], capability.Production)
	steps := 0
	box := w.box.WithSteps(func(string) error {
		if steps++; steps > last {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	})
	want(t, "child", w.perform(w.prepare(box, small(w, operation.Kind(parts[1])))), operation.Applied, "")
}

// A process that is killed leaves nothing half made either, and holds nothing any more.
func TestKilled(t *testing.T) {
	self, err := os.Executable()
	fatal(t, err)
	for kind, there := range effectors() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			for last := 0; ; last += 7 {
				w := newWorld(t, capability.Production)
				cmd := exec.Command(self, "-test.run=^TestChild$")
				cmd.Env = append(os.Environ(), killed+"="+strconv.Itoa(last)+" "+string(kind)+" "+filepath.Dir(w.dir))
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				if err != nil && (!errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL) {
					t.Fatalf("%v\n%s", err, out)
				}
				reported := operation.Outcome{Knowledge: operation.Unknown}
				if err == nil {
					reported.Knowledge = operation.Applied
				}
				settled(t, w, kind, there, reported)
				if err == nil {
					return
				}
			}
		})
	}
}
