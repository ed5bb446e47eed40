package crash_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/evidence"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/retention"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/schemas"
)

// history is what a journal holds.
type history struct {
	entries []journal.Entry
	// identities are the turns that it holds; intended are the operations.
	identities map[operation.Key]bool
	intended   map[operation.Key]operation.Intent
}

// observe looks at what a life left, at once, on a copy: the next life finds the state as
// the last one left it. Every turn that was acknowledged is there, every turn that was there
// before is the same byte for byte, and nothing was done that was not intended before.
func (w *world) observe(t rapid.TB, l life) {
	t.Helper()
	dir := filepath.Join(w.dir, fmt.Sprintf("seen-%d", len(w.lives)))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatalf("%v", err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"journal.db", "journal.db-wal"} {
		if err := copyFile(filepath.Join(w.state, name), filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatalf("%v", err)
		}
	}
	j, err := sqlite.Open(context.Background(), dir, sqlite.Options{})
	if reason.Is(err, reason.JournalMissing) {
		if len(w.known.entries) > 0 || acknowledged(l) > 0 {
			t.Fatalf("%v: the journal is gone: %v", l, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("%v: %v", l, err)
	}
	defer j.Close()
	if _, err := j.Verify(context.Background(), func(d journal.Damage) { t.Errorf("%v: damage: %+v", l, d) }); err != nil {
		t.Fatalf("%v: verify: %v", l, err)
	}
	now := readHistory(t, j)
	for i, e := range w.known.entries {
		if i >= len(now.entries) || e.Chain != now.entries[i].Chain || !bytes.Equal(e.Body, now.entries[i].Body) {
			t.Fatalf("%v: turn %d (%s) is not what it was before", l, e.Sequence, e.Identity)
		}
	}
	w.known = now
	for _, p := range l.passed {
		where, _, _ := strings.Cut(p.name, "/")
		switch where {
		case "commit.after":
			if !now.identities[operation.Key(p.detail)] {
				t.Errorf("%v: %s was acknowledged and is not there (%s)", l, p.detail, p.name)
			}
		case "run.before":
			if _, ok := now.intended[operation.Key(p.detail)]; !ok {
				t.Errorf("%v: %s was performed and never intended", l, p.detail)
			}
		}
	}
	said(t, l, j)
}

func acknowledged(l life) (n int) {
	for _, p := range l.passed {
		if strings.HasPrefix(p.name, "commit.after/") {
			n++
		}
	}
	return n
}

// What writ says to a person about what is durable.
var (
	saidStep   = regexp.MustCompile(`(?m)^writ: ([a-z_]+): (applied|not_applied|unknown) in `)
	saidBegun  = regexp.MustCompile(`^writ: attempt \d+ at wo_\S+: (att_\S+)$`)
	saidClosed = regexp.MustCompile(`(?m)^writ: an earlier start left (att_\S+) open; it ended ([a-z]+)\b`)
)

// said holds what a life told a person against the journal.
func said(t rapid.TB, l life, j journal.Reader) {
	t.Helper()
	k := openKernel(t)
	var id workorder.AttemptID
	for _, p := range l.passed {
		if id == "" && strings.HasPrefix(p.name, "commit.before/attempt=reserved,") {
			id = workorder.AttemptID(operation.Key(p.detail).Scope())
		}
	}
	for _, line := range strings.Split(l.errs, "\n") {
		if begun := saidBegun.FindStringSubmatch(line); begun != nil {
			id = workorder.AttemptID(begun[1])
		}
		step := saidStep.FindStringSubmatch(line)
		if step == nil {
			continue
		}
		s, err := ledger.Load(context.Background(), j, k, id)
		if err != nil {
			t.Fatalf("%v: it spoke of a step of %q: %v", l, id, err)
		}
		found := false
		for _, o := range s.Operations() {
			found = found || string(o.Intent.Kind) == step[1] && string(o.Record.Outcome.Knowledge) == step[2] && len(o.Record.Receipt) > 0
		}
		if !found {
			t.Errorf("%v: it said %q, the journal does not", l, step[0])
		}
	}
	for _, one := range saidClosed.FindAllStringSubmatch(l.errs, -1) {
		s, err := ledger.Load(context.Background(), j, k, workorder.AttemptID(one[1]))
		if err != nil || s.Result == nil || string(s.Result.Conclusion) != one[2] {
			t.Errorf("%v: it said %q, the journal has %+v, %v", l, one[0], s.Result, err)
		}
	}
}

func openKernel(t rapid.TB) kernel.Kernel {
	t.Helper()
	k, err := kernel.Open(schemas.FS)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return k
}

func readHistory(t rapid.TB, j journal.Reader) history {
	t.Helper()
	h := history{identities: map[operation.Key]bool{}, intended: map[operation.Key]operation.Intent{}}
	for {
		page, err := j.Page(context.Background(), uint64(len(h.entries)), 1000)
		if err != nil {
			t.Fatalf("%v", err)
		}
		h.entries = append(h.entries, page...)
		if len(page) == 0 {
			break
		}
	}
	for _, e := range h.entries {
		h.identities[e.Identity] = true
		for _, ev := range e.Events {
			if ev.Family != "operation.intended" {
				continue
			}
			var in operation.Intent
			if err := canonical.Decode(ev.Body, &in); err != nil {
				t.Fatalf("%s: %v", ev.Subject, err)
			}
			h.intended[in.Key] = in
		}
	}
	return h
}

// settled checks a world after a life that nobody disturbed: the whole state verifies, and
// every attempt is accounted for.
func (w *world) settled(t rapid.TB) {
	t.Helper()
	r, err := host.Read(context.Background(), w.state)
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer r.Close()
	damaged := func(d journal.Damage) { t.Errorf("damage: %+v", d) }
	if _, err := r.Journal.Verify(context.Background(), damaged); err != nil {
		t.Fatalf("verify: %v", err)
	}
	if _, err := r.Artifacts.Verify(context.Background(), damaged); err != nil {
		t.Fatalf("verify: %v", err)
	}
	index, err := r.Index(context.Background())
	if err != nil {
		t.Fatalf("%v", err)
	}
	w.nothingUnknown(t, index)
	var ids []workorder.AttemptID
	for _, a := range index.Attempts {
		ids = append(ids, a.ID)
		w.closed(t, r, a)
	}
	evidence.Attempts(context.Background(), r.Journal, r.Artifacts, r.Kernel, ids, damaged)
	w.accounted(t, r, ids)
	w.once(t, r.Kernel.Transitions())
	w.performed(t)
	w.nothingLeft(t)
}

// closed demands that an attempt has come to a result with nothing open, or waits for a
// person with a reason; and that its state is the same each time it is read.
func (w *world) closed(t rapid.TB, r *host.Reading, a projection.Attempt) {
	t.Helper()
	s, err := ledger.Load(context.Background(), r.Journal, r.Kernel, a.ID)
	if err != nil {
		t.Fatalf("%v", err)
	}
	same, err := ledger.Load(context.Background(), r.Journal, r.Kernel, a.ID)
	if err != nil || !reflect.DeepEqual(s, same) {
		t.Errorf("%s is read twice, and differs: %v", a.ID, err)
	}
	for _, at := range s.Sendings() {
		if at.State != "sent" {
			t.Errorf("%s: the proposal %s is %s", a.ID, at.Purpose, at.State)
		}
	}
	w.left(t, s)
	w.kept(t, s)
	if a.Result == nil || !a.Terminal(r.Kernel.Transitions()) {
		plan, err := r.Kernel.Next(s)
		t.Errorf("%s is left open: attempt %s, execution %s, environment %s, %d open operations; next %+v, %v",
			a.ID, a.State, a.Execution, a.Environment, a.Open, plan, err)
	}
}

// left demands that of an attempt exactly that stands outside which the journal says was
// sent.
func (w *world) left(t rapid.TB, s kernel.State) {
	t.Helper()
	var want []string
	for _, at := range s.Sendings() {
		want = append(want, string(s.Attempt)+"."+at.Purpose)
	}
	var got []string
	folders, err := filepath.Glob(filepath.Join(w.dir, "reviews", string(s.Attempt)+".*"))
	if err != nil {
		t.Fatalf("%v", err)
	}
	branches, err := filepath.Glob(filepath.Join(w.dir, "project", ".git", "refs", "heads", "writ", string(s.Attempt), "*"))
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, f := range folders {
		got = append(got, filepath.Base(f))
	}
	for _, b := range branches {
		got = append(got, string(s.Attempt)+"."+filepath.Base(b))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("outside stands %v, sent was %v", got, want)
	}
}

// kept demands that of an attempt exactly that is kept which its receipt says, whole.
func (w *world) kept(t rapid.TB, s kernel.State) {
	t.Helper()
	store := retention.Open(w.state, func() lifecycle.Observation { return lifecycle.Observation{} })
	found, there, err := store.Find(context.Background(), s.Resource)
	switch {
	case s.Resource == "":
	case err != nil:
		t.Errorf("%s: %v", s.Attempt, err)
	case there != (s.Retained != nil):
		t.Errorf("%s: kept is %+v, found %v", s.Attempt, s.Retained, there)
	case there && found != s.Retained.Retention:
		t.Errorf("%s: kept is %+v, the journal has %+v", s.Attempt, found, s.Retained.Retention)
	}
}

// nothingUnknown demands that nothing is kept which no attempt of the index has, and nothing
// unfinished.
func (w *world) nothingUnknown(t rapid.TB, index *projection.Index) {
	t.Helper()
	var want, got []string
	for _, a := range index.Attempts {
		if a.Retention != nil {
			want = append(want, string(a.ID))
		}
	}
	kept, err := os.ReadDir(filepath.Join(w.state, retention.Folder))
	if err != nil && !os.IsNotExist(err) {
		t.Fatalf("%v", err)
	}
	for _, k := range kept {
		id, _, _ := strings.Cut(k.Name(), ".")
		got = append(got, id)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("kept is %v, the index has %v", got, want)
	}
}

// accounted demands that the account has reserved exactly what attempts hold of which nobody
// knows what they used, and has spent exactly what the others used.
func (w *world) accounted(t rapid.TB, r *host.Reading, ids []workorder.AttemptID) {
	t.Helper()
	var reserved, spent workorder.Amounts
	for _, id := range ids {
		s, err := ledger.Load(context.Background(), r.Journal, r.Kernel, id)
		if err != nil {
			t.Fatalf("%v", err)
		}
		switch at := s.Of(kernel.BudgetMachine).State; {
		case s.Budget == nil:
		case at == "incomplete":
			reserved = reserved.Plus(s.Budget.Reserved)
		case s.Budget.Returned == nil:
			t.Errorf("%s is closed, and its budget is %s", id, at)
		default:
			spent = spent.Plus(s.Budget.Used)
		}
	}
	a, err := ledger.LoadAccount(context.Background(), r.Journal, r.Kernel, account)
	if err != nil || a.Reserved() != reserved || a.Spent != spent {
		t.Errorf("the account has reserved %+v and spent %+v, the attempts %+v and %+v: %v", a.Reserved(), a.Spent, reserved, spent, err)
	}
}

// once demands one receipt at most for each operation, and that no attempt leaves a state
// that it ended in.
func (w *world) once(t rapid.TB, registry *lifecycle.Registry) {
	t.Helper()
	settled := map[lifecycle.Subject]lifecycle.Family{}
	standing := map[lifecycle.Subject]lifecycle.State{}
	for _, e := range w.known.entries {
		for _, ev := range e.Events {
			machine, what := ev.Family.Split()
			if before := standing[ev.Subject]; machine != kernel.OperationMachine && registry.Latest(machine).Terminal(before) {
				t.Errorf("turn %d: %s leaves %s, in which it had ended, by %s", e.Sequence, ev.Subject, before, ev.Family)
			}
			step, err := registry.Apply(standing[ev.Subject], ev, nil)
			if err != nil {
				t.Fatalf("turn %d: %v", e.Sequence, err)
			}
			standing[ev.Subject] = step.To
			if machine != kernel.OperationMachine {
				continue
			}
			first, was := settled[ev.Subject]
			if was && !strings.HasPrefix(what, "late_") {
				t.Errorf("turn %d: %s gets a second receipt, by %s after %s", e.Sequence, ev.Subject, ev.Family, first)
			}
			if strings.HasSuffix(what, "applied") {
				settled[ev.Subject] = ev.Family
			}
		}
	}
}

// performed counts what the processes themselves noted, beside the journal: each operation
// had its effect at most once, in all lives together, and only what was intended had one.
func (w *world) performed(t rapid.TB) {
	t.Helper()
	times := map[string]int{}
	for _, l := range w.lives {
		for _, p := range l.passed {
			if !strings.HasPrefix(p.name, "run.before/") {
				continue
			}
			if times[p.detail]++; times[p.detail] > 1 {
				t.Errorf("%v: %s is performed once more", l, p.detail)
			}
		}
	}
}

// nothingLeft demands that no process lives, and that no folder of an environment or an
// adapter is left.
func (w *world) nothingLeft(t rapid.TB) {
	t.Helper()
	if err := orphansGone(); err != nil {
		t.Errorf("%v", err)
	}
	left, err := os.ReadDir(filepath.Join(w.state, "workspaces"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in workspaces: %v, %v", left, err)
	}
	sockets, err := filepath.Glob(filepath.Join(w.temp, "writ-a.*", "lock"))
	if err != nil || len(sockets) > 0 {
		t.Errorf("left of adapters: %v, %v", sockets, err)
	}
}
