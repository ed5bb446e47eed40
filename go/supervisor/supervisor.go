// Package supervisor carries out the plan of one attempt: it asks the kernel what is
// next, has the ledger make it durable, runs the effects, and reports what became
// known. It decides nothing.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Attempt is what a supervisor needs to carry out one attempt.
type Attempt struct {
	// Bundle is the attempt's order. First is committed with the first operations: for
	// a new attempt its activation; Blobs go with it.
	Bundle *attemptbundle.Compiled
	First  []kernel.Command
	Blobs  []journal.Blob

	Ledger      *ledger.Ledger
	Environment environment.Environment
	Provider    environment.Provider
	// Executor starts the pinned adapter for this attempt, with the host services that
	// it may call. It is called when the adapter is first needed.
	Executor  func(Services) (Executor, error)
	Artifacts *artifact.Store
	Inputs    environment.Inputs
	// Schema is the JSON Schema of the structured result, nil if none is declared.
	Schema []byte
	// Validate holds a structured result against Schema.
	Validate func(schema, document []byte) error
	// Actor is the principal on whose behalf the attempt runs, Cause the delivery.
	Actor, Cause string
	// Observe is told of each step, Log of each line that the adapter says; both may
	// be nil.
	Observe func(Step)
	Log     func(level, message string)
}

// Executor is an adapter that was activated for one attempt.
type Executor interface {
	executor.Adapter
	// Close ends the adapter's process.
	Close() error
}

// Step is one step of an attempt, as it begins and once more as it is over.
type Step struct {
	Operation operation.Kind
	Done      bool
	Outcome   operation.Outcome
	Micros    int64
}

// Run carries the attempt out until it is closed and nothing of it is left, or it
// waits for a person. Ending ctx asks for cancellation, or with ErrStopped as its cause only ends the attempt;
// what has to be stopped, kept or removed is done all the same. The error is that of the journal: an attempt that
// fails is not an error, its State says so; nor is one that somebody else closed, because its
// lease ran out.
func (a *Attempt) Run(ctx context.Context, s kernel.State) (kernel.State, error) {
	d := &drive{attempt: a, ctx: ctx, state: s, pending: a.First, blobs: a.Blobs}
	d.heart = &heart{attempt: a}
	d.services = &services{attempt: a, bundle: a.Bundle.Bundle(), offers: newOffers()}
	defer d.closeExecutor()
	defer d.answer(TooLate(s.Attempt))
	for {
		more, err := d.turn()
		switch {
		case reason.Is(err, reason.KernelStaleFence) && d.state.Bundle != nil:
			return d.yield()
		case err != nil || !more:
			return d.state, err
		}
	}
}

// drive is one Run. pending is what became known and is not committed yet; the first drafted
// of it stand in draft, which is nil for none.
type drive struct {
	attempt *Attempt
	ctx     context.Context
	state   kernel.State
	pending []kernel.Command
	draft   *ledger.Draft
	drafted int
	blobs   []journal.Blob
	// asked are the requests that are among what is pending.
	asked *Asked
	// told are the steps that are told once they are durable.
	told []Step

	heart    *heart
	services *services
	executor Executor
	accepted attestation.Accepted
	// handle is the execution handle that prepare returned, empty before.
	handle string
	// lied is how a checkpoint ended at which the adapter was caught lying.
	lied   operation.Outcome
	frozen environment.Frozen
	result protocol.CollectResult
}

// turn settles what is pending and begins what is next, in one commit, and runs what
// it began. It returns false when nothing is left to do.
func (d *drive) turn() (bool, error) {
	if err := d.alive(); err != nil {
		return false, fmt.Errorf("attempt %s: %w", d.state.Attempt, err)
	}
	err := d.decide()
	if err != nil {
		return false, err
	}
	d.endIfAsked()
	plan, err := d.draft.Next()
	if err != nil {
		return false, fmt.Errorf("attempt %s: %w", d.state.Attempt, err)
	}
	switch {
	case plan.Reduce:
		d.reduce(d.draft.State())
		return true, nil
	case len(plan.Resolve) > 0:
		return true, d.resolve(d.draft.State(), plan.Resolve)
	case plan.Reconcile:
		d.pending = append(d.pending, kernel.Reconciled{
			Found: environment.Look(d.closing(), d.attempt.Provider, d.draft.State()), Retry: d.attempt.Ledger.Retry(),
		})
		return true, nil
	case len(plan.Begin) > 0:
		for _, in := range plan.Begin {
			d.pending = append(d.pending, kernel.Begin{Intent: in})
		}
		opened, err := d.commit()
		if err != nil {
			return false, err
		}
		return true, d.perform(opened.Permits)
	}
	if len(d.pending) > 0 {
		_, err := d.commit()
		return false, err
	}
	return false, nil
}

