package supervisor_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// The tool runs and ends well each time. What the adapter says of it decides whether the
// attempt succeeds, and nothing but a failed attempt comes of an adapter that cannot be
// believed or asked.
func TestStart(t *testing.T) {
	h := newHost(t)
	for name, test := range map[string]struct {
		started func(executor.Answer) executor.Answer
		polled  func(adapter func() (executor.Status, error)) (executor.Status, error)
		want    reason.Code
	}{
		"an honest adapter": {},
		"a launch that the adapter hides": {
			started: func(a executor.Answer) executor.Answer { a.Effects = nil; return a }, want: reason.AdapterLied,
		},
		"running, once after the end": {polled: running(1)},
		"running, for ever":           {polled: running(2), want: reason.AdapterLied},
		"gone while it is polled": {
			polled: func(func() (executor.Status, error)) (executor.Status, error) {
				return executor.Status{}, &executor.Doubt{Refusal: reason.New(reason.AdapterUnavailable, "it died", "", "")}
			},
			want: reason.AdapterUnavailable,
		},
		"unable to go on": {
			polled: func(func() (executor.Status, error)) (executor.Status, error) {
				return executor.Status{Refusal: reason.New(reason.AdapterFailed, "it cannot go on", "", "")}, nil
			},
			want: reason.AdapterFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.newRig(t, nil)
			r.started, r.polled = test.started, test.polled
			s := r.run()
			want := workorder.Result{Conclusion: workorder.Succeeded}
			if test.want != "" {
				want = workorder.Result{Conclusion: workorder.Failed, Code: test.want, Stage: string(operation.Start)}
			}
			if got := s.Result; got == nil || got.Conclusion != want.Conclusion || got.Code != want.Code || got.Stage != want.Stage {
				t.Errorf("ended %+v, want %s, %s at %q", got, want.Conclusion, want.Code, want.Stage)
			}
			if out := ended(t, s, operation.Launch, "main"); out.Knowledge != operation.Applied || out.Code != "" {
				t.Errorf("the launch ended %s, %s: %s", out.Knowledge, out.Code, out.Detail)
			}
			if at := s.Of(kernel.EnvironmentMachine).State; at != "destroyed" {
				t.Errorf("the environment is %s", at)
			}
		})
	}
}

// running has an adapter say so many times that its workload runs, although the host has
// seen it end, and then the truth.
func running(times int) func(func() (executor.Status, error)) (executor.Status, error) {
	return func(adapter func() (executor.Status, error)) (executor.Status, error) {
		// It answers once the launch has ended.
		status, err := adapter()
		if err != nil || times == 0 {
			return status, err
		}
		times--
		return executor.Status{}, nil
	}
}
