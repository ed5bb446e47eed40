package way_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/schemas"
	"github.com/writ-runtime/writ/testing/way"
)

// variant is a registry of effect classes that differs from the release's in one kind.
type variant struct {
	kind  operation.Kind
	class operation.EffectClass
}

// registries are those of this release with the variant in them.
func (v variant) registries(t *testing.T) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(schemas.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(schemas.FS, path)
		files[path] = &fstest.MapFile{Data: raw}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	classes := files["effect-classes.v1.json"]
	from := fmt.Appendf(nil, `"operation": %q, "effect_class": "reconcilable"`, v.kind)
	if !bytes.Contains(classes.Data, from) {
		t.Fatalf("%s is not reconcilable", v.kind)
	}
	classes.Data = bytes.Replace(classes.Data, from, fmt.Appendf(nil, `"operation": %q, "effect_class": %q`, v.kind, v.class), 1)
	return files
}

// open opens the host of a state folder under the variant.
func (v variant) open(t *testing.T, dist, state string, through func(journal.Store) journal.Store) *way.Way {
	t.Helper()
	w, err := way.OpenWith(t.Context(), host.Options{Dist: dist, State: state, Through: through, Registries: v.registries(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// When a host dies: its intent is durable and nothing was begun, or its effect took place and
// nobody has written down what came of it.
const (
	beforeEffect = "operation.intended"
	afterEffect  = "operation.applied"
)

// fatal kills its process when the intent of an operation of the kind was recorded, or when its answer is
// about to be.
type fatal struct {
	journal.Store
	kind operation.Kind
	when string
}

func (f fatal) Append(ctx context.Context, batches ...journal.Batch) ([]journal.Result, error) {
	die := false
	for _, b := range batches {
		for _, e := range b.Events {
			die = die || string(e.Family) == f.when && operation.Key(e.Subject.ID()).Kind() == f.kind
		}
	}
	if die && f.when == beforeEffect {
		if _, err := f.Store.Append(ctx, batches...); err != nil {
			return nil, err
		}
	}
	if die {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return f.Store.Append(ctx, batches...)
}

// hostVariable has this process be a host that dies: when, the kind, its class, the release set,
// the state folder and the work order's file.
const hostVariable = "WRIT_WAY_TEST_HOST"

// TestAsAHostThatDies is run by the processes that the tests below start.
func TestAsAHostThatDies(t *testing.T) {
	parts := strings.Split(os.Getenv(hostVariable), "|")
	if len(parts) != 6 {
		return
	}
	v := variant{operation.Kind(parts[1]), operation.EffectClass(parts[2])}
	w := v.open(t, parts[3], parts[4], func(s journal.Store) journal.Store { return fatal{s, v.kind, parts[0]} })
	order, err := os.ReadFile(parts[5])
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.Carry(t.Context(), order, t.TempDir()); err != nil {
		t.Error(err)
	}
}

// afterlife is a state folder in which a host was killed between an effect and its outcome,
// and the host of the next life over it.
type afterlife struct {
	*way.Way
	t *testing.T
	// reviews is the folder that packets leave for.
	reviews string
	kind    operation.Kind
	attempt workorder.AttemptID
	key     operation.Key
}

// killed carries an order out in another process, which dies around an effect of the variant's
// kind. meanwhile, if not nil, is what happens before the next life.
func (v variant) killed(t *testing.T, when, rest string, meanwhile func(reviews string)) *afterlife {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, reviews, order := filepath.Join(root, "state"), filepath.Join(root, "reviews"), filepath.Join(root, "order.yaml")
	for _, dir := range []string{state, reviews} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		order:                               string(way.EmptyOrder()) + rest,
		filepath.Join(state, "outbox.yaml"): "kind: writ.outbox_destinations.v1\nreview: [{name: reviews, path: " + reviews + "}]\n",
	} {
		if strings.Contains(rest, "proposals:") {
			text = strings.NewReplacer("mode: observe", "mode: proposal", "role: analyst", "role: operator").Replace(text)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAsAHostThatDies$")
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); name != "XML_OUTPUT_FILE" && !strings.HasPrefix(name, "TEST") && !strings.HasPrefix(name, "GO_TEST_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	made := dist(t)
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%s|%s|%s|%s|%s|%s", hostVariable, when, v.kind, v.class, made, state, order), "GO_TEST_WRAP=0")
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("it was not killed: %v\n%s", err, out)
	}
	if meanwhile != nil {
		meanwhile(reviews)
	}
	a := &afterlife{Way: v.open(t, made, state, nil), t: t, reviews: reviews, kind: v.kind}
	if _, err := a.Reconcile(t.Context(), host.Watch{}); err != nil {
		t.Fatal(err)
	}
	index := a.command("/writ status").Index
	if len(index.Attempts) != 1 {
		t.Fatalf("there are %d attempts", len(index.Attempts))
	}
	a.attempt = index.Attempts[0].ID
	for _, o := range a.state().Operations() {
		if o.Intent.Kind == v.kind && a.key == "" {
			a.key = o.Intent.Key
		}
	}
	return a
}

// state is where the first attempt stands.
func (a *afterlife) state() kernel.State {
	a.t.Helper()
	s, err := a.Ledger.State(a.t.Context(), a.attempt)
	if err != nil {
		a.t.Fatal(err)
	}
	a.Ledger.Forget(a.attempt)
	return s
}

func (a *afterlife) operation() kernel.Operation {
	o, _ := a.state().Operation(a.key)
	return o
}

func (a *afterlife) command(text string) host.CommandAnswer {
	a.t.Helper()
	id, err := host.NewIDs().Mint(ingress.DeliveryPrefix)
	if err != nil {
		a.t.Fatal(err)
	}
	answer, err := a.Command(a.t.Context(), ingress.Person(os.Getuid()), ingress.Delivery{ID: string(id), Channel: ingress.LocalChannel, Verb: ingress.Command, Content: []byte(text)})
	if err != nil || answer.Failure != nil {
		a.t.Fatalf("%s: %+v, %v", text, answer.Failure, err)
	}
	return answer
}

// dispose has a person say what became of the effect.
func (a *afterlife) dispose(disposition string) {
	a.t.Helper()
	a.command(fmt.Sprintf("/writ resolve-ambiguous-effect %s --disposition %s --operation-key %s --evidence \"looked\" --expected-version %d --reason \"looked\"",
		a.attempt, disposition, a.key, a.state().Of(kernel.WorkOrderMachine).Version))
}

// lives has the host do whatever it does by itself: reconcile, send and attempt.
func (a *afterlife) lives() {
	a.t.Helper()
	accepted, err := a.Accept(ingress.Tick, nil)
	if err == nil {
		_, err = a.Reconcile(a.t.Context(), host.Watch{})
	}
	if err == nil {
		err = a.Drain(a.t.Context(), accepted, host.Watch{})
	}
	if err == nil {
		_, err = a.Tick(a.t.Context(), accepted, host.Watch{})
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// doubted fails the test unless the effect is unknown, was asked about by nobody, and stays
// so whatever the host does by itself.
func (a *afterlife) doubted() {
	a.t.Helper()
	first := a.operation()
	if first.State != "unknown" || first.Intent.Class != operation.NonReconcilable || first.Record.Outcome.Code != reason.OperationUnaskable || first.Late != 0 {
		a.t.Fatalf("the %s is %s, %+v, %d times more", a.kind, first.State, first.Record.Outcome, first.Late)
	}
	events := a.events()
	for range 3 {
		a.lives()
	}
	if now := a.events(); now != events {
		a.t.Errorf("the host did something by itself: %s, and was at %s", now, events)
	}
}

// events says how far everything about the attempt is.
func (a *afterlife) events() string {
	s := a.state()
	subjects, err := a.Journal.Subjects(a.t.Context(), kernel.AttemptMachine+"/", 10)
	if err != nil {
		a.t.Fatal(err)
	}
	return fmt.Sprintf("%d events of %d attempts", s.Events(), len(subjects))
}

func (a *afterlife) order(state lifecycle.State, attempts int64) {
	a.t.Helper()
	s, err := a.Ledger.Order(a.t.Context(), a.state().WorkOrder)
	if err != nil {
		a.t.Fatal(err)
	}
	if got := s.Of(kernel.WorkOrderMachine).State; got != state || s.Attempts != attempts {
		a.t.Errorf("the work order is %s after %d attempts, want %s after %d", got, s.Attempts, state, attempts)
	}
	if got := a.state().Of(kernel.AttemptMachine).State; got != "unknown_terminal" {
		a.t.Errorf("the attempt is %s", got)
	}
}

// A tool ran whose effect nobody can ask about, and its host was killed before it could write
// down what came of it. The attempt ends unknown, nothing of it is done again by itself, and
// only a person's word moves the work order: each as far as it goes (O6, K6).
func TestAnAmbiguousLaunchWaitsForAPerson(t *testing.T) {
	for disposition, then := range map[string]struct {
		said, later lifecycle.State
		attempts    int64
	}{
		kernel.ConfirmedAbsent:  {"ready", "applied", 2},
		kernel.ConfirmedApplied: {"applied", "applied", 1},
		kernel.AbandonedUnknown: {"abandoned_unknown", "abandoned_unknown", 1},
	} {
		t.Run(disposition, func(t *testing.T) {
			a := variant{operation.Launch, operation.NonReconcilable}.killed(t, afterEffect, "", nil)
			a.doubted()
			a.order("unknown_terminal", 1)
			if at := a.state().Of(kernel.EnvironmentMachine).State; at != "destroyed" {
				t.Errorf("the environment is %s", at)
			}
			a.dispose(disposition)
			a.order(then.said, 1)
			a.lives()
			a.lives()
			a.order(then.later, then.attempts)
		})
	}
}

// The same of a launch that can be asked about, and of one that is idempotent by its key:
// both died with their environment, and another attempt follows without a person.
func TestAContainedLaunchIsAskedAbout(t *testing.T) {
	for _, class := range []operation.EffectClass{operation.Reconcilable, operation.ProviderIdempotent} {
		a := variant{operation.Launch, class}.killed(t, afterEffect, "", nil)
		if o := a.operation(); o.State != "unknown" || o.Record.Outcome.Code != reason.OperationDissolved {
			t.Errorf("%s: the launch is %s, %+v", class, o.State, o.Record.Outcome)
		}
		if at := a.state().Of(kernel.AttemptMachine).State; at != "retryable_failed" {
			t.Errorf("%s: the attempt is %s", class, at)
		}
	}
}

const packet = "proposals: [{purpose: packet, effector: review_packet, destination: \"folder:reviews\"}]\n"

// packets are the folders that stand at the destination.
func (a *afterlife) packets() int {
	a.t.Helper()
	entries, err := os.ReadDir(a.reviews)
	if err != nil {
		a.t.Fatal(err)
	}
	return len(entries)
}

func (a *afterlife) sending(state lifecycle.State, tries, packets int) {
	a.t.Helper()
	s := a.state().Sendings()
	if len(s) != 1 || s[0].State != state || s[0].Tries != tries || a.packets() != packets {
		a.t.Errorf("the sending stands at %+v, and %d packets are there; want %s after %d tries and %d packets", s, a.packets(), state, tries, packets)
	}
}

// taken takes away what arrived, so that it shows if it is sent again.
func taken(t *testing.T) func(string) {
	return func(reviews string) {
		entries, err := os.ReadDir(reviews)
		if err != nil || len(entries) != 1 {
			t.Fatalf("nothing had arrived: %v, %v", entries, err)
		}
		if err := os.RemoveAll(filepath.Join(reviews, entries[0].Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// A packet left, its host was killed before it was written down, and nobody can ask about it.
// It is not sent again by itself; a person says what became of it (O6, K6).
func TestAnAmbiguousSendingWaitsForAPerson(t *testing.T) {
	for disposition, then := range map[string]struct {
		said           lifecycle.State
		later          lifecycle.State
		tries, packets int
	}{
		kernel.ConfirmedAbsent:  {"proposed", "sent", 2, 1},
		kernel.ConfirmedApplied: {"sent", "sent", 1, 0},
		kernel.AbandonedUnknown: {"abandoned_unknown", "abandoned_unknown", 1, 0},
	} {
		t.Run(disposition, func(t *testing.T) {
			a := variant{operation.ReviewPacket, operation.NonReconcilable}.killed(t, afterEffect, packet, taken(t))
			a.sending("unknown", 1, 0)
			a.doubted()
			a.sending("unknown", 1, 0)
			a.dispose(disposition)
			a.sending(then.said, 1, 0)
			a.lives()
			a.lives()
			a.sending(then.later, then.tries, then.packets)
		})
	}
}

// What is idempotent by its key is sent again under that key. What can be asked about is only
// asked about: it stands as it stood, or, if it never did, is sent under a key of its own. What
// arrived and is there no more is not sent again by any rule: a person says what became of it.
func TestALostSendingFollowsItsClass(t *testing.T) {
	t.Run("idempotent", func(t *testing.T) {
		a := variant{operation.ReviewPacket, operation.ProviderIdempotent}.killed(t, beforeEffect, packet, nil)
		a.sending("sent", 1, 1)
	})
	t.Run("idempotent and gone", func(t *testing.T) {
		a := variant{operation.ReviewPacket, operation.ProviderIdempotent}.killed(t, afterEffect, packet, taken(t))
		a.sending("unknown", 1, 0)
	})
	t.Run("asked about and there", func(t *testing.T) {
		var before os.FileInfo
		look := func(reviews string) {
			entries, err := os.ReadDir(reviews)
			if err == nil && len(entries) == 1 {
				before, err = entries[0].Info()
			}
			if err != nil || before == nil {
				t.Fatal(entries, err)
			}
		}
		a := variant{operation.ReviewPacket, operation.Reconcilable}.killed(t, afterEffect, packet, look)
		a.sending("sent", 1, 1)
		after := before
		look(a.reviews)
		if !os.SameFile(before, after) {
			t.Error("it was sent again")
		}
	})
	t.Run("asked about and never there", func(t *testing.T) {
		a := variant{operation.ReviewPacket, operation.Reconcilable}.killed(t, beforeEffect, packet, nil)
		a.sending("sent", 2, 1)
		if o := a.operation(); o.State != "not_applied" || o.Record.Outcome.Code != reason.OutboxAbsent {
			t.Errorf("the first sending is %s, %+v", o.State, o.Record.Outcome)
		}
	})
	t.Run("asked about and gone", func(t *testing.T) {
		a := variant{operation.ReviewPacket, operation.Reconcilable}.killed(t, afterEffect, packet, taken(t))
		for range 4 {
			a.lives()
		}
		a.sending("unknown", 1, 0)
		if o := a.operation(); o.Record.Outcome.Code != reason.OutboxVanished {
			t.Errorf("it is %+v", o.Record.Outcome)
		}
		a.dispose(kernel.ConfirmedAbsent)
		a.lives()
		a.sending("sent", 2, 1)
	})
}