// decide decides what is pending, as far as that is not done.
func (d *drive) decide() (err error) {
	if d.draft == nil {
		d.draft, err = d.attempt.Ledger.Draft(d.closing(), d.state.Fence())
	}
	if err == nil {
		err = d.draft.Add(d.pending[d.drafted:]...)
		d.drafted = len(d.pending)
	}
	if err != nil {
		return fmt.Errorf("attempt %s: %w", d.state.Attempt, err)
	}
	return nil
}

// reduce has the result accepted, together with what is to leave of it.
func (d *drive) reduce(s kernel.State) {
	proposals, blobs, err := outbox.Compose(d.closing(), d.attempt.Artifacts, d.attempt.Ledger.Kernel().Classes().Of, s, d.frozen.Manifest, d.attempt.Ledger.Now())
	if err != nil {
		d.fail(operation.Collect, operation.Refused(operation.NotApplied, err))
		return
	}
	d.keep(blobs...)
	d.pending = append(d.pending, kernel.Accept{Proposals: proposals})
}

// resolve asks by name what became of operations whose outcome is in doubt: their
// resource died while they ran.
func (d *drive) resolve(s kernel.State, intents []operation.Intent) error {
	ctx, cancel := environment.ReconciliationContext(d.closing(), s)
	defer cancel()
	for _, in := range intents {
		settle, err := d.attempt.Ledger.Resolve(ctx, s, in, environment.ByName{Provider: d.attempt.Provider})
		if err != nil {
			return err
		}
		d.pending = append(d.pending, settle)
	}
	return nil
}

// ErrStopped is the cause with which whoever carries attempts out on behalf of others ends their contexts. Nobody
// wants the work to stop: the attempt is closed as one that was lost, and another may follow.
var ErrStopped = errors.New("its host was stopped")

// endIfAsked adds the request for cancellation, or the end of an attempt whose host is stopped, once ctx has ended.
// Preconditions: what is pending is decided.
func (d *drive) endIfAsked() {
	if d.ctx.Err() == nil {
		return
	}
	cause := context.Cause(d.ctx)
	requests := []kernel.Command{kernel.RequestCancel{CancelRequested: kernel.CancelRequested{Reason: cause.Error()}}}
	asked, byCommand := cause.(*Asked)
	switch {
	case byCommand:
		requests = asked.commands
	case errors.Is(cause, ErrStopped):
		requests = []kernel.Command{kernel.Fence{Why: cause.Error()}}
	}
	now := d.draft.State()
	switch now.Of(kernel.AttemptMachine).State {
	case "leased", "running":
	default:
		return
	}
	if _, err := d.attempt.Ledger.Kernel().Decide(now, requests...); err != nil {
		return // The attempt is past the point where a cancellation means anything.
	}
	d.pending = append(d.pending, requests...)
	if err := d.decide(); err != nil {
		return // It is what the plan is refused with.
	}
	if byCommand {
		d.asked = asked
		d.keep(asked.blobs...)
	}
}

// answer tells whoever asked for cancellation by a command what became of it. Of more than
// one answer the first counts.
func (d *drive) answer(err error) {
	asked := d.asked
	if asked == nil {
		asked, _ = context.Cause(d.ctx).(*Asked)
	}
	if asked != nil {
		asked.Answer(err)
	}
}

// commit makes everything pending durable.
func (d *drive) commit() (ledger.Opened, error) {
	opened, err := d.attempt.Ledger.Commit(context.WithoutCancel(d.ctx), ledger.Turn{
		Fence: d.state.Fence(), Draft: d.draft, Commands: d.pending[d.drafted:], Blobs: d.blobs, Actor: d.attempt.Actor, Cause: d.attempt.Cause,
	})
	if err != nil {
		d.answer(err)
		return ledger.Opened{}, fmt.Errorf("attempt %s: %w", d.state.Attempt, err)
	}
	if d.asked != nil {
		d.asked.Answer(nil)
	}
	for _, step := range d.told {
		d.observe(step)
	}
	d.pending, d.draft, d.drafted, d.blobs, d.told, d.state = nil, nil, 0, nil, nil, opened.State
	d.heart.follow(opened.State)
	return opened, nil
}

