package schemas_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/policies"
	"github.com/writ-runtime/writ/testing/fixture"
)

// order is a work order with every field.
const order = `{"kind":"writ.workorder.v1","title":"Count","objective":"Count the words.","mode":"observe","role":"analyst","code_class":"candidate",
"executor":"reference-local","environment":{"provider":"wasm","limits":{"memory_bytes":1048576,"wall_ms":1000,"cpu_ms":1000,"processes":1,"files":10,"disk_bytes":1048576},"reset":"before_destroy"},
"tool":{"name":"textstat","arguments":["--input","docs"]},"inputs":[{"name":"docs","source":"docs","max_bytes":10,"max_files":1}],
"outputs":{"schema":"report.schema.json","result":"report.json","max_count":1,"max_bytes":1024,"paths":[{"path":"report.json","media_type":"application/json","required":true}]},
"actions":[{"action":"model.call","resource":"model:a/b","destination":"host:example.com:443"}],
"proposals":[{"purpose":"report","effector":"review_packet","destination":"folder:reviews","repository":"repo:a","base":"0123456789012345678901234567890123456789","files":["report.json"],"title":"Count","message":"Look."}],"retention":{"keep":false,"days":1},
"limits":{"calls":1,"retries":1,"repairs":1,"tokens":1,"wall_ms":1,"money":{"amount":1,"currency":"EUR","scale":2}},
"account":"research","depends_on":["wo_01939a3c-7c1e-7000-8000-00000000000a"],"checkpoint":{"policy":"offered","payload_kind":"writ.checkpoint.tool_progress.v1","interval_ms":1000},"cancellation_deadline_ms":1000,"reconciliation":{"tries":3,"deadline_ms":1000}}`

// delivery is the identity of what brought the work order.
const delivery = "dlv_01939a3c-7c1e-7000-8000-00000000000b"

// fixed is a clock that stands still.
type fixed struct{}

func (fixed) Now() journal.Observation {
	return journal.Observation{Domain: "fixture", UnixMilli: fixture.Now}
}
func (fixed) Micros() int64 { return 0 }
func (fixed) Lot() uint32   { return 0 }

// answers is an effect whose outcome is given.
type answers operation.Outcome

func (a answers) Perform(context.Context, ledger.Permit) operation.Outcome {
	return operation.Outcome(a)
}
func (a answers) Resolve(context.Context, operation.Intent) operation.Outcome {
	return operation.Outcome(a)
}

// life drives one attempt through a ledger over a real journal.
type life struct {
	t       testing.TB
	store   *sqlite.Store
	ledger  *ledger.Ledger
	state   kernel.State
	permits []ledger.Permit
	// change is what the bundle is to have beside the fixed one, nil for nothing.
	change func(*attemptbundle.Bundle)
	// entries are what the journal holds at the end.
	entries []journal.Entry
}

func newLife(t testing.TB) *life {
	t.Helper()
	store, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &life{t: t, store: store, ledger: ledger.New(store, fixture.Kernel(t), fixed{})}
}

