package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"github.com/writ-runtime/writ/go/workorder"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
)

var update = flag.Bool("update", false, "write the golden file")

// effect counts how often it is performed and answers what it is told to.
type effect struct {
	mu        sync.Mutex
	performed int
	out       operation.Outcome
}

func (e *effect) Perform(context.Context, ledger.Permit) operation.Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.performed++
	return e.out
}

func (e *effect) Resolve(context.Context, operation.Intent) operation.Outcome { return e.out }

func applied(result any) *effect { return &effect{out: operation.Done(result)} }

// life drives one attempt through a ledger over a real journal.
type life struct {
	t      *testing.T
	dir    string
	store  *sqlite.Store
	ledger *ledger.Ledger
	state  kernel.State
}

func newLife(t *testing.T) *life {
	t.Helper()
	l := &life{t: t, dir: t.TempDir()}
	l.open()
	return l
}

func (l *life) open() {
	l.t.Helper()
	store, err := sqlite.Open(l.t.Context(), l.dir, sqlite.Options{Write: true})
	if err != nil {
		l.t.Fatal(err)
	}
	l.store, l.ledger = store, ledger.New(store, fixture.Kernel(l.t), fixture.Clock{})
	l.t.Cleanup(func() { _ = store.Close() })
}

func (l *life) turn(commands ...kernel.Command) ledger.Opened {
	l.t.Helper()
	opened, err := l.ledger.Commit(l.t.Context(), ledger.Turn{Fence: l.state.Fence(), Commands: commands, Actor: "uid:0"})
	if err != nil {
		l.t.Fatal(err)
	}
	l.state = opened.State
	return opened
}

// refused commits a turn and fails the test unless it is refused with the code.
func (l *life) refused(code reason.Code, t ledger.Turn) {
	l.t.Helper()
	if _, err := l.ledger.Commit(l.t.Context(), t); !reason.Is(err, code) {
		l.t.Fatalf("got %v, want %s", err, code)
	}
}