// closing is the context of what must be done although a cancellation was asked for.
func (d *drive) closing() context.Context { return context.WithoutCancel(d.ctx) }

// patient is the context of a call to the adapter: it outlives a request for
// cancellation by no more than the adapter may take to notice.
func (d *drive) patient() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(d.closing())
	stop := context.AfterFunc(d.ctx, func() { time.AfterFunc(maxPatience, cancel) })
	return ctx, func() { stop(); cancel() }
}

// perform runs the effects of one turn, in order. Each waits for the guard of the one
// before; once one did not succeed, the rest are skipped and say so.
func (d *drive) perform(permits []ledger.Permit) error {
	failed := ""
	for i, p := range permits {
		kind := p.Intent().Kind
		if failed != "" && kind != operation.Destroy && kind != operation.Reset {
			settle, err := d.attempt.Ledger.Skip(p, failed+" did not succeed")
			if err != nil {
				return err
			}
			d.pending = append(d.pending, settle)
			continue
		}
		ok, err := d.step(p, permits[i+1:])
		if err != nil {
			return err
		}
		if !ok {
			failed = string(kind)
		}
		if kind == operation.Start {
			break // The launch that follows was run, or skipped, with it.
		}
	}
	return nil
}

// step runs one effect and adds what it comes to. It returns false when what follows
// in the turn must not run.
func (d *drive) step(p ledger.Permit, rest []ledger.Permit) (bool, error) {
	a, kind := d.attempt, p.Intent().Kind
	switch kind {
	case operation.Provision:
		ok, err := d.run(d.ctx, p, a.Environment.Provision())
		if err != nil || !ok {
			return false, err
		}
		return d.attest(), nil
	case operation.Materialize:
		return d.run(d.ctx, p, a.Environment.Materialize(d.accepted, a.Inputs))
	case operation.Start:
		return d.start(p, rest)
	case operation.Freeze:
		return d.freeze(p)
	case operation.Reset:
		return d.reset(p)
	case operation.Destroy:
		return d.destroy(p)
	}
	effect, err := d.executing(p)
	switch {
	case err != nil:
		return false, err
	case kind == operation.Cleanup:
		return d.settle(d.closing(), p, effect)
	case kind == operation.Prepare:
		return d.prepare(p, effect)
	case kind == operation.Cancel:
		// What is not proven by then is unknown, and reconciled.
		deadline := time.Duration(d.state.Bundle.Bundle().CancellationDeadlineMillis) * time.Millisecond
		ctx, cancel := context.WithTimeout(d.closing(), deadline)
		defer cancel()
		return d.run(ctx, p, effect)
	}
	ctx, cancel := d.patient()
	defer cancel()
	return d.run(ctx, p, effect)
}

// destroy removes the environment, under the retention policy that the intent was recorded
// with.
func (d *drive) destroy(p ledger.Permit) (bool, error) {
	request, err := d.attempt.Ledger.Kernel().Request(d.state, p.Intent())
	if err != nil {
		return false, err
	}
	var policy protocol.RetentionParameters
	if err := canonical.Decode(request.Parameters, &policy); err != nil {
		return false, fmt.Errorf("request of %s: %w", p.Intent().Key, err)
	}
	return d.settle(d.closing(), p, d.attempt.Environment.Destroy(policy))
}

// settle runs an effect whose failure concludes nothing: the attempt is concluded.
func (d *drive) settle(ctx context.Context, p ledger.Permit, e ledger.Effect) (bool, error) {
	d.observe(Step{Operation: p.Intent().Kind})
	s, err := d.attempt.Ledger.Run(ctx, p, e)
	if err != nil {
		return false, err
	}
	d.pending = append(d.pending, s)
	d.told = append(d.told, Step{Operation: p.Intent().Kind, Done: true, Outcome: s.Outcome, Micros: s.ElapsedMicros})
	return s.Outcome.Knowledge == operation.Applied, nil
}

// run runs an effect and concludes the attempt when it did not succeed.
func (d *drive) run(ctx context.Context, p ledger.Permit, e ledger.Effect) (bool, error) {
	ok, err := d.settle(ctx, p, e)
	if err != nil || ok {
		return ok, err
	}
	s := d.pending[len(d.pending)-1].(kernel.Settle)
	d.fail(p.Intent().Kind, s.Outcome)
	return false, nil
}

