package ledger_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/schemas"
	"github.com/writ-runtime/writ/testing/fixture"
)

// classed is a kernel under the registry in which kind is of the class.
func classed(t *testing.T, kind operation.Kind, class operation.EffectClass) kernel.Kernel {
	t.Helper()
	raw, err := schemas.FS.ReadFile("effect-classes.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	k := fixture.Kernel(t)
	from := fmt.Sprintf(`"operation": %q, "effect_class": %q`, kind, k.Classes().Of(kind))
	if !bytes.Contains(raw, []byte(from)) {
		t.Fatalf("the registry does not hold %s", from)
	}
	classes, err := operation.ParseClasses(bytes.Replace(raw, []byte(from), fmt.Appendf(nil, `"operation": %q, "effect_class": %q`, kind, class), 1))
	if err != nil {
		t.Fatal(err)
	}
	return kernel.New(k.Transitions(), classes, k.Facts())
}

// deeds is an effect on the world: each performance and each question is a line of a file,
// which outlives the process. Nothing else is known of it.
type deeds string

func (d deeds) note(what string, in operation.Intent) {
	f, err := os.OpenFile(string(d), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, what, in.Key, in.Digest)
		_ = f.Close()
	}
	if err != nil {
		panic(err)
	}
}

func (d deeds) Perform(_ context.Context, p ledger.Permit) operation.Outcome {
	d.note("performed", p.Intent())
	return operation.Outcome{Knowledge: operation.Applied}
}

func (d deeds) Resolve(_ context.Context, in operation.Intent) operation.Outcome {
	d.note("asked", in)
	return operation.Outcome{Knowledge: operation.Applied}
}

