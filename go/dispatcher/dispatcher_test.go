package dispatcher_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/dispatcher"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// TestReconcile ends a supervisor at each of its steps. Whatever it left open is fenced,
// resolved by its name and closed with what became of it, which is not always a loss.
func TestReconcile(t *testing.T) {
	h := newHost(t)
	for name, test := range map[string]struct {
		until func(*life)
		// worker says that one lives, running that its guest does.
		worker, running bool
		attempt         lifecycle.State
		conclusion      workorder.Conclusion
		generation      uint64
		environment     lifecycle.State
		// known is what is known of each kind of operation that was open, and of those that
		// the removal needed.
		known map[operation.Kind]operation.Knowledge
	}{
		"reserved": {
			until: func(*life) {}, attempt: "failed", conclusion: workorder.Lost, generation: 1,
		},
		"before anything was started": {
			until: (*life).begin, attempt: "retryable_failed", conclusion: workorder.Lost, generation: 2, environment: "destroyed",
			known: map[operation.Kind]operation.Knowledge{
				operation.Provision: operation.Unknown, operation.Materialize: operation.Unknown, operation.Prepare: operation.Unknown, operation.Destroy: operation.Applied,
			},
		},
		"with a worker that the journal does not know of": {
			until: (*life).provision, worker: true, attempt: "retryable_failed", conclusion: workorder.Lost, generation: 2, environment: "destroyed",
			known: map[operation.Kind]operation.Knowledge{
				operation.Provision: operation.Unknown, operation.Materialize: operation.Unknown, operation.Prepare: operation.Unknown, operation.Destroy: operation.Applied,
			},
		},
		"while its guest runs": {
			until: (*life).launch, worker: true, running: true, attempt: "retryable_failed", conclusion: workorder.Lost, generation: 2, environment: "destroyed",
			known: map[operation.Kind]operation.Knowledge{
				operation.Prepare: operation.Applied, operation.Start: operation.Unknown, operation.Launch: operation.Unknown,
				operation.Cleanup: operation.Applied, operation.Destroy: operation.Applied,
			},
		},
		"while it is cancelled": {
			until: (*life).cancel, worker: true, running: true, attempt: "cancelled_no_effect", conclusion: workorder.Cancelled, generation: 2, environment: "destroyed",
			known: map[operation.Kind]operation.Knowledge{
				operation.Cancel: operation.Applied, operation.Cleanup: operation.Applied, operation.Destroy: operation.Applied,
			},
		},
		"while it is removed": {
			until: (*life).succeed, worker: true, running: true, attempt: "accepted", conclusion: workorder.Succeeded, generation: 1, environment: "destroyed",
			known: map[operation.Kind]operation.Knowledge{operation.Cleanup: operation.Applied, operation.Destroy: operation.Applied},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := h.newLife(t)
			test.until(l)
			before := l.State.Fence()
			if standing, err := os.ReadDir(l.workspaces); err != nil || (len(standing) == 1) != test.worker {
				t.Fatalf("before: %v, %v", standing, err)
			}
			closed := l.reconcile(l.provider)
			if c := one(t, closed); c.Attempt != fixture.Attempt || c.Err != nil || c.Waits != "" {
				t.Fatalf("%s waits for %q, %v", c.Attempt, c.Waits, c.Err)
			}
			s := l.State
			if s.Result == nil || s.Result.Conclusion != test.conclusion {
				t.Errorf("ended %+v", s.Result)
			}
			if at := s.Of(kernel.AttemptMachine).State; at != test.attempt {
				t.Errorf("the attempt is %s", at)
			}
			if at := s.Of(kernel.EnvironmentMachine).State; at != test.environment {
				t.Errorf("the environment is %s", at)
			}
			if s.Generation != test.generation {
				t.Errorf("the fence is at generation %d", s.Generation)
			}
			l.knows(test.known)
			if left, err := os.ReadDir(l.workspaces); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if test.running {
				if out := <-l.guest; out.Code != reason.EnvironmentDead {
					t.Errorf("the guest ended %s, %s: %s", out.Knowledge, out.Code, out.Detail)
				}
			}
			if test.generation > before.Generation {
				_, err := l.Ledger.Commit(t.Context(), ledger.Turn{Fence: before, Commands: []kernel.Command{kernel.Accept{}}, Actor: "uid:0"})
				if !reason.Is(err, reason.KernelStaleFence) {
					t.Errorf("under the old fence: %v", err)
				}
			}
			if again := l.reconcile(l.provider); len(again) != 0 {
				t.Errorf("closed once more: %d", len(again))
			}
		})
	}
}

