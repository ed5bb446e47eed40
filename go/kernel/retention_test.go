package kernel_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// week is the policy that keeps for a week.
func week() protocol.RetentionParameters { return protocol.RetentionParameters{Keep: true, Days: 7} }

// keeping makes a bundle keep its workspace for a week.
func keeping(b *attemptbundle.Bundle) {
	b.Environment.Retention = attemptbundle.Retention(week())
	b.Outputs.Retention = b.Environment.Retention
}

// reading is a reading of the host's clock, so long after the workspace was kept.
func reading(after time.Duration) lifecycle.Observation {
	return lifecycle.Observation{Domain: "host", UnixMilli: fixture.Now + after.Milliseconds()}
}

func retention() protocol.Retention {
	return protocol.Retention{
		Policy: week(), At: reading(0), Until: week().Until(reading(0)), Files: 2, Bytes: 3, Manifest: fixture.Digest("manifest"),
	}
}

// kept is the answer of a destroy that kept something.
func (l *life) kept(in operation.Intent) kernel.Settle {
	l.t.Helper()
	r, s := retention(), l.applied(in)
	s.Outcome = operation.Done(protocol.RemovalResult{Resource: l.state.Resource, Gone: true, Kept: r.Bytes, Retention: &r})
	return s
}

// failed fails an attempt whose workspace is to be kept, and begins its removal.
func (l *life) failed() operation.Intent {
	l.t.Helper()
	l.change = keeping
	l.completed()
	l.do(kernel.Fail{Failure: kernel.Failure{Conclusion: workorder.Failed, Code: reason.FreezeMissing, Detail: "no output"}})
	in := l.begin(operation.Cleanup, operation.Destroy)
	l.do(l.applied(in[0]))
	return in[1]
}

// retained is failed, with something kept.
func (l *life) retained() {
	l.t.Helper()
	l.do(l.kept(l.failed()))
}

// expire begins the removal of what is kept, a week later.
func (l *life) expire() operation.Intent {
	l.t.Helper()
	return l.do(kernel.ExpireRetention{Clock: steady(retention().Until)}).Begun[0]
}

// policy is the retention policy that an intent of the attempt was recorded with.
func (l *life) policy(in operation.Intent) protocol.RetentionParameters {
	l.t.Helper()
	r, err := l.kernel.Request(l.state, in)
	if err != nil {
		l.t.Fatal(err)
	}
	digest, err := canonical.DigestOf(r)
	if err != nil || digest != in.Digest {
		l.t.Fatalf("the request of %s has digest %s, the intent %s: %v", in.Key, digest, in.Digest, err)
	}
	var p protocol.RetentionParameters
	if err := canonical.Decode(r.Parameters, &p); err != nil {
		l.t.Fatal(err)
	}
	return p
}

// newest is the newest event of the environment.
func (l *life) newest() (e lifecycle.Event) {
	for _, one := range l.events {
		if one.Subject.Machine() == kernel.EnvironmentMachine {
			e = one
		}
	}
	return e
}

// What a destroy kept closes the obligation by its retention receipt, which names policy,
// expiry and bytes; one that kept nothing closes it by its destruction receipt (L5).
func TestAnEnvironmentIsRetainedOrDestroyed(t *testing.T) {
	for name, test := range map[string]struct {
		answer  func(l *life, in operation.Intent) kernel.Settle
		state   lifecycle.State
		receipt string
	}{
		"something is kept": {(*life).kept, "retained", lifecycle.RetentionReceipt},
		"nothing is left": {func(l *life, in operation.Intent) kernel.Settle {
			s := l.applied(in)
			s.Outcome = operation.Done(protocol.RemovalResult{Resource: l.state.Resource, Gone: true}).Because(
				reason.New(reason.RetentionNothingLeft, "its worker was dead", "", ""))
			return s
		}, "destroyed", "DestructionReceipt"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			in := l.failed()
			if p := l.policy(in); p != week() {
				t.Errorf("it is asked for with %+v", p)
			}
			answer := test.answer(l, in)
			l.do(answer)
			l.want(kernel.EnvironmentMachine, test.state)
			e := l.newest()
			if len(e.Guards) != 1 || e.Guards[0] != (lifecycle.Guard{Name: test.receipt, Digest: canonical.Sum(answer.Receipt)}) {
				t.Errorf("%s rests on %+v", e.Family, e.Guards)
			}
			if !l.next().Done {
				t.Errorf("then it plans %+v", l.next())
			}
			if kept := l.state.Retained; test.state == "retained" && (kept == nil || kept.Retention != retention() || kept.Expired != nil || kept.Ended) || test.state != "retained" && kept != nil {
				t.Errorf("kept is %+v", kept)
			}
		})
	}
}