// turn commits commands, and takes the permits of what they begin.
func (l *life) turn(blobs []journal.Blob, commands ...kernel.Command) {
	l.t.Helper()
	opened, err := l.ledger.Commit(l.t.Context(), ledger.Turn{
		Fence: l.state.Fence(), Commands: commands, Blobs: blobs, Actor: "uid:1000", Cause: delivery,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.state, l.permits = opened.State, opened.Permits
}

// next commits commands together with all that follows from them.
func (l *life) next(blobs []journal.Blob, commands ...kernel.Command) {
	l.t.Helper()
	commands, err := fixture.Turn(l.ledger.Kernel(), l.state, commands...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.turn(blobs, commands...)
}

// run spends the permit of the turn's i-th operation.
func (l *life) run(i int, out operation.Outcome) kernel.Settle {
	l.t.Helper()
	s, err := l.ledger.Run(l.t.Context(), l.permits[i], answers(out))
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// recover records a recovery as the one that replaces a damaged journal does.
func (l *life) recover() {
	l.t.Helper()
	accepted, err := ingress.NewGate("uid:1000").Accept("uid:1000", ingress.Delivery{ID: delivery, Channel: "cli", Verb: ingress.Recover, Content: []byte("{}")})
	if err != nil {
		l.t.Fatal(err)
	}
	d, err := l.ledger.Kernel().Decide(kernel.State{}, kernel.Recover{Number: 1, Ingress: accepted.Digest, Recovered: kernel.Recovered{
		Sequence: 1, Chain: fixture.Digest("chain"), Found: 2, LeftOut: 1, Lost: []canonical.Digest{fixture.Digest("lost")},
		Kept:      kernel.KeptFile{Name: "journal.before-recovery-1.db", Digest: fixture.Digest("file"), Size: 4096},
		Principal: "uid:1000", Reason: "the disk was changed",
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	results, err := l.store.Append(l.t.Context(), journal.Batch{
		Identity: "writ/journal/ledger/recover/recovery-1", Epoch: l.store.Epoch(), Actor: "uid:1000", Cause: delivery, At: fixed{}.Now(),
		Events: d.Events, Blobs: []journal.Blob{accepted.Blob},
	})
	if err != nil || results[0].Err != nil {
		l.t.Fatal(err, results)
	}
}

func (l *life) submit() {
	l.t.Helper()
	l.reserve(fixture.Reserved(l.t, l.ledger.Kernel()))
}

// reserve submits the order, and reserves an attempt at it.
func (l *life) reserve(r workorder.Reservation) {
	l.t.Helper()
	submit, delivered := l.submission()
	opened, err := l.ledger.Reserve(l.t.Context(), kernel.State{}, fixture.Attempt, ledger.Turn{
		Commands: []kernel.Command{submit, kernel.Reserve{Reservation: r}},
		Blobs:    append(packages(l.t), delivered), Actor: "uid:1000", Cause: delivery,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.state = opened.State
}

// submission is the command that submits the order, and the blob that goes with it.
func (l *life) submission() (kernel.Submit, journal.Blob) {
	l.t.Helper()
	delivered, err := ingress.NewGate("uid:1000").Accept("uid:1000", ingress.Delivery{ID: delivery, Channel: "cli", Verb: ingress.Run, Content: []byte(order)})
	if err != nil {
		l.t.Fatal(err)
	}
	submit := fixture.Submit()
	submit.Submitted.Order = canonicalize(l.t, []byte(order))
	submit.Submitted.Schema, submit.Ingress = fixture.Digest("schema"), delivered.Digest
	return submit, delivered.Blob
}

// activate begins provision, materialize and prepare.
func (l *life) activate() {
	l.t.Helper()
	if l.state.Attempt == "" {
		l.submit()
	}
	decision, err := decide(l.t, capability.Observe).Bytes()
	if err != nil {
		l.t.Fatal(err)
	}
	l.next([]journal.Blob{blob("application/vnd.writ.decision+json", decision)},
		kernel.Activate{Bundle: fixture.Bundle(l.t, l.ledger.Kernel(), l.state.Reserved, l.change), Now: fixture.At(0)})
}

// start settles what activate began, and begins start and launch.
func (l *life) start() {
	l.t.Helper()
	l.activate()
	expected, report := fixture.Attestation(l.t, l.ledger.Kernel(), l.state)
	prepared := operation.Done(protocol.PrepareResult{Handle: "h"})
	prepared.Claim = fixture.Digest("claim")
	l.next(nil,
		l.run(0, operation.Done(protocol.ProvisionResult{Provider: "wasm", Resource: l.state.Resource})), kernel.Attest{Expected: expected, Report: report},
		l.run(1, operation.Done(protocol.MaterializeResult{Inputs: fixture.Digest("inputs"), Files: 1, Bytes: 2})), l.run(2, prepared))
}

func (l *life) launched() protocol.LaunchResult {
	return protocol.LaunchResult{Tool: fixture.Digest("textstat"), Ended: protocol.EndedExited, Stdout: fixture.Digest("out"), Stderr: fixture.Digest("err")}
}

// progress is a checkpoint's payload.
func progress(position int64) workorder.ToolProgress {
	return workorder.ToolProgress{
		Kind: workorder.ToolProgressKind, Position: position, State: canonical.Raw(`{"line":3}`), NextAction: "read the next line", StopCondition: "all lines are read",
	}
}

// checkpoint begins a checkpoint together with what is pending, and returns what settles it.
func (l *life) checkpoint(pending []kernel.Command, position int64) []kernel.Command {
	l.t.Helper()
	d, err := l.ledger.Kernel().Decide(l.state, pending...)
	if err != nil {
		l.t.Fatal(err)
	}
	in, err := l.ledger.Kernel().Checkpoint(d.State)
	if err != nil {
		l.t.Fatal(err)
	}
	payload := marshal(l.t, progress(position))
	l.turn([]journal.Blob{blob("application/vnd.writ.checkpoint+json", payload)}, append(pending, kernel.Begin{Intent: in})...)
	return []kernel.Command{l.run(0, operation.Done(workorder.CheckpointEnvelope{
		Kind: workorder.CheckpointKind, Attempt: l.state.Attempt, Fence: l.state.Fence(), Operation: string(in.Key), PayloadKind: workorder.ToolProgressKind,
		Payload: canonical.Sum(payload), PayloadBytes: int64(len(payload)), Artifacts: []canonical.Digest{}, Policy: l.state.Decision(),
	})), kernel.ProposeCheckpoint{Operation: in.Key, Payload: payload}}
}

// complete settles start and launch, and begins freeze_outputs and collect.
func (l *life) complete() {
	l.t.Helper()
	l.start()
	launch := l.permits[1].Intent().Key
	l.next(nil, l.run(0, operation.Done(protocol.StartResult{Handle: "h"})), l.run(1, operation.Done(l.launched())),
		kernel.Complete{Report: protocol.CompletionReport{Handle: "h", Launches: []operation.Key{launch}, Ended: []protocol.LaunchResult{l.launched()}}})
}

// remove begins and settles what is left to be removed.
func (l *life) remove() {
	l.t.Helper()
	gone := operation.Done(protocol.RemovalResult{Resource: l.state.Resource, WasAlive: true, Gone: true})
	for range 10 {
		var commands []kernel.Command
		for i := range l.permits {
			commands = append(commands, l.run(i, gone))
		}
		l.next(nil, commands...)
		if len(l.permits) == 0 {
			return
		}
	}
	l.t.Fatal("the attempt does not end")
}

// finish reads the journal.
func (l *life) finish() *life {
	l.t.Helper()
	var err error
	if l.entries, err = l.store.Page(l.t.Context(), 0, 100); err != nil || len(l.entries) == 0 {
		l.t.Fatalf("%d turns, %v", len(l.entries), err)
	}
	return l
}

// finished is the way of an attempt that succeeds.
func finished(t testing.TB) *life {
	t.Helper()
	l := newLife(t)
	l.complete()
	frozen := freeze(t)
	l.next(frozen.Blobs,
		l.run(0, operation.Done(frozen.Result)),
		l.run(1, operation.Done(protocol.CollectResult{Manifest: frozen.Result.Manifest, Structured: frozen.Manifest.Entries[0].Digest, Schema: fixture.Digest("schema")})),
		kernel.Accept{})
	l.remove()
	return l.finish()
}

// sent is the way of an attempt of whose result something leaves, or is withdrawn, or is
// not allowed any more.
func sent(t testing.TB) *life {
	t.Helper()
	l := newLife(t)
	l.change = func(b *attemptbundle.Bundle) {
		b.Mode = capability.Proposal
		for _, purpose := range []string{"denied", "report", "withdrawn"} {
			b.Proposals = append(b.Proposals, workorder.Proposal{
				Purpose: purpose, Effector: operation.Publish, Destination: "folder:releases", Files: []string{"report.json"}, Title: "Count", Message: "Look.",
			})
		}
	}
	l.complete()
	frozen := freeze(t)
	settled := []kernel.Command{l.run(0, operation.Done(frozen.Result)), l.run(1, operation.Done(protocol.CollectResult{Manifest: frozen.Result.Manifest}))}
	preview, err := l.ledger.Kernel().Decide(l.state, settled...)
	if err != nil {
		t.Fatal(err)
	}
	store, err := artifact.Open(t.TempDir(), nil, artifact.Options{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	proposals, blobs, err := outbox.Compose(t.Context(), store, l.ledger.Kernel().Classes().Of, preview.State, frozen.Manifest, fixed{}.Now())
	if err != nil {
		t.Fatal(err)
	}
	l.next(append(frozen.Blobs, blobs...), append(settled, kernel.Accept{Proposals: proposals})...)
	l.remove()
	l.turn(nil, kernel.Send{Purpose: "report", Place: fixture.Digest("place")})
	l.turn(nil, l.run(0, operation.Refused(operation.NotApplied, reason.New(reason.OutboxFull, "no space is left", "", ""))))
	l.turn(nil, kernel.Send{Purpose: "report", Place: fixture.Digest("place")})
	l.turn(nil, l.run(0, operation.Done(protocol.PublicationResult{Destination: proposals[0].Destination, Name: string(fixture.Attempt) + ".report", Content: fixture.Digest("content"), Files: 1, Bytes: 2})))
	l.turn(nil, kernel.Withdraw{Purpose: "withdrawn", CancelRequested: kernel.CancelRequested{Reason: "not now"}})
	l.turn(nil, kernel.DenySending{Purpose: "denied", Blocked: kernel.Blocked{Decision: fixture.Digest("decision"), Code: reason.CapabilityNotGranted, Why: "not any more"}})
	return l.finish()
}

// keeping is the way of an attempt whose workspace is kept, until its time is over.
func keeping(t testing.TB) *life {
	t.Helper()
	l := newLife(t)
	policy := attemptbundle.Retention{Keep: true, Days: 7}
	l.change = func(b *attemptbundle.Bundle) { b.Environment.Retention, b.Outputs.Retention = policy, policy }
	l.reserve(fixture.ReservedFor(t, l.ledger.Kernel(), l.change))
	l.start()
	l.next(nil, l.run(0, operation.Done(protocol.StartResult{Handle: "h"})), l.run(1, operation.Done(l.launched())),
		kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Stage: "launch", Code: reason.ToolExitNonzero, Detail: "it ended with status 3"}})
	kept := protocol.Retention{
		Policy: protocol.RetentionParameters(policy), At: fixed{}.Now(), Files: 2, Bytes: 3, Manifest: fixture.Digest("manifest"),
	}
	kept.Until = kept.Policy.Until(kept.At)
	gone := protocol.RemovalResult{Resource: l.state.Resource, WasAlive: true, Gone: true}
	removed := gone
	removed.Kept, removed.Retention = kept.Bytes, &kept
	l.next(nil, l.run(0, operation.Done(gone)), l.run(1, operation.Done(removed)))
	l.turn(nil, kernel.ExpireRetention{Clock: fixture.Observe(t, l.ledger, kept.Until)})
	l.turn(nil, l.run(0, operation.Done(gone)))
	return l.finish()
}

// resolve has everything that is open asked about, and come to the same.
func (l *life) resolve(answer answers) {
	l.t.Helper()
	var resolved []kernel.Command
	for _, in := range l.state.Open() {
		s, err := l.ledger.Resolve(l.t.Context(), l.state, in, answer)
		if err != nil {
			l.t.Fatal(err)
		}
		resolved = append(resolved, s)
	}
	l.turn(nil, resolved...)
}

// metered is the way of an attempt that draws on an account and fails. The clock stands
// still, so that nobody knows how long its tool ran until a person says so.
func metered(t testing.TB) *life {
	t.Helper()
	l := newLife(t)
	money := workorder.Money{Amount: 100, Currency: "EUR", Scale: 2}
	calls, wall := int64(1), int64(60_000)
	_, err := l.ledger.SetCeiling(t.Context(), "research", workorder.Ceiling{Calls: &calls, WallMillis: &wall, Money: &money}, "", ledger.Turn{Actor: "uid:1000", Cause: delivery})
	if err != nil {
		t.Fatal(err)
	}
	l.change = func(b *attemptbundle.Bundle) { b.Ceilings.Money = &money }
	r := fixture.ReservedFor(t, l.ledger.Kernel(), l.change)
	r.Account, r.Price = "research", &workorder.Money{Amount: 7, Currency: "EUR", Scale: 2}
	l.reserve(r)
	l.start()
	l.next(nil, l.run(0, operation.Done(protocol.StartResult{Handle: "h"})), l.run(1, operation.Done(l.launched())),
		kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Stage: "launch", Code: reason.EnvironmentLimitWall, Detail: "too long"}})
	l.remove()
	used := workorder.Amounts{WallMillis: 17, Money: r.Price}
	l.turn(nil, kernel.SettleBudget{Used: used, ExpectedVersion: l.state.Of(kernel.BudgetMachine).Version, Principal: "uid:1000", Reason: "the log says so"})
	return l.finish()
}

// unfunded is the way of a work order that asks for more than its account will ever give.
func unfunded(t testing.TB) *life {
	t.Helper()
	l := newLife(t)
	submit, delivered := l.submission()
	opened, err := l.ledger.CommitOrder(t.Context(), kernel.State{}, submit.ID, ledger.Turn{
		Commands: []kernel.Command{submit, kernel.Unfunded{BudgetBlock: kernel.BudgetBlock{
			Account: "research", Code: reason.BudgetExhausted, Why: "it has less calls left", Asked: workorder.Amounts{Calls: 3},
		}}},
		Blobs: append(packages(t), delivered), Actor: "uid:1000", Cause: delivery,
	})
	if err != nil {
		t.Fatal(err)
	}
	l.state = opened.State
	return l.finish()
}

// lives are the ways that an attempt can go, so that each body of an event is written.
func lives() map[string]func(t testing.TB) *life {
	return map[string]func(t testing.TB) *life{
		"finished": finished,
		"sent":     sent,
		"kept":     keeping,
		"denied": func(t testing.TB) *life {
			l := newLife(t)
			l.submit()
			record := decide(t, capability.Proposal)
			if record.Refusal() == nil {
				t.Fatal("everything is allowed")
			}
			raw, err := record.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			l.turn([]journal.Blob{blob("application/vnd.writ.decision+json", raw)}, kernel.Block{
				Decision: canonical.Sum(raw), Blocked: kernel.Blocked{Decision: canonical.Sum(raw), Code: record.Denials[0].Code, Why: record.Denials[0].Reason},
			})
			return l.finish()
		},
		"metered":  metered,
		"unfunded": unfunded,
		"abandoned": func(t testing.TB) *life {
			l := newLife(t)
			l.submit()
			l.turn(nil, kernel.Abandon{Failure: kernel.Failure{
				Conclusion: workorder.Failed, Code: reason.BundleUnpinned, Detail: "it could not be compiled", Remedy: "pin it", Stage: "activate",
			}})
			return l.finish()
		},
		"failed": func(t testing.TB) *life {
			l := newLife(t)
			l.start()
			stopped := l.launched()
			stopped.Ended, stopped.Limit = protocol.EndedLimit, "wall"
			l.next(nil, l.run(0, operation.Done(protocol.StartResult{Handle: "h"})),
				l.run(1, operation.Done(stopped).Because(reason.New(reason.EnvironmentLimitWall, "too long", "textstat", "give it longer"))),
				kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Timeout, Stage: "launch", Code: reason.EnvironmentLimitWall, Detail: "too long", Remedy: "give it longer"}})
			// The first attempt at destroying it does not work.
			refused := operation.Refused(operation.NotApplied, reason.New(reason.EnvironmentStillAlive, "something still bears the name", "", ""))
			l.next(nil, l.run(0, operation.Done(protocol.RemovalResult{Resource: l.state.Resource, Gone: true})), l.run(1, refused))
			l.remove()
			return l.finish()
		},
		"failed before its start": func(t testing.TB) *life {
			l := newLife(t)
			l.activate()
			refused := reason.New(reason.EnvironmentUnsupported, "it cannot be built", "wasm", "ask for less")
			var commands []kernel.Command
			commands = append(commands, l.run(0, operation.Refused(operation.NotApplied, refused)))
			for _, p := range l.permits[1:] {
				skipped, err := l.ledger.Skip(p, "provision did not succeed")
				if err != nil {
					t.Fatal(err)
				}
				commands = append(commands, skipped)
			}
			l.next(nil, append(commands, kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Stage: "provision", Code: refused.Code, Detail: refused.What}})...)
			l.remove()
			return l.finish()
		},
		"checkpointed": func(t testing.TB) *life {
			l := newLife(t)
			l.change = func(b *attemptbundle.Bundle) {
				b.Checkpoint = attemptbundle.CheckpointPolicy{
					Policy: workorder.OfferedCheckpoints, PayloadKind: workorder.ToolProgressKind, MaxBytes: 1024, MaxCount: 10, IntervalMillis: 1000,
				}
			}
			l.start()
			pending := []kernel.Command{l.run(0, operation.Done(protocol.StartResult{Handle: "h"}))}
			// The second stands no further than the first; the third comes when nothing runs any more.
			for _, position := range []int64{3, 3, 4} {
				pending = l.checkpoint(pending, position)
			}
			l.turn(nil, kernel.Fence{Why: "its supervisor ended"})
			l.turn(nil, pending...)
			return l.finish()
		},
		"cancelled": func(t testing.TB) *life {
			l := cancelling(t)
			l.next(nil, l.run(0, operation.Done(protocol.RemovalResult{Resource: l.state.Resource, WasAlive: true, Gone: true})))
			l.remove()
			return l.finish()
		},
		"cancellation not proven": func(t testing.TB) *life {
			l := cancelling(t)
			doubt := reason.New(reason.OperationUnknownOutcome, "nobody answers", "", "")
			l.turn(nil, l.run(0, operation.Refused(operation.Unknown, doubt)))
			l.turn(nil, kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource}})
			return l.finish()
		},
		"lost": func(t testing.TB) *life {
			l := newLife(t)
			l.complete()
			l.turn(nil, kernel.Fence{Why: "its supervisor ended"})
			l.resolve(answers{Knowledge: operation.NotApplied, Code: reason.OperationDissolved, Detail: "it died with the name"})
			l.next(nil, kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource, WasAlive: true, Gone: true}})
			l.remove()
			return l.finish()
		},
		"waiting": func(t testing.TB) *life {
			l := newLife(t)
			order := strings.Replace(order, `"mode":"observe"`, `"mode":"shadow"`, 1)
			submit := fixture.Submit()
			submit.Submitted.Order, submit.Submitted.Schema = canonicalize(l.t, []byte(order)), fixture.Digest("schema")
			delivered, err := ingress.NewGate("uid:1000").Accept("uid:1000", ingress.Delivery{ID: delivery, Channel: "cli", Verb: ingress.Submit, Content: []byte(order)})
			if err != nil {
				t.Fatal(err)
			}
			submit.Ingress = delivered.Digest
			turn := func(s kernel.State, c kernel.Command) kernel.State {
				opened, err := l.ledger.CommitOrder(t.Context(), s, fixture.WorkOrder, ledger.Turn{Commands: []kernel.Command{c}, Blobs: append(packages(l.t), delivered.Blob), Actor: "uid:1000", Cause: delivery})
				if err != nil {
					t.Fatal(err)
				}
				return opened.State
			}
			const other = "wo_01939a3c-7c1e-7000-8000-00000000000f"
			wait := kernel.Dependency{Code: reason.DependencyWaiting, Why: "it waits", On: []kernel.DependsOn{{WorkOrder: other, State: "active"}}}
			s := turn(turn(kernel.State{}, submit), kernel.Depend{Dependency: wait})
			fail := kernel.Dependency{Code: reason.DependencyMissing, Why: "it is not there", On: []kernel.DependsOn{{WorkOrder: other}}}
			s = turn(s, kernel.Resume{Ingress: delivered.Digest, Resumed: kernel.Resumed{Principal: "uid:1000", Reason: "nothing was left out of it"}})
			s = turn(s, kernel.RaiseMode{Ingress: delivered.Digest, ModeRaised: kernel.ModeRaised{
				Mode: capability.Shadow, Principal: "uid:1000", Reason: "it was looked at", ExpectedVersion: 3,
				Evidence: kernel.ModeEvidence{
					Attempt: fixture.Attempt, Mode: capability.Observe, Bundle: fixture.Digest("bundle"), Tool: fixture.Digest("tool"),
					Adapter: fixture.Digest("adapter"), Result: fixture.Digest("result"),
				},
			}})
			turn(s, kernel.Depend{Dependency: fail})
			return l.finish()
		},
		"disposed": func(t testing.TB) *life {
			l := newLife(t)
			l.activate()
			l.turn(nil, kernel.Fence{Why: "its supervisor ended"})
			l.resolve(answers{Knowledge: operation.Unknown, Code: reason.OperationDissolved, Detail: "it died with the name"})
			l.turn(nil, kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource, WasAlive: true, Why: "it cannot be seen"}})
			desk := &ingress.Desk{Gate: ingress.NewGate("uid:1000"), Ledger: l.ledger, Journal: l.store}
			handle := func(n int, text string) {
				id := fmt.Sprintf("dlv_01939a3c-7c1e-7000-8000-%012d", n)
				if _, err := desk.Handle(t.Context(), "uid:1000", ingress.Delivery{ID: id, Channel: "local", Verb: ingress.Command, Content: []byte(text)}); err != nil {
					t.Fatal(err)
				}
			}
			say := fmt.Sprintf("/writ resolve-ambiguous-effect %s --disposition %%s --operation-key %s --evidence seen --expected-version %d --reason seen",
				l.state.Attempt, l.state.Operations()[0].Intent.Key, l.state.Of(kernel.WorkOrderMachine).Version)
			handle(101, fmt.Sprintf(say, "confirmed"))
			handle(102, fmt.Sprintf(say, kernel.ConfirmedAbsent))
			handle(102, "/writ status")
			handle(103, "please")
			return l.finish()
		},
		"recovered": func(t testing.TB) *life {
			l := newLife(t)
			l.submit()
			l.recover()
			return l.finish()
		},
		"expired": func(t testing.TB) *life {
			l := newLife(t)
			l.submit()
			l.turn(nil, kernel.ExpireReservation{Clock: fixture.Observe(t, l.ledger, lifecycle.Observation{Domain: fixed{}.Now().Domain, UnixMilli: fixture.Expires})})
			return l.finish()
		},
		"silent": func(t testing.TB) *life {
			l := newLife(t)
			l.start()
			now := fixed{}.Now()
			l.turn(nil, kernel.RenewLease{Clock: kernel.Clock{Domain: now.Domain}, Now: now})
			l.turn(nil, kernel.ExpireLease{Clock: fixture.Observe(t, l.ledger, l.state.Lease.Until)}, kernel.Fence{Why: "its lease ran out", Code: reason.AttemptLeaseExpired})
			return l.finish()
		},
		"retried": func(t testing.TB) *life {
			l := newLife(t)
			l.complete()
			l.turn(nil, kernel.Fence{Why: "its supervisor ended"})
			l.resolve(answers{Knowledge: operation.NotApplied, Code: reason.OperationDissolved, Detail: "it died with the name"})
			retry := l.ledger.Retry()
			l.next(nil, kernel.Reconciled{Found: protocol.EnvironmentReconciliation{Resource: l.state.Resource, WasAlive: true, Gone: true}, Retry: retry})
			l.remove()
			order, err := l.ledger.Order(t.Context(), l.state.WorkOrder)
			if err != nil {
				t.Fatal(err)
			}
			turn := func(commands ...kernel.Command) ledger.Turn {
				return ledger.Turn{Commands: commands, Actor: "uid:1000", Cause: delivery}
			}
			fixture.Observe(t, l.ledger, retry.At)
			retry.At.UnixMilli += order.Retry.DelayMillis
			clock := fixture.Observe(t, l.ledger, retry.At)
			if _, err = l.ledger.CommitOrder(t.Context(), order, order.WorkOrder, turn(kernel.RetryReady{Clock: clock})); err != nil {
				t.Fatal(err)
			}
			retry.At.UnixMilli -= 60_000
			clock = fixture.Observe(t, l.ledger, retry.At)
			err = l.ledger.CommitClock(t.Context(), clock, turn(kernel.ReconcileClock{Clock: clock, Ingress: l.state.Evidence("IngressReceipt"), ClockReconciliation: kernel.ClockReconciliation{
				From: retry.At, ExpectedVersion: clock.At.Version, Principal: "uid:1000", Reason: "it was set right",
			}}))
			if err != nil {
				t.Fatal(err)
			}
			return l.finish()
		},
	}
}

