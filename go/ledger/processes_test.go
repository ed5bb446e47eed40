package ledger_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// prize is one thing of a state folder that many want and one may have.
type prize struct {
	name string
	// ready brings an attempt to where the prize may be had.
	ready func(l *life)
	// take has one racer ask for it. attempt and order are what the racer saw last. No two
	// racers ask for the same, so that nobody is answered by what another one did.
	take func(t *testing.T, one *ledger.Ledger, attempt, order kernel.State, racer string) (ledger.Opened, error)
	// subject and family name the event that having it is recorded as.
	subject lifecycle.Subject
	family  lifecycle.Family
	// before is how many such events there are when it may be had.
	before int
}

// prizes are what is raced for, a row each.
func prizes() []prize {
	return []prize{
		{
			name:    "activation",
			ready:   func(l *life) { l.submit() },
			subject: lifecycle.Of(kernel.AttemptMachine, string(fixture.Attempt)), family: "attempt.leased",
			take: func(t *testing.T, one *ledger.Ledger, attempt, _ kernel.State, racer string) (ledger.Opened, error) {
				bundle := fixture.Bundle(t, one.Kernel(), fixture.Reserved(t, one.Kernel()), func(b *attemptbundle.Bundle) {
					b.Policy.Decision = fixture.Digest("decision of " + racer)
				})
				commands, err := fixture.Turn(one.Kernel(), attempt, kernel.Activate{Bundle: bundle, Now: fixture.At(0)})
				if err != nil {
					return ledger.Opened{}, err
				}
				return one.Commit(t.Context(), ledger.Turn{Fence: attempt.Fence(), Commands: commands, Actor: "uid:0"})
			},
		},
		{
			name: "reservation",
			ready: func(l *life) {
				l.submit()
				l.turn(kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Lost, Code: reason.AttemptLost, Detail: "gone"}})
			},
			subject: lifecycle.Of(kernel.WorkOrderMachine, string(fixture.WorkOrder)), family: "work_order.reserved", before: 1,
			take: func(t *testing.T, one *ledger.Ledger, _, order kernel.State, racer string) (ledger.Opened, error) {
				r := fixture.Reserved(t, one.Kernel())
				r.ID, r.Attempt = r.ID+workorder.ReservationID(racer), r.Attempt+workorder.AttemptID(racer)
				r.Fence.Attempt, r.Ordinal = r.Attempt, 2
				return one.Reserve(t.Context(), order, r.Attempt, ledger.Turn{Commands: []kernel.Command{kernel.Reserve{Reservation: r}}, Actor: "uid:0"})
			},
		},
		{
			name: "budget",
			ready: func(l *life) {
				l.submit()
				l.ceiling(1)
			},
			subject: lifecycle.Of(kernel.AccountMachine, account), family: "account.drawn",
			take: func(t *testing.T, one *ledger.Ledger, _, _ kernel.State, racer string) (ledger.Opened, error) {
				return drawFor(t, one, racer)
			},
		},
	}
}

// had counts how often the prize was had, from the journal alone.
func (p prize) had(t *testing.T, j journal.Reader) int {
	t.Helper()
	events, err := j.Events(t.Context(), p.subject)
	if err != nil {
		t.Fatal(err)
	}
	n := -p.before
	for _, e := range events {
		if e.Family == p.family {
			n++
		}
	}
	return n
}

// The environment of a process that races: for which prize, and over which state folder.
const (
	prizeVariable  = "WRIT_LEDGER_TEST_PRIZE"
	folderVariable = "WRIT_LEDGER_TEST_FOLDER"
)

// says begins each line by which a racer answers.
const says = "racer: "

// processes is how many processes race.
const processes = 8

// Eight processes want to write one state folder, and each that may has 64 go for one prize.
// One holds the lock at a time and the others are told so, and can read. Each holder is
// killed, in turns while its race is on and when it is over; then one of the others has the
// folder, under a higher epoch. Whoever died when: the prize was had once, by one.
func TestOneOfManyProcessesWins(t *testing.T) {
	for _, p := range prizes() {
		for i, first := range []string{"the first ends its race", "the first is killed in it"} {
			t.Run(p.name+"/"+first, func(t *testing.T) { raceProcesses(t, p, uint64(i)) })
		}
	}
}

// raceProcesses lets the holder of every second round end its race, in those of the given
// parity, and kills the others in theirs.
func raceProcesses(t *testing.T, p prize, parity uint64) {
	l := newLife(t)
	p.ready(l)
	if err := l.store.Close(); err != nil {
		t.Fatal(err)
	}
	reading := read(t, l.dir)
	var racing []*racer
	for range processes {
		racing = append(racing, startRacer(t, p, l.dir))
	}
	for round := uint64(0); len(racing) > 0; round++ {
		holder := shoot(t, racing, round+2) // The first epoch was that of newLife.
		if round%2 == parity {
			if line := holder.line(t); line != "over" {
				t.Fatalf("round %d: the holder says %q", round, line)
			}
		}
		holder.kill()
		racing = slices.DeleteFunc(racing, func(r *racer) bool { return r == holder })
	}
	if n := reading(); n == 0 {
		t.Error("nobody could read beside them")
	}
	l.open()
	if want := uint64(processes + 2); l.store.Epoch() != want {
		t.Errorf("epoch %d, want %d", l.store.Epoch(), want)
	}
	if _, err := l.store.Verify(t.Context(), func(d journal.Damage) { t.Errorf("damage: %+v", d) }); err != nil {
		t.Fatal(err)
	}
	if n := p.had(t, l.store); n != 1 {
		t.Errorf("it was had %d times", n)
	}
	if _, err := l.ledger.State(t.Context(), fixture.Attempt); err != nil {
		t.Error(err)
	}
}