// A keeping that fails counts among the tries to destroy. After as many as the bundle
// allows, as many more keep nothing, and then a person is waited for.
func TestAKeepingThatFailsIsTriedWithinItsBound(t *testing.T) {
	l := newLife(t)
	in := l.failed()
	var keep []bool
	for {
		keep = append(keep, l.policy(in).Keep)
		l.do(l.settle(in, operation.NotApplied))
		l.want(kernel.EnvironmentMachine, "destroying")
		p := l.next()
		if len(p.Begin) == 0 {
			if p.Wait == "" || p.Done {
				t.Errorf("it plans %+v", p)
			}
			break
		}
		in = l.begin(operation.Destroy)[0]
	}
	if want := []bool{true, true, true, false, false, false}; !reflect.DeepEqual(keep, want) {
		t.Errorf("the tries kept: %v, want %v", keep, want)
	}
	if l.state.Retained != nil {
		t.Errorf("kept is %+v", l.state.Retained)
	}
}

// A keeping whose answer was lost is asked about, and found by its name.
func TestAKeepingInDoubtIsAskedAbout(t *testing.T) {
	l := newLife(t)
	in := l.failed()
	l.do(l.settle(in, operation.Unknown))
	l.want(kernel.EnvironmentMachine, "destroying")
	if p := l.next(); len(p.Resolve) != 1 || p.Resolve[0] != in {
		t.Fatalf("it plans %+v", p)
	}
	l.do(l.kept(in))
	l.want(kernel.EnvironmentMachine, "retained")
	if l.family(kernel.OperationMachine) != "operation.resolved_applied" || !l.next().Done {
		t.Errorf("the answer is %s, then it plans %+v", l.family(kernel.OperationMachine), l.next())
	}
}

// What is kept expires by a recorded clock that counts, not before its time, and once.
func TestWhatIsKeptExpiresOnce(t *testing.T) {
	l := newLife(t)
	destroy := l.failed()
	end := retention().Until
	l.refused(reason.KernelWrongState, kernel.ExpireRetention{Clock: steady(end)}) // Nothing is kept yet.
	l.do(l.kept(destroy))
	early := lifecycle.Observation{Domain: end.Domain, UnixMilli: end.UnixMilli - 1}
	l.refused(reason.KernelWrongState, kernel.ExpireRetention{Clock: steady(early)})
	l.refused(reason.KernelWrongState, kernel.ExpireRetention{Clock: steady(lifecycle.Observation{Domain: "other", UnixMilli: end.UnixMilli})})
	blocked := steady(end)
	blocked.At.State = "blocked"
	l.refused(reason.ClockBlocked, kernel.ExpireRetention{Clock: blocked})

	d := l.do(kernel.ExpireRetention{Clock: steady(end)})
	if len(d.Begun) != 1 {
		t.Fatalf("begun are %+v", d.Begun)
	}
	in := d.Begun[0]
	if in.Kind != operation.Destroy || in.Key.Purpose() != protocol.RetentionPurpose || in.Key == destroy.Key || in.Class != operation.Reconcilable || in.Resource != l.state.Resource {
		t.Errorf("the intent is %+v", in)
	}
	if p := l.policy(in); p.Keep {
		t.Errorf("it is asked for with %+v", p)
	}
	l.want(kernel.EnvironmentMachine, "retained")
	if kept := l.state.Retained; kept.Expired == nil || *kept.Expired != end || kept.Ended {
		t.Errorf("kept is %+v", kept)
	}
	l.refused(reason.KernelWrongState, kernel.ExpireRetention{Clock: steady(end)}) // It is being removed.
	// A later life finds the intent open, and asks.
	if p := l.next(); len(p.Resolve) != 1 || p.Resolve[0] != in {
		t.Errorf("it plans %+v", p)
	}
	l.do(l.applied(in))
	e := l.newest()
	at, err := canonical.DigestOf(end)
	if err != nil {
		t.Fatal(err)
	}
	want := []lifecycle.Guard{{Name: "ClockObservation", Digest: at}, {Name: "DestructionReceipt", Digest: canonical.Sum(l.applied(in).Receipt)}}
	if e.Family != "environment.retention_ended" || !reflect.DeepEqual(e.Guards, want) || string(e.Body) != fmt.Sprintf(`{"domain":"host","unix_ms":%d}`, end.UnixMilli) {
		t.Errorf("the end is %s on %+v: %s", e.Family, e.Guards, e.Body)
	}
	if !l.state.Retained.Ended || !l.next().Done {
		t.Errorf("kept is %+v, then it plans %+v", l.state.Retained, l.next())
	}
	l.refused(reason.KernelWrongState, kernel.ExpireRetention{Clock: steady(end)}) // It is removed.
}

