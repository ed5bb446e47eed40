package model_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/schemas"
	"github.com/writ-runtime/writ/testing/fixture"
)

// kernelWith is a kernel of this release in which a launch is of the given class.
func kernelWith(t *rapid.T, class operation.EffectClass) kernel.Kernel {
	changed := fstest.MapFS{}
	must(t, fs.WalkDir(schemas.FS, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(schemas.FS, path)
		if path == "effect-classes.v1.json" {
			old, was := []byte(`"operation": "launch", "effect_class": "reconcilable"`), raw
			raw = bytes.Replace(raw, old, []byte(`"operation": "launch", "effect_class": "`+string(class)+`"`), 1)
			if !json.Valid(raw) || bytes.Equal(raw, was) && class != operation.Reconcilable {
				t.Fatal("the class of a launch is not where it was")
			}
		}
		changed[path] = &fstest.MapFile{Data: raw}
		return err
	}))
	k, err := kernel.Open(changed)
	must(t, err)
	return k
}

// fates draws what happens to a call.
func fates(t *rapid.T) func() fate {
	return func() fate {
		return rapid.SampledFrom([]fate{answered, answered, answered, refused, lostBefore, lostAfter, lostAfter}).Draw(t, "fate")
	}
}

// step has an attempt that was activated go on by one step.
func (m *machine) step(t *rapid.T) {
	a, _ := m.attempt(t, func(s kernel.State) bool { return s.Bundle != nil && !m.kernel.Finished(s) })
	m.advance(t, a, fates(t))
}

// walk has an attempt go on while the world answers.
func (m *machine) walk(t *rapid.T) {
	a, _ := m.attempt(t, func(s kernel.State) bool { return s.Bundle != nil && !m.kernel.Finished(s) })
	lives := m.lives
	for range rapid.IntRange(2, 8).Draw(t, "steps") {
		// What runs is what most is lost of.
		next := func() fate { return answered }
		if d := m.drives[a.id]; d != nil && len(d.permits) > 0 && d.permits[0].Intent().Kind == operation.Launch {
			next = fates(t)
		}
		if m.advance(t, a, next); m.lives != lives {
			return
		}
	}
}

// advance takes one step of an attempt: it fences what an earlier life left, runs one effect,
// or takes one turn.
func (m *machine) advance(t *rapid.T, a *attemptRef, next func() fate) {
	s := m.state(t, a.id)
	d := m.drives[a.id]
	if d == nil {
		m.drives[a.id] = &drive{}
		if !m.kernel.Closed(s) {
			m.turn(t, a, s, kernel.Fence{Why: "its supervisor is gone"})
		}
		return
	}
	if len(d.permits) > 0 {
		m.run(t, a, d, s, next())
		return
	}
	commands, s := m.known(t, d, s)
	p, err := m.kernel.Next(s)
	must(t, err)
	switch {
	case p.Reduce:
		commands = append(commands, kernel.Accept{})
	case p.Reconcile:
		f := next()
		can := f == answered || f == lostAfter
		commands = append(commands, kernel.Reconciled{Found: m.world.look(s.Resource, can), Retry: m.ledger.Retry()})
	case len(p.Resolve) > 0 && len(commands) == 0:
		for _, in := range p.Resolve {
			settle, err := m.ledger.Resolve(m.ctx, s, in, effect{world: m.world, fate: next()})
			must(t, err)
			commands = append(commands, settle)
		}
	}
	for _, in := range p.Begin {
		commands = append(commands, kernel.Begin{Intent: in})
	}
	if len(commands) > 0 {
		m.turn(t, a, m.state(t, a.id), commands...)
	}
}

// run spends one permit, and keeps what became known. Once one effect of a turn did not
// succeed the others are skipped, but for what removes.
func (m *machine) run(t *rapid.T, a *attemptRef, d *drive, s kernel.State, f fate) {
	p := d.permits[0]
	d.permits = d.permits[1:]
	in := p.Intent()
	var settle kernel.Settle
	var err error
	if d.failed != nil && in.Kind != operation.Destroy {
		settle, err = m.ledger.Skip(p, d.failed.Stage+" did not succeed")
	} else {
		settle, err = m.ledger.Run(m.ctx, p, effect{world: m.world, fate: f})
	}
	must(t, err)
	m.spent = append(m.spent, p)
	d.settled = append(d.settled, settle)
	if k := settle.Outcome.Knowledge; k != operation.Applied && d.failed == nil {
		conclusion := workorder.Failed
		if k == operation.Unknown {
			conclusion = workorder.Unknown
			m.seen["lost"]++
			// What was not heard of may still come, much later.
			late, err := m.ledger.Resolve(m.ctx, s, in, effect{world: m.world, heard: true})
			must(t, err)
			m.late = append(m.late, message{a, late})
		}
		d.failed = &kernel.Failure{Conclusion: conclusion, Stage: string(in.Kind), Code: settle.Outcome.Code, Detail: "a step did not succeed"}
	}
}