// one returns the only attempt that was found open.
func one(t *testing.T, closed []dispatcher.Closed) dispatcher.Closed {
	t.Helper()
	if len(closed) != 1 {
		t.Fatalf("%d attempts were found open", len(closed))
	}
	return closed[0]
}

// knows fails the test unless every operation of a listed kind ended as listed, and none
// of another is in doubt.
func (l *life) knows(known map[operation.Kind]operation.Knowledge) {
	l.t.Helper()
	seen := map[operation.Kind]bool{}
	for _, o := range l.State.Operations() {
		in, out := o.Intent, o.Record.Outcome
		seen[in.Kind] = true
		want, listed := known[in.Kind]
		switch {
		case listed && out.Knowledge != want, !listed && out.Knowledge == operation.Unknown, o.State == "intended":
			l.t.Errorf("%s ended %s, %s: %s", in.Kind, out.Knowledge, out.Code, out.Detail)
		case out.Knowledge == operation.Unknown && out.Code != reason.OperationDissolved:
			l.t.Errorf("%s is in doubt: %s: %s", in.Kind, out.Code, out.Detail)
		}
	}
	for kind := range known {
		if !seen[kind] {
			l.t.Errorf("there is no %s", kind)
		}
	}
}

// What can neither be found nor ended is not called lost: it is unknown, and a person is
// asked for.
func TestReconcileAssumesNothing(t *testing.T) {
	l := newHost(t).newLife(t)
	l.launch()
	if c := one(t, l.reconcile(blind{l.provider})); c.Err != nil || !strings.Contains(c.Waits, "a person") {
		t.Fatalf("it waits for %q, %v", c.Waits, c.Err)
	}
	if r := l.State.Result; r == nil || r.Conclusion != workorder.Unknown || r.Code != reason.AttemptUnknown {
		t.Errorf("ended %+v", r)
	}
	if at := l.State.Of(kernel.EnvironmentMachine).State; at != "destroying" {
		t.Errorf("the environment is %s", at)
	}
	for _, o := range l.State.Operations() {
		if o.Intent.Kind == operation.Destroy && o.Record.Outcome.Knowledge != operation.Unknown {
			t.Errorf("destroy ended %s", o.Record.Outcome.Knowledge)
		}
	}
	if found, err := l.provider.Reconcile(t.Context(), l.State.Resource); err != nil || !found.WasAlive {
		t.Errorf("found %+v, %v", found, err)
	}
	<-l.guest
}

// An attempt whose provider this release does not have stays as it is.
func TestReconcileWithoutItsProvider(t *testing.T) {
	l := newHost(t).newLife(t)
	l.provision()
	before := l.State.Events()
	if c := one(t, l.reconcile()); c.Err != nil || !strings.Contains(c.Waits, "wasm") {
		t.Errorf("it waits for %q, %v", c.Waits, c.Err)
	}
	if l.State.Events() != before {
		t.Errorf("%d events became %d", before, l.State.Events())
	}
}

// blind is a provider that cannot see what is there.
type blind struct{ environment.Provider }

var errBlind = errors.New("nothing can be seen")

func (blind) Reconcile(_ context.Context, resource string) (protocol.EnvironmentReconciliation, error) {
	return protocol.EnvironmentReconciliation{Resource: resource}, errBlind
}

func (blind) Resolve(context.Context, operation.Intent) operation.Outcome {
	return operation.Refused(operation.Unknown, errBlind)
}