// cancelling has begun to cancel an attempt that ran.
func cancelling(t testing.TB) *life {
	l := newLife(t)
	l.start()
	l.turn(nil, l.run(0, operation.Done(protocol.StartResult{Handle: "h"})), l.run(1, operation.Done(l.launched())))
	l.next(nil, kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: "asked"}})
	return l
}

func blob(mediaType string, raw []byte) journal.Blob {
	return journal.Blob{Digest: canonical.Sum(raw), MediaType: mediaType, Bytes: raw}
}

// packages are the documents that a bundle names by digest.
func packages(t testing.TB) []journal.Blob {
	t.Helper()
	var blobs []journal.Blob
	for _, p := range []any{
		workorder.RolePackage{Kind: workorder.RolePackageKind, Role: "analyst", Profile: "default", Policy: fixture.Digest("policy")},
		workorder.ContextPackage{Kind: workorder.ContextKind, Artifacts: []canonical.Digest{fixture.Digest("artifact")}},
		workorder.PromptPayload{Kind: workorder.PromptKind, Objective: "Count the words.", Tool: "textstat", Arguments: []string{"--input", "docs"}},
		requests(t, capability.Observe),
	} {
		blobs = append(blobs, blob("application/vnd.writ.package+json", marshal(t, p)))
	}
	return blobs
}