// done are the lines so far.
func (d deeds) done(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(string(d))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

// until drives an attempt to where an operation of the kind has its permit.
func until(a *fixture.Admitted, t *testing.T, kind operation.Kind) ledger.Permit {
	t.Helper()
	run := func(p ledger.Permit, result any) kernel.Settle { return a.Run(p, &effect{out: operation.Done(result)}) }
	opened := a.Next(a.Activation())
	expected, report := fixture.Attestation(t, a.Ledger.Kernel(), a.State)
	opened = a.Next(run(opened.Permits[0], protocol.ProvisionResult{}), kernel.Attest{Expected: expected, Report: report},
		run(opened.Permits[1], protocol.MaterializeResult{}), run(opened.Permits[2], protocol.PrepareResult{}))
	launch := opened.Permits[1]
	if kind == operation.Launch {
		return launch
	}
	opened = a.Next(run(opened.Permits[0], protocol.StartResult{}), run(launch, protocol.LaunchResult{}),
		kernel.Complete{Report: protocol.CompletionReport{Launches: []operation.Key{launch.Intent().Key}}})
	folder, err := capability.ParseScope("folder:releases")
	if err != nil {
		t.Fatal(err)
	}
	opened = a.Next(run(opened.Permits[0], protocol.FreezeResult{}), run(opened.Permits[1], protocol.CollectResult{Manifest: fixture.Digest("manifest")}),
		kernel.Accept{Proposals: []kernel.Proposal{{Purpose: "out", Proposed: kernel.Proposed{
			Attempt: a.State.Attempt, Kind: operation.Publish, Class: a.Ledger.Kernel().Classes().Of(operation.Publish), Destination: folder, Content: fixture.Digest("proposal"),
		}}}})
	a.Next(run(opened.Permits[0], protocol.RemovalResult{}), run(opened.Permits[1], protocol.RemovalResult{}))
	opened, err = a.Ledger.Commit(t.Context(), ledger.Turn{Fence: a.State.Fence(), Commands: []kernel.Command{kernel.Send{Purpose: "out", Place: fixture.Digest("place")}}, Actor: "uid:0"})
	if err != nil {
		t.Fatal(err)
	}
	a.State = opened.State
	return opened.Permits[0]
}

// diesVariable has a process perform one operation and die before anything of it is recorded:
// its kind, its class, the state folder and the file of deeds.
const diesVariable = "WRIT_LEDGER_TEST_DIES"

// TestAsOneWhoDies is run by the processes that TestALostAnswerFollowsItsClass starts.
func TestAsOneWhoDies(t *testing.T) {
	parts := strings.Split(os.Getenv(diesVariable), "|")
	if len(parts) != 4 {
		return
	}
	kind := operation.Kind(parts[0])
	a := fixture.AdmitIn(t, parts[2], classed(t, kind, operation.EffectClass(parts[1])), func(b *attemptbundle.Bundle) {
		b.Mode = capability.Production
		b.Proposals = []workorder.Proposal{{Purpose: "out", Effector: operation.Publish, Destination: "folder:releases", Files: []string{"report.json"}, Title: "t"}}
	})
	p := until(a, t, kind)
	a.Run(p, deeds(parts[3]))
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// The answer to an effect is lost with the process that performed it. Of what nobody can tell
// nobody is asked, and it is not done again; what is idempotent by its key is done again under
// that key, unless it died with its resource; all else is asked about, and not done again (O6).
func TestALostAnswerFollowsItsClass(t *testing.T) {
	for _, test := range []struct {
		kind  operation.Kind
		class operation.EffectClass
		then  string
		known operation.Knowledge
	}{
		{operation.Launch, operation.NonReconcilable, "", operation.Unknown},
		{operation.Launch, operation.Reconcilable, "asked", operation.Applied},
		{operation.Launch, operation.ProviderIdempotent, "asked", operation.Applied},
		{operation.Publish, operation.NonReconcilable, "", operation.Unknown},
		{operation.Publish, operation.Reconcilable, "asked", operation.Applied},
		{operation.Publish, operation.ProviderIdempotent, "performed", operation.Applied},
	} {
		t.Run(fmt.Sprint(test.kind, " ", test.class), func(t *testing.T) {
			dir, file := t.TempDir(), deeds(filepath.Join(t.TempDir(), "deeds"))
			k := classed(t, test.kind, test.class)
			dies(t, test.kind, test.class, dir, string(file))
			l, s := laterLife(t, dir, k)
			open := slices.IndexFunc(s.Operations(), func(o kernel.Operation) bool { return o.Intent.Kind == test.kind && o.State == "intended" })
			if open < 0 {
				t.Fatal("nothing is open")
			}
			in := s.Operations()[open].Intent
			before := fmt.Sprint("performed ", in.Key, " ", in.Digest)
			if done := file.done(t); !slices.Equal(done, []string{before}) {
				t.Fatalf("before: %v", done)
			}
			settle, err := l.Resolve(t.Context(), s, in, file)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{before}
			if test.then != "" {
				want = append(want, fmt.Sprint(test.then, " ", in.Key, " ", in.Digest))
			}
			if done := file.done(t); !slices.Equal(done, want) {
				t.Errorf("done: %v, want %v", done, want)
			}
			if settle.Outcome.Knowledge != test.known || (test.then == "") != (settle.Outcome.Code == reason.OperationUnaskable) {
				t.Errorf("it came to %s, %s: %s", settle.Outcome.Knowledge, settle.Outcome.Code, settle.Outcome.Detail)
			}
			// What has its answer is not done once more, nor is what was never begun.
			opened, err := l.Commit(t.Context(), ledger.Turn{Fence: s.Fence(), Commands: []kernel.Command{settle}, Actor: "uid:0"})
			if err != nil {
				t.Fatal(err)
			}
			if test.then != "performed" {
				return
			}
			other := in
			other.Digest = fixture.Digest("another request")
			_, answered := l.Resolve(t.Context(), opened.State, in, file)
			_, foreign := l.Resolve(t.Context(), s, other, file)
			if !reason.Is(answered, reason.OperationPermitInvalid) || !reason.Is(foreign, reason.OperationPermitInvalid) {
				t.Errorf("done again: %v, %v", answered, foreign)
			}
			if done := file.done(t); len(done) != len(want) {
				t.Errorf("done: %v", done)
			}
		})
	}
}

// dies has another process perform an operation and be killed.
func dies(t *testing.T, kind operation.Kind, class operation.EffectClass, dir, file string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestAsOneWhoDies$")
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name != "XML_OUTPUT_FILE" && !strings.HasPrefix(name, "TEST") && !strings.HasPrefix(name, "GO_TEST_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%s|%s|%s|%s", diesVariable, kind, class, dir, file), "GO_TEST_WRAP=0")
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("it was not killed: %v\n%s", err, out)
	}
}

// laterLife opens a state folder in a later life.
func laterLife(t *testing.T, dir string, k kernel.Kernel) (*ledger.Ledger, kernel.State) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), dir, sqlite.Options{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	l := ledger.New(store, k, fixture.Clock{})
	s, err := l.State(t.Context(), fixture.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	return l, s
}