// fail concludes the attempt with what an outcome says, unless it was the request for
// cancellation that ended the step.
func (d *drive) fail(stage operation.Kind, out operation.Outcome) {
	if d.ctx.Err() != nil && (ours(stage) || out.Code == reason.AttemptCancelled) || stage == operation.Cancel {
		return
	}
	f := kernel.Failure{Conclusion: conclusion(stage, out), Stage: string(stage), Code: out.Code, Detail: out.Detail, Remedy: out.Remedy}
	d.pending = append(d.pending, kernel.Fail{Failure: f, Retry: d.attempt.Ledger.Retry()})
}

// ours reports whether a stage is a call to the provider, whose word is the host's own.
func ours(stage operation.Kind) bool {
	switch stage {
	case operation.Provision, operation.Materialize, operation.Launch, operation.Freeze:
		return true
	}
	return false
}

// conclusion maps an outcome that is no success to how the attempt ended. That something
// was lost or ran out of time is a fact of the host's; an adapter can only fail.
func conclusion(stage operation.Kind, out operation.Outcome) workorder.Conclusion {
	switch {
	case out.Knowledge == operation.Unknown && out.Code != reason.EnvironmentDead:
		return workorder.Unknown
	case !ours(stage):
		return workorder.Failed
	case out.Code == reason.EnvironmentDead:
		return workorder.Lost
	case out.Code.Exit() == reason.ExitTimeout:
		return workorder.Timeout
	}
	return workorder.Failed
}

// attest accepts what the environment measured of itself, or concludes the attempt when
// it is not what the manifest orders.
func (d *drive) attest() bool {
	expected, report, err := d.attempt.Environment.Attest(d.ctx)
	if err == nil {
		d.accepted, err = d.attempt.Ledger.Kernel().Accept(d.state, expected, report)
	}
	if err != nil {
		d.fail(operation.Provision, operation.Refused(operation.NotApplied, err))
		return false
	}
	d.pending = append(d.pending, kernel.Attest{Expected: expected, Report: report})
	return true
}

func (d *drive) observe(s Step) {
	if d.attempt.Observe != nil {
		d.attempt.Observe(s)
	}
}

// freeze copies the declared outputs out and keeps what they are.
func (d *drive) freeze(p ledger.Permit) (bool, error) {
	freezing := d.attempt.Environment.FreezeOutputs(d.attempt.Artifacts)
	ok, err := d.run(d.closing(), p, freezing)
	d.frozen = freezing.Frozen()
	d.keep(d.frozen.Blobs...)
	return ok, err
}

// Collect implements executor.Collector: it holds the structured result against the
// output schema, in the frozen bytes. What still stands in the environment is not
// looked at.
func (d *drive) Collect(ctx context.Context, path string) (protocol.CollectResult, error) {
	d.result = protocol.CollectResult{Manifest: d.frozen.Result.Manifest}
	if path == "" {
		return d.result, nil
	}
	for _, e := range d.frozen.Manifest.Entries {
		if e.Path != path {
			continue
		}
		document, err := d.frozenBytes(ctx, e)
		if err != nil {
			return protocol.CollectResult{}, err
		}
		d.result.Structured = e.Digest
		if d.attempt.Schema == nil {
			return d.result, nil
		}
		d.result.Schema = canonical.Sum(d.attempt.Schema)
		return d.result, d.mismatch(path, d.attempt.Validate(d.attempt.Schema, document))
	}
	return protocol.CollectResult{}, reason.New(reason.SchemaResultMissing, "the structured result was not among the frozen outputs", path,
		"declare it under outputs.paths, and have the tool write it")
}

// mismatch says of a result that does not hold against its schema which file it is and
// who can mend it.
func (d *drive) mismatch(path string, err error) error {
	r, ok := reason.As(err)
	if !ok {
		return err
	}
	where := path
	if _, at, found := strings.Cut(r.Where, ":"); found {
		where += ":" + at
	}
	return reason.New(r.Code, "the result does not hold against the output schema: "+r.What, where,
		"mend the tool, or the schema that outputs.schema names").Because(err)
}

// frozenBytes reads a frozen output, from the turn that is not committed yet or from
// the store.
func (d *drive) frozenBytes(ctx context.Context, e protocol.ArtifactEntry) ([]byte, error) {
	for _, b := range d.frozen.Blobs {
		if b.Digest == e.Digest {
			return b.Bytes, nil
		}
	}
	return d.attempt.Artifacts.Read(ctx, e.Digest, e.Size)
}