func actions(t testing.TB) *capability.Registry {
	t.Helper()
	r, err := capability.ParseRegistry(embedded(t, "actions.v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// requests are what a work order of the mode asks for; in proposal more than it can have.
func requests(t testing.TB, mode capability.Mode) []capability.Request {
	t.Helper()
	wanted := [][3]string{{"input.read", "input:docs/**", ""}, {"tool.run", "tool:textstat", ""}, {"output.write", "output:report.json", ""}, {"artifact.write", "output:report.json", ""}, {"result.report", "", ""}}
	if mode == capability.Proposal {
		wanted = append(wanted, [3]string{"network.connect", "host:papers.example.org:443", ""}, [3]string{"repo.merge", "repo:a/b", "branch:main"})
	}
	var out []capability.Request
	for _, w := range wanted {
		g, err := actions(t).ParseGrant(w[0], w[1], w[2])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, capability.Request{Grant: g, Required: true, Why: "it is the work"})
	}
	// An optional one that is narrowed: by a layer below, to fewer calls and bytes.
	g, err := actions(t).ParseGrant("model.call", "model:a/b", "host:example.com:443")
	if err != nil {
		t.Fatal(err)
	}
	g.Limits = capability.Limits{Calls: 3, Bytes: 100}
	return append(out, capability.Request{Grant: g})
}

// decide asks the shipped policies.
func decide(t testing.TB, mode capability.Mode) policy.Record {
	t.Helper()
	files, err := policy.Read(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := policy.Load(t.Context(), files, policy.Options{Registry: actions(t)})
	if err != nil {
		t.Fatal(err)
	}
	in := policy.Input{
		WorkOrder: policy.InputWorkOrder{
			Mode: mode, Role: "analyst", CodeClass: "candidate", Executor: "reference-local",
			Tool:        policy.InputTool{Name: "textstat", Digest: fixture.Digest("textstat")},
			Environment: policy.InputEnvironment{Provider: "wasm", Class: "ephemeral_isolated", Limits: map[string]int64{"memory_bytes": 1 << 20, "wall_ms": 1000}},
			Inputs:      []policy.InputMount{{Name: "docs"}},
			Outputs:     policy.InputOutputs{Paths: []policy.InputPath{{Path: "report.json"}}, MaxBytes: 1024, MaxCount: 1},
			Limits:      map[string]int64{"calls": 1},
		},
		Deployment: policy.InputDeployment{Name: "local"}, Requested: requests(t, mode),
	}
	d, err := engine.Decide(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	support := capability.Asked(in.Requested)
	support.Layer = capability.SupportLayer
	for i := range support.Allowed {
		if support.Allowed[i].Action == "model.call" {
			support.Allowed[i].Limits = capability.Limits{Calls: 1, Bytes: 10}
		}
	}
	record := engine.Conclude(in, d, support, capability.Failure(capability.BrokerLayer, reason.PolicyLayerFailed, "it gave no answer", "broker"))
	if mode == capability.Observe {
		agreed := capability.Asked(in.Requested)
		agreed.Layer = capability.BrokerLayer
		record = engine.Conclude(in, d, support, agreed)
		if err := record.Refusal(); err != nil {
			t.Fatal(err)
		}
	}
	return record
}

// workspace is a workspace in memory.
type workspace map[string]string

func (w workspace) Entries(context.Context) iter.Seq2[artifact.Entry, error] {
	return func(yield func(artifact.Entry, error) bool) {
		for path, text := range w {
			if !yield(artifact.Entry{Path: path, Type: artifact.File, Size: int64(len(text)), Links: 1}, nil) {
				return
			}
		}
	}
}

func (w workspace) Open(_ context.Context, path string) (io.ReadCloser, error) {
	text, ok := w[path]
	if !ok {
		return nil, fmt.Errorf("open %s: it is not there", path)
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// freeze freezes a workspace with one file that is declared and one that is not.
func freeze(t testing.TB) environment.Frozen {
	t.Helper()
	store, err := artifact.Open(t.TempDir(), nil, artifact.Options{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	frozen, err := artifact.Freeze(t.Context(), workspace{"report.json": `{"words":1}`, "notes.txt": "n"}, protocol.OutputPolicy{
		Paths:    []protocol.Declared{{Path: "report.json", MediaType: "application/json", Required: true}},
		MaxCount: 1, MaxBytes: 1024, PathPolicyVersion: protocol.PathPolicyV1,
	}, fixture.Digest("attestation"), store)
	if err != nil {
		t.Fatal(err)
	}
	described, err := environment.Describe(t.Context(), frozen, store)
	if err != nil {
		t.Fatal(err)
	}
	return described
}
