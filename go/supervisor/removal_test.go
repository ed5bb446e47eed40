package supervisor_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// A clean-up that did not succeed is no reason to leave the environment standing.
func TestDestroyFollowsAFailedCleanup(t *testing.T) {
	h := newHost(t)
	stands := func() (bool, error) { return false, nil }
	refused := operation.Refused(operation.NotApplied, reason.New(reason.EnvironmentStillAlive, "it stands", "", ""))
	for name, test := range map[string]struct {
		gone func() (bool, error)
		// cleanup is what cleanup comes to in the end: doubt is resolved by name. fails is how
		// often destroy fails.
		cleanup operation.Knowledge
		fails   int
	}{
		"nothing fails":     {nil, operation.Applied, 0},
		"cleanup fails":     {stands, operation.NotApplied, 0},
		"cleanup is doubt":  {func() (bool, error) { return false, os.ErrPermission }, operation.Applied, 0},
		"destroy too, once": {stands, operation.NotApplied, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.newRig(t, nil)
			r.gone, r.destroy = test.gone, times(test.fails, refused)
			s := r.run()
			if s.Result == nil || s.Result.Conclusion != workorder.Succeeded {
				t.Errorf("the attempt ended %+v", s.Result)
			}
			if out := ended(t, s, operation.Cleanup, "main"); out.Knowledge != test.cleanup {
				t.Errorf("cleanup ended %s, %s: %s", out.Knowledge, out.Code, out.Detail)
			}
			for i := range test.fails {
				if out := ended(t, s, operation.Destroy, try(i)); out.Knowledge != operation.NotApplied {
					t.Errorf("destroy ended %s", out.Knowledge)
				}
			}
			if out := ended(t, s, operation.Destroy, try(test.fails)); out.Knowledge != operation.Applied {
				t.Errorf("destroy ended %s, %s: %s", out.Knowledge, out.Code, out.Detail)
			}
			if at := s.Of(kernel.EnvironmentMachine).State; at != "destroyed" {
				t.Errorf("the environment is %s", at)
			}
			if left, err := os.ReadDir(r.workspaces); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// What cannot be destroyed is tried as often as the bundle says, and then stays owed: the
// journal has an environment that is not destroyed, and a person is asked for.
func TestObligationToDestroyStays(t *testing.T) {
	r := newHost(t).newRig(t, nil)
	tries := int(r.Bundle.Bundle().Reconciliation.Tries)
	r.gone = func() (bool, error) { return false, nil }
	r.destroy = times(tries+1, operation.Refused(operation.NotApplied, reason.New(reason.EnvironmentStillAlive, "it stands", "", "")))
	s := r.run()
	for i := range tries {
		if out := ended(t, s, operation.Destroy, try(i)); out.Code != reason.EnvironmentStillAlive {
			t.Errorf("destroy ended %s, %s: %s", out.Knowledge, out.Code, out.Detail)
		}
	}
	if at := s.Of(kernel.EnvironmentMachine).State; at != "destroying" {
		t.Errorf("the environment is %s", at)
	}
	plan, err := r.Ledger.Kernel().Next(s)
	if err != nil || plan.Done || !strings.Contains(plan.Wait, "a person") {
		t.Errorf("what is next: %+v, %v", plan, err)
	}
	if s.Result == nil || s.Result.Conclusion != workorder.Succeeded {
		t.Errorf("the attempt ended %+v", s.Result)
	}
	// It stood all the while.
	if found, err := r.provider.Reconcile(t.Context(), s.Resource); err != nil || !found.WasAlive || !found.Gone {
		t.Errorf("found %+v, %v", found, err)
	}
}

// try is the purpose of the i-th try to destroy.
func try(i int) string {
	if i == 0 {
		return "main"
	}
	return fmt.Sprintf("again-%d", i)
}

// times answers with an outcome so many times.
func times(n int, out operation.Outcome) func() (operation.Outcome, bool) {
	return func() (operation.Outcome, bool) {
		n--
		return out, n >= 0
	}
}