func (l *life) submit() {
	l.t.Helper()
	opened, err := l.ledger.Reserve(l.t.Context(), kernel.State{}, fixture.Attempt, ledger.Turn{
		Commands: []kernel.Command{fixture.Submit(), kernel.Reserve{Reservation: fixture.Reserved(l.t, l.ledger.Kernel())}}, Actor: "uid:0",
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.state = opened.State
}

func (l *life) activate() ledger.Opened {
	l.t.Helper()
	l.submit()
	bundle := fixture.Bundle(l.t, l.ledger.Kernel(), l.state.Reserved, nil)
	return l.next(kernel.Activate{Bundle: bundle, Now: fixture.At(0)})
}

// next commits commands together with all that follows from them.
func (l *life) next(commands ...kernel.Command) ledger.Opened {
	l.t.Helper()
	commands, err := fixture.Turn(l.ledger.Kernel(), l.state, commands...)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.turn(commands...)
}

func (l *life) run(p ledger.Permit, e ledger.Effect) kernel.Settle {
	l.t.Helper()
	s, err := l.ledger.Run(l.t.Context(), p, e)
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// finish drives the attempt through its six turns.
func (l *life) finish() {
	p := l.activate().Permits
	expected, report := fixture.Attestation(l.t, l.ledger.Kernel(), l.state)
	resource := l.state.Resource
	p = l.next(
		l.run(p[0], applied(protocol.ProvisionResult{Provider: "wasm", Resource: resource})),
		kernel.Attest{Expected: expected, Report: report},
		l.run(p[1], applied(protocol.MaterializeResult{Inputs: fixture.Digest("inputs"), Files: 1, Bytes: 2})),
		l.run(p[2], applied(protocol.PrepareResult{Handle: "h"})),
	).Permits
	launch := protocol.LaunchResult{Tool: fixture.Digest("textstat"), Ended: protocol.EndedExited}
	p = l.next(
		l.run(p[0], applied(protocol.StartResult{Handle: "h"})), l.run(p[1], applied(launch)),
		kernel.Complete{Report: protocol.CompletionReport{Handle: "h", Launches: []operation.Key{p[1].Intent().Key}, Ended: []protocol.LaunchResult{launch}}},
	).Permits
	p = l.next(
		l.run(p[0], applied(protocol.FreezeResult{Manifest: fixture.Digest("manifest"), Files: 1, Bytes: 3})),
		l.run(p[1], applied(protocol.CollectResult{Manifest: fixture.Digest("manifest")})),
		kernel.Accept{},
	).Permits
	l.turn(
		l.run(p[0], applied(protocol.RemovalResult{Resource: resource, Gone: true})),
		l.run(p[1], applied(protocol.RemovalResult{Resource: resource, WasAlive: true, Gone: true})),
	)
}

func TestAnAttemptIsSixTurns(t *testing.T) {
	l := newLife(t)
	l.finish()
	page, err := l.store.Page(t.Context(), 0, 100)
	if err != nil || len(page) != 6 {
		t.Fatalf("%d turns, %v", len(page), err)
	}
	if plan, err := l.ledger.Kernel().Next(l.state); err != nil || !plan.Done {
		t.Errorf("%+v, %v", plan, err)
	}
}

// What the journal alone says is what the process remembered.
func TestLoad(t *testing.T) {
	l := newLife(t)
	l.finish()
	if err := l.store.Close(); err != nil {
		t.Fatal(err)
	}
	remembered := l.state
	l.open()
	s, err := l.ledger.State(t.Context(), fixture.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	if s.Events() != remembered.Events() || s.Generation != remembered.Generation || s.Bundle.Digest() != remembered.Bundle.Digest() {
		t.Errorf("the journal says %+v, remembered was %+v", s, remembered)
	}
	for _, o := range remembered.Operations() {
		got, _ := s.Operation(o.Intent.Key)
		if !bytes.Equal(got.Record.Receipt, o.Record.Receipt) || !bytes.Equal(got.Record.Outcome.Result, o.Record.Outcome.Result) {
			t.Errorf("%s: the record is not the one that was remembered", o.Intent.Key)
		}
	}
	if _, err := l.ledger.State(t.Context(), "att_none"); !reason.Is(err, reason.IDUnknown) {
		t.Errorf("an attempt that is not there: %v", err)
	}
}

// The receipts of the fixed attempt never change.
func TestGoldenReceipts(t *testing.T) {
	l := newLife(t)
	l.finish()
	var all []json.RawMessage
	for _, o := range l.state.Operations() {
		all = append(all, json.RawMessage(o.Record.Receipt))
	}
	got, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const golden = "testdata/receipts.v1.json"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the receipts are\n%s\nand were\n%s", got, want)
	}
}

func TestAPermitIsGoodOnce(t *testing.T) {
	l := newLife(t)
	p := l.activate().Permits[0]
	e := applied(struct{}{})
	l.run(p, e)
	if _, err := l.ledger.Run(t.Context(), p, e); !reason.Is(err, reason.OperationPermitInvalid) {
		t.Errorf("a second run: %v", err)
	}
	if _, err := l.ledger.Skip(p, "late"); !reason.Is(err, reason.OperationPermitInvalid) {
		t.Errorf("a skip after the run: %v", err)
	}
	if e.performed != 1 {
		t.Errorf("the effect was performed %d times", e.performed)
	}
}

func TestAZeroPermitPermitsNothing(t *testing.T) {
	l := newLife(t)
	e := applied(struct{}{})
	var zero ledger.Permit
	if _, err := l.ledger.Run(t.Context(), zero, e); !reason.Is(err, reason.OperationPermitInvalid) || e.performed != 0 {
		t.Errorf("%v, performed %d times", err, e.performed)
	}
}

func TestNoPermitForWhatWasRefusedOrReplayed(t *testing.T) {
	l := newLife(t)
	opened := l.activate()
	in := opened.Permits[0].Intent()
	l.turn(l.run(opened.Permits[0], applied(struct{}{})))

	again := l.turn(kernel.Begin{Intent: in})
	if len(again.Permits) != 0 || len(again.Replayed) != 1 || again.Sequence != 0 {
		t.Errorf("a replay opened %+v", again)
	}
	other := in
	other.Digest = fixture.Digest("other")
	l.refused(reason.OperationCollision, ledger.Turn{Fence: l.state.Fence(), Commands: []kernel.Command{kernel.Begin{Intent: other}}})
}

// A turn whose acknowledgement was lost is recognised when it is committed again, and
// opens no second permit.
func TestALostAcknowledgement(t *testing.T) {
	l := newLife(t)
	l.submit()
	before := l.state
	bundle := fixture.Bundle(t, l.ledger.Kernel(), before.Reserved, nil)
	first := l.next(kernel.Activate{Bundle: bundle, Now: fixture.At(0)})
	if len(first.Permits) != 3 {
		t.Fatalf("%d permits", len(first.Permits))
	}
	// Another process of the same history, which never saw the acknowledgement.
	stale := ledger.New(oldReader{Store: l.store, hide: first.Sequence}, l.ledger.Kernel(), fixture.Clock{})
	second, err := stale.Commit(t.Context(), ledger.Turn{Fence: before.Fence(), Actor: "uid:0", Commands: []kernel.Command{
		kernel.Activate{Bundle: bundle, Now: fixture.At(0)},
		kernel.Begin{Intent: first.Permits[0].Intent()}, kernel.Begin{Intent: first.Permits[1].Intent()}, kernel.Begin{Intent: first.Permits[2].Intent()},
	}})
	if err != nil || len(second.Permits) != 0 || second.Sequence != first.Sequence {
		t.Errorf("committed again: %d permits, sequence %d, %v", len(second.Permits), second.Sequence, err)
	}
}

// oldReader shows a journal as it was before a sequence.
type oldReader struct {
	journal.Store
	hide uint64
}

func (o oldReader) Events(ctx context.Context, s lifecycle.Subject) ([]journal.Recorded, error) {
	all, err := o.Store.Events(ctx, s)
	var old []journal.Recorded
	for _, e := range all {
		if e.Sequence < o.hide {
			old = append(old, e)
		}
	}
	return old, err
}

// Of two that commit from the same state, one wins and the other is told.
func TestAConflictIsTold(t *testing.T) {
	l := newLife(t)
	l.submit()
	bundle := fixture.Bundle(t, l.ledger.Kernel(), l.state.Reserved, nil)
	activate := kernel.Activate{Bundle: bundle, Now: fixture.At(0)}
	other := ledger.New(l.store, l.ledger.Kernel(), fixture.Clock{})
	if _, err := other.State(t.Context(), fixture.Attempt); err != nil {
		t.Fatal(err)
	}
	l.turn(kernel.Abandon{Failure: kernel.Failure{Conclusion: workorder.Failed, Detail: "changed my mind"}})
	_, err := other.Commit(t.Context(), ledger.Turn{Fence: l.state.Fence(), Commands: []kernel.Command{activate}})
	if r, ok := reason.As(err); !ok || r.Code != reason.JournalConflict && r.Code != reason.OperationCollision {
		t.Fatalf("got %v", err)
	}
	// Afterwards it knows.
	_, err = other.Commit(t.Context(), ledger.Turn{Fence: l.state.Fence(), Commands: []kernel.Command{activate}})
	if !reason.Is(err, reason.KernelWrongState) {
		t.Errorf("after the conflict: %v", err)
	}
}

func TestAStaleFenceMayReportAndNothingElse(t *testing.T) {
	l := newLife(t)
	permits := l.activate().Permits
	old := l.state.Fence()
	answer := l.run(permits[0], applied(struct{}{}))
	l.turn(kernel.Fence{Why: "test"})
	l.refused(reason.KernelStaleFence, ledger.Turn{Fence: old, Commands: []kernel.Command{
		kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "late"}},
	}})
	opened, err := l.ledger.Commit(t.Context(), ledger.Turn{Fence: old, Commands: []kernel.Command{answer}})
	if err != nil {
		t.Fatalf("a fact was refused: %v", err)
	}
	if got := opened.State.Of(kernel.EnvironmentMachine).State; got != "unknown" {
		t.Errorf("a stale answer moved the environment to %s", got)
	}
}

func TestReceiptBindsTheCall(t *testing.T) {
	l := newLife(t)
	p := l.activate().Permits[0]
	s := l.run(p, applied(protocol.ProvisionResult{Provider: "wasm", Resource: "r"}))
	var r protocol.Receipt
	if err := canonical.DecodeCanonical(s.Receipt, &r); err != nil {
		t.Fatal(err)
	}
	call := p.Call()
	if r.Bundle != call.Bundle || r.Attempt != call.Fence.Attempt || r.Generation != call.Fence.Generation ||
		r.Operation != call.Operation || r.Digest != call.Digest || r.Result != canonical.Sum(s.Outcome.Result) || r.Name != "ProvisionReceipt" {
		t.Errorf("%+v", r)
	}
}

// A receipt that says anything else than what was recorded is found, part by part.
func TestCheckReceipt(t *testing.T) {
	l := newLife(t)
	l.finish()
	o := l.state.Operations()[0]
	if err := ledger.CheckReceipt(l.state, o); err != nil {
		t.Fatal(err)
	}
	var good protocol.Receipt
	if err := canonical.Decode(o.Record.Receipt, &good); err != nil {
		t.Fatal(err)
	}
	for part, change := range map[string]func(*protocol.Receipt){
		"operation key":    func(r *protocol.Receipt) { r.Operation += "x" },
		"collision digest": func(r *protocol.Receipt) { r.Digest = fixture.Digest("other") },
		"parent":           func(r *protocol.Receipt) { r.Parent = r.Operation },
		"effect class":     func(r *protocol.Receipt) { r.Class = operation.NonReconcilable },
		"resource":         func(r *protocol.Receipt) { r.Resource += "x" },
		"knowledge":        func(r *protocol.Receipt) { r.Knowledge = operation.Unknown },
		"result":           func(r *protocol.Receipt) { r.Result = fixture.Digest("other") },
		"claim":            func(r *protocol.Receipt) { r.Claim = fixture.Digest("other") },
		"reason":           func(r *protocol.Receipt) { r.Code = reason.OperationSkipped },
		"bundle":           func(r *protocol.Receipt) { r.Bundle = fixture.Digest("other") },
		"attempt":          func(r *protocol.Receipt) { r.Attempt += "x" },
		"name":             func(r *protocol.Receipt) { r.Name = "StartReceipt" },
	} {
		changed := good
		change(&changed)
		raw, err := canonical.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		o.Record.Receipt = raw
		if err := ledger.CheckReceipt(l.state, o); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("another %s: %v", part, err)
		}
	}
}