// known is what became known and follows from itself, with the state after it. A fact is
// never refused; what follows from facts is left out where something else came first.
func (m *machine) known(t *rapid.T, d *drive, s kernel.State) ([]kernel.Command, kernel.State) {
	var commands []kernel.Command
	follow := func(c kernel.Command) bool {
		after, err := m.kernel.Decide(s, c)
		if err == nil {
			commands, s = append(commands, c), after.State
		}
		return err == nil
	}
	for _, settle := range d.settled {
		if !follow(settle) {
			t.Fatalf("the ledger refuses a fact: %s", settle.Key)
		}
		if s.Of(kernel.EnvironmentMachine).State == "provisioned" {
			expected, report := fixture.Attestation(m.t, m.kernel, s)
			follow(kernel.Attest{Expected: expected, Report: report})
		}
	}
	if len(d.settled) == 0 {
		return nil, s
	}
	if f := d.failed; f != nil && !m.kernel.Closed(s) {
		switch operation.Kind(f.Stage) {
		case operation.Cancel, operation.Cleanup, operation.Destroy: // Their failure concludes nothing.
		default:
			follow(kernel.Fail{Failure: *f, Retry: m.ledger.Retry()})
		}
	}
	var launches []operation.Key
	for _, o := range s.Operations() {
		if o.Intent.Kind == operation.Launch {
			launches = append(launches, o.Intent.Key)
		}
	}
	if d.failed == nil && s.Of(kernel.ExecutionMachine).State == "running" {
		if !follow(kernel.Complete{Report: protocol.CompletionReport{Handle: "h", Launches: launches}}) {
			t.Fatal("what runs cannot be reported complete")
		}
	}
	return commands, s
}

// turn commits commands of an attempt, and takes what it opens.
func (m *machine) turn(t *rapid.T, a *attemptRef, s kernel.State, commands ...kernel.Command) bool {
	opened, err := m.ledger.Commit(m.ctx, ledger.Turn{Fence: s.Fence(), Commands: commands, Actor: "uid:0"})
	lives, before := m.lives, m.ref.recorded
	ok := m.commit(t, opened, err, func() { m.recorded(a, commands) })
	if m.lives != lives {
		return ok
	}
	if !ok {
		t.Fatalf("a turn of %s is refused: %v", a.id, err)
	}
	if m.ref.recorded == before {
		t.Fatalf("a turn of %s makes no progress: %+v", a.id, commands)
	}
	for _, c := range commands {
		if _, fenced := c.(kernel.Fence); fenced && opened.State.Generation != s.Generation+1 {
			t.Fatalf("the fence of %s is raised from generation %d to %d", a.id, s.Generation, opened.State.Generation)
		}
		if c, asked := c.(kernel.Reconciled); asked && !c.Found.Gone && opened.State.Of(kernel.AttemptMachine).State != "unknown_terminal" {
			t.Fatalf("something of %s is alive, and it is %s", a.id, opened.State.Of(kernel.AttemptMachine).State)
		}
	}
	d := m.drives[a.id]
	for _, settle := range d.settled {
		m.told = append(m.told, message{a, settle})
	}
	d.permits, d.settled, d.failed = opened.Permits, nil, nil
	return true
}

// recorded has the reference take what a durable turn holds.
func (m *machine) recorded(a *attemptRef, commands []kernel.Command) {
	for _, c := range commands {
		switch c := c.(type) {
		case kernel.Begin:
			a.operations[c.Intent.Key] = &operationRef{intent: c.Intent, state: "intended"}
		case kernel.Settle:
			a.operations[c.Key].answer(c)
		}
	}
}

// lateAnswer delivers an answer that was given up.
func (m *machine) lateAnswer(t *rapid.T) {
	if len(m.late) == 0 {
		t.Skip("none is on its way")
	}
	late := m.late[0]
	m.late = m.late[1:]
	m.fact(t, late)
	m.seen["late"]++
}

// answerAgain repeats an answer that was recorded.
func (m *machine) answerAgain(t *rapid.T) {
	if len(m.told) == 0 {
		t.Skip("none was recorded")
	}
	m.fact(t, rapid.SampledFrom(m.told).Draw(t, "answer"))
}

// fact commits an answer alone, under the fence that it was given under: that is never
// refused. One that is given to an older fence, or to what is settled, moves nothing.
func (m *machine) fact(t *rapid.T, f message) {
	before, order := m.state(t, f.attempt.id), m.order(t, f.attempt.order).Of(kernel.WorkOrderMachine)
	old := f.settle.Generation != before.Generation || f.attempt.operations[f.settle.Key].settled()
	fence := workorder.Fence{Attempt: f.attempt.id, Generation: f.settle.Generation, Phase: workorder.Live}
	opened, err := m.ledger.Commit(m.ctx, ledger.Turn{Fence: fence, Commands: []kernel.Command{f.settle}, Actor: "uid:0"})
	if !m.commit(t, opened, err, func() { m.recorded(f.attempt, []kernel.Command{f.settle}) }) && !isDoubt(err) {
		t.Fatalf("a fact is refused: %v", err)
	}
	// Of its work order an attempt remembers what was there when something last happened to it.
	if now := m.order(t, f.attempt.order).Of(kernel.WorkOrderMachine); old && now != order {
		t.Fatalf("an answer that comes too late moves the work order from %+v to %+v", order, now)
	}
	for _, machine := range []string{kernel.AttemptMachine, kernel.ExecutionMachine, kernel.EnvironmentMachine} {
		if now := m.state(t, f.attempt.id).Of(machine); old && now != before.Of(machine) {
			t.Fatalf("an answer that comes too late moves the %s from %+v to %+v", machine, before.Of(machine), now)
		}
	}
}
