package kernel_test

import (
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

func TestDepends(t *testing.T) {
	k := fixture.Kernel(t)
	type order struct {
		state lifecycle.State
		on    []workorder.ID
	}
	orders := map[workorder.ID]order{
		"done": {"applied", nil}, "runs": {"active", nil}, "waits": {"blocked_dependency", []workorder.ID{"runs"}},
		"shadow": {"applied", nil}, "shadow runs": {"active", nil},
		"failed": {"failed", nil}, "stopped": {"cancelled", nil}, "unknown": {"unknown_terminal", nil},
		"a": {"submitted", []workorder.ID{"b"}}, "b": {"submitted", []workorder.ID{"c"}}, "c": {"submitted", []workorder.ID{"me"}},
		"d": {"submitted", []workorder.ID{"e"}}, "e": {"submitted", []workorder.ID{"d"}},
	}
	look := func(id workorder.ID) (kernel.Known, bool) {
		o, ok := orders[id]
		mode := capability.Proposal
		if strings.HasPrefix(string(id), "shadow") {
			mode = capability.Shadow
		}
		return kernel.Known{State: o.state, Mode: mode, DependsOn: o.on}, ok
	}
	for name, tc := range map[string]struct {
		on   []workorder.ID
		want reason.Code
		open int
	}{
		"on nothing":                    {nil, "", 0},
		"on what counts in shadow only": {[]workorder.ID{"shadow"}, reason.DependencyFailed, 1},
		"on what will count there only": {[]workorder.ID{"shadow runs"}, reason.DependencyFailed, 1},
		"on what is applied":            {[]workorder.ID{"done"}, "", 0},
		"on what runs":                  {[]workorder.ID{"done", "runs"}, reason.DependencyWaiting, 1},
		"on what waits":                 {[]workorder.ID{"waits"}, reason.DependencyWaiting, 1},
		"on what a person must look at": {[]workorder.ID{"unknown"}, reason.DependencyWaiting, 1},
		"on what failed":                {[]workorder.ID{"runs", "failed"}, reason.DependencyFailed, 2},
		"on what was cancelled":         {[]workorder.ID{"stopped"}, reason.DependencyFailed, 1},
		"on what is not there":          {[]workorder.ID{"failed", "none"}, reason.DependencyMissing, 2},
		"on itself":                     {[]workorder.ID{"me"}, reason.DependencyCycle, 1},
		"on itself by others":           {[]workorder.ID{"failed", "a"}, reason.DependencyCycle, 2},
		"on a circle of others":         {[]workorder.ID{"d"}, reason.DependencyWaiting, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := k.Depends("me", capability.Proposal, tc.on, look)
			if tc.want == "" {
				if d != nil {
					t.Errorf("%+v", d)
				}
				return
			}
			if d == nil || d.Code != tc.want || len(d.On) != tc.open || d.Why == "" {
				t.Errorf("%+v, want %s", d, tc.want)
			}
		})
	}
	if d := k.Depends("me", capability.Shadow, []workorder.ID{"shadow"}, look); d != nil {
		t.Errorf("shadow work does not rest on shadow work: %+v", d)
	}
}