// Nothing but a clock begins the removal of what is kept.
func TestOnlyAClockEndsARetention(t *testing.T) {
	l := newLife(t)
	l.retained()
	before := l.state
	in := l.expire()
	l.state = before
	l.refused(reason.CapabilityNotGranted, kernel.Begin{Intent: in})
}

// A removal that does not work, or of which that is not known, leaves what is kept where it
// is; no attempt waits for it, and it ends once it is known to be gone.
func TestARemovalThatDoesNotWorkIsNoEnd(t *testing.T) {
	for _, k := range []operation.Knowledge{operation.NotApplied, operation.Unknown} {
		t.Run(string(k), func(t *testing.T) {
			l := newLife(t)
			l.retained()
			in := l.expire()
			l.do(l.settle(in, k))
			if l.newest().Family != "environment.retention_expired" || l.state.Retained.Ended {
				t.Errorf("after an answer %s the newest event is %s", k, l.newest().Family)
			}
			if k == operation.NotApplied {
				if !l.next().Done {
					t.Errorf("it plans %+v", l.next())
				}
				return
			}
			l.do(l.applied(in))
			if l.newest().Family != "environment.retention_ended" || !l.state.Retained.Ended || !l.next().Done {
				t.Errorf("the newest event is %s, then it plans %+v", l.newest().Family, l.next())
			}
		})
	}
}

// What was kept by a clock that was wrong is kept as long, from where the clock counts again.
func TestARetentionOnAClockThatWasWrong(t *testing.T) {
	const ahead = 50 * 365 * 24 * time.Hour
	r := retention()
	r.At = reading(ahead)
	r.Until = r.Policy.Until(r.At)
	c := &clock{t: t, kernel: fixture.Kernel(t), clock: kernel.Clock{Domain: "host"}}
	if c.clock.KeptUntil(r) != r.Until {
		t.Errorf("it ends at %+v", c.clock.KeptUntil(r))
	}
	c.do(kernel.ObserveClock{Clock: c.clock, Now: reading(time.Minute), Seen: r.At})
	if c.clock.Steady() {
		t.Fatalf("%+v counts", c.clock)
	}
	c.do(kernel.ReconcileClock{Clock: c.clock, ClockReconciliation: kernel.ClockReconciliation{
		From: reading(time.Minute), ExpectedVersion: c.clock.At.Version, Principal: "uid:1000", Reason: "it was ahead",
	}, Ingress: fixture.Digest("ingress")})
	if want := week().Until(reading(time.Minute)); c.clock.KeptUntil(r) != want {
		t.Errorf("it ends at %+v, want %+v", c.clock.KeptUntil(r), want)
	}
	// What is kept later, at a reading that the clock had once while it was wrong, is kept as
	// long as was promised.
	r.At = reading(30 * 24 * time.Hour)
	r.Until = r.Policy.Until(r.At)
	c.do(kernel.ObserveClock{Clock: c.clock, Now: r.At})
	if !c.clock.Steady() || c.clock.KeptUntil(r) != r.Until {
		t.Errorf("kept at %+v it ends at %+v on %+v", r.At, c.clock.KeptUntil(r), c.clock)
	}
}