// shoot has every process that is left try to have the folder, and returns the one that does.
func shoot(t *testing.T, racing []*racer, epoch uint64) (holder *racer) {
	t.Helper()
	for _, r := range racing {
		if _, err := io.WriteString(r.stdin, "go\n"); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range racing {
		switch line := r.line(t); {
		case line == fmt.Sprintf("open %d", epoch) && holder == nil:
			holder = r
		case line != string(reason.JournalLocked):
			t.Fatalf("epoch %d: a process says %q", epoch, line)
		}
	}
	if holder == nil {
		t.Fatalf("nobody has the folder under epoch %d", epoch)
	}
	return holder
}

// read verifies the journal again and again, beside whoever writes it, until the returned
// function is called; that says how often it did.
func read(t *testing.T, dir string) (stop func() int) {
	var over atomic.Bool
	var done sync.WaitGroup
	times := 0
	done.Go(func() {
		var batches uint64
		for !over.Load() {
			store, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
			if err != nil {
				t.Errorf("a reader cannot open it: %v", err)
				return
			}
			extent, err := store.Verify(t.Context(), func(d journal.Damage) { t.Errorf("a reader finds damage: %+v", d) })
			if err != nil || extent.Batches < batches {
				t.Errorf("a reader finds %d batches after %d: %v", extent.Batches, batches, err)
			}
			batches = extent.Batches
			if err := store.Close(); err != nil {
				t.Error(err)
			}
			times++
		}
	})
	stop = func() int {
		over.Store(true)
		done.Wait()
		return times
	}
	t.Cleanup(func() { stop() })
	return stop
}

// racer is a process that races.
type racer struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func startRacer(t *testing.T, p prize, dir string) *racer {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestAsARacer$")
	for _, v := range os.Environ() {
		// What Bazel has a test write is this process's to write.
		if name, _, _ := strings.Cut(v, "="); name != "XML_OUTPUT_FILE" && !strings.HasPrefix(name, "TEST") && !strings.HasPrefix(name, "GO_TEST_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, prizeVariable+"="+p.name, folderVariable+"="+dir, "GO_TEST_WRAP=0")
	cmd.Stderr = os.Stderr
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
	r := &racer{cmd: cmd, stdin: in, lines: bufio.NewScanner(out)}
	t.Cleanup(r.kill)
	return r
}

// line returns the next answer of a racer. Whatever else its test binary prints is a failure.
func (r *racer) line(t *testing.T) string {
	t.Helper()
	var other []string
	for r.lines.Scan() {
		if line, ok := strings.CutPrefix(r.lines.Text(), says); ok {
			return line
		}
		other = append(other, r.lines.Text())
	}
	t.Fatalf("the process ended: %s", strings.Join(other, "\n"))
	return ""
}

func (r *racer) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// TestAsARacer is run by the processes that TestOneOfManyProcessesWins starts. It answers
// each line of its standard input with what became of it when it tried to have the folder.
func TestAsARacer(t *testing.T) {
	name, dir := os.Getenv(prizeVariable), os.Getenv(folderVariable)
	i := slices.IndexFunc(prizes(), func(p prize) bool { return p.name == name })
	if i < 0 {
		return
	}
	p := prizes()[i]
	for shots := bufio.NewScanner(os.Stdin); shots.Scan(); {
		store, err := sqlite.Open(t.Context(), dir, sqlite.Options{Write: true, Activity: "racing for the " + name})
		if err != nil {
			readable(t, p, dir)
			stopIfFailed(t)
			fmt.Println(says + string(reason.CodeOf(err)))
			continue
		}
		fmt.Println(says+"open", store.Epoch())
		l := &life{t: t, dir: dir, store: store, ledger: ledger.New(store, fixture.Kernel(t), fixture.Clock{})}
		order, err := l.ledger.Order(t.Context(), fixture.WorkOrder)
		if err != nil {
			t.Fatal(err)
		}
		had := p.had(t, store)
		var n atomic.Int64
		won := race(t, l, func(one *ledger.Ledger, s kernel.State) (ledger.Opened, error) {
			return p.take(t, one, s, order, fmt.Sprintf("-%d-%d", store.Epoch(), n.Add(1)))
		})
		if len(won) != 1-had {
			t.Fatalf("%d had it, after it had been had %d times", len(won), had)
		}
		stopIfFailed(t)
		fmt.Println(says + "over")
	}
}

// stopIfFailed ends a process in which something has failed before it answers: what is still
// to come may be that it is killed.
func stopIfFailed(t *testing.T) {
	t.Helper()
	if t.Failed() {
		t.FailNow()
	}
}

// readable fails the test unless the journal can be read and is whole.
func readable(t *testing.T, p prize, dir string) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatalf("locked, and cannot be read either: %v", err)
	}
	defer store.Close()
	if _, err := store.Verify(t.Context(), func(d journal.Damage) { t.Errorf("damage: %+v", d) }); err != nil {
		t.Fatal(err)
	}
	if n := p.had(t, store); n > 1 {
		t.Errorf("it was had %d times", n)
	}
}
