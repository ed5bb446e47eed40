package supervisor_test

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// resetting has a test between the supervisor and the reset of the real environment.
func (b between) Reset(accept func(attestation.Expectation, attestation.Report) error) ledger.Effect {
	if b.rig.measured != nil {
		real := accept
		accept = func(e attestation.Expectation, r attestation.Report) error { return real(e, b.rig.measured(r)) }
	}
	return resetting{b.Environment.Reset(accept), b.rig}
}

type resetting struct {
	ledger.Effect
	rig *rig
}

func (r resetting) Perform(ctx context.Context, p ledger.Permit) operation.Outcome {
	if r.rig.resetting != nil {
		r.rig.resetting()
	}
	return r.Effect.Perform(ctx, p)
}

// A living environment is emptied and measured anew once its attempt is closed, and its
// receipt names the report; whatever does not come to that is destroyed without one, and
// changes nothing about the attempt (E6, E9, O4).
func TestAnEnvironmentIsResetBeforeItIsDestroyed(t *testing.T) {
	h := newHost(t)
	for name, test := range map[string]struct {
		change func(r *rig)
		reset  operation.Knowledge
		code   reason.Code
		passes lifecycle.Family
	}{
		"as ordered": {func(*rig) {}, operation.Applied, "", "environment.given_up"},
		"although cleanup fails": {func(r *rig) { r.gone = func() (bool, error) { return false, nil } },
			operation.Applied, "", "environment.given_up"},
		"something is left": {func(r *rig) {
			r.measured = otherwise(t, "workspace.entries", attestation.Integer("workspace.entries", 1))
		},
			operation.NotApplied, reason.EnvironmentMismatch, "environment.reset_failed"},
		"less confined": {func(r *rig) {
			r.measured = otherwise(t, "process.no_new_privs", attestation.Flag("process.no_new_privs", false))
		}, operation.NotApplied, reason.EnvironmentMismatch, "environment.reset_failed"},
		"dead": {func(r *rig) {
			r.resetting = func() {
				if _, err := r.attempt.Environment.Stop(t.Context(), r.State.Resource); err != nil {
					t.Error(err)
				}
			}
		}, operation.NotApplied, reason.EnvironmentDead, "environment.reset_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.newRig(t, func(b *attemptbundle.Bundle) { b.Environment.Reset = attemptbundle.ResetBeforeDestroy })
			test.change(r)
			s := r.run()
			if s.Result == nil || s.Result.Conclusion != workorder.Succeeded {
				t.Errorf("the attempt ended %+v", s.Result)
			}
			out := ended(t, s, operation.Reset, "main")
			if out.Knowledge != test.reset || out.Code != test.code {
				t.Errorf("reset ended %s, %s: %s", out.Knowledge, out.Code, out.Detail)
			}
			if test.reset == operation.Applied {
				r.wasReset(s, out)
			} else if s.Evidence("ResetReceipt") != "" {
				t.Error("there is a receipt of a reset")
			}
			if at := s.Of(kernel.EnvironmentMachine); at.State != "destroyed" || !r.passed(s, test.passes) {
				t.Errorf("the environment is %s, and has not passed %s", at.State, test.passes)
			}
			if left, err := os.ReadDir(r.workspaces); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// otherwise has the report say something else of one fact.
func otherwise(t *testing.T, name string, instead attestation.Fact) func(attestation.Report) attestation.Report {
	return func(r attestation.Report) attestation.Report {
		facts := append([]attestation.Fact(nil), r.Facts...)
		for i, f := range facts {
			if f.Name == name {
				facts[i] = instead
				return attestation.NewReport(r.Provider, facts)
			}
		}
		t.Errorf("nothing measures %s", name)
		return r
	}
}

// wasReset holds a result against the report that it names, which is kept.
func (r *rig) wasReset(s kernel.State, out operation.Outcome) {
	r.t.Helper()
	var result protocol.ResetResult
	if err := canonical.Decode(out.Result, &result); err != nil || result.FilesLeft != 0 || result.BytesLeft != 0 || result.Resource != s.Resource {
		r.t.Errorf("the result is %+v, %v", result, err)
	}
	body, err := r.attempt.Artifacts.Open(r.t.Context(), result.Report)
	if err != nil {
		r.t.Fatal(err)
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil {
		r.t.Fatal(err)
	}
	var report attestation.Report
	if err := canonical.Decode(raw, &report); err != nil {
		r.t.Fatal(err)
	}
	for _, f := range report.Facts {
		if (f.Name == "inputs.entries" || f.Name == "workspace.entries") && f.Integer != 0 {
			r.t.Errorf("measured %+v", f)
		}
	}
}

// passed reports whether the journal has an event of the family for the attempt's environment.
func (r *rig) passed(s kernel.State, family lifecycle.Family) bool {
	events, err := r.Store.Events(r.t.Context(), lifecycle.Of(kernel.EnvironmentMachine, string(s.Attempt)))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range events {
		if e.Family == family {
			return true
		}
	}
	return false
}
