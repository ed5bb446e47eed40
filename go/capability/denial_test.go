package capability_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/capability"
)

// Whatever refuses a request, the denial says which operation, layer and rule, why, and
// what to do (C3).
func TestEveryDenialIsComplete(t *testing.T) {
	docs := grant(t, "input.read", "input:docs/**", "")
	merge := grant(t, "repo.merge", "repo:a/b", "branch:main")
	propose := grant(t, "artifact.propose", "output:report.json", "")
	shell := capability.Grant{Action: "shell.run", Resource: docs.Resource}
	negative := docs
	negative.Limits.Calls = -1
	for name, c := range map[string]struct {
		asked capability.Grant
		mode  capability.Mode
		given []capability.Grant
	}{
		"not granted":         {docs, capability.Observe, nil},
		"above the mode":      {propose, capability.Observe, []capability.Grant{propose}},
		"for people only":     {merge, capability.Production, []capability.Grant{merge}},
		"not registered":      {shell, capability.Observe, []capability.Grant{docs}},
		"not well formed":     {negative, capability.Observe, []capability.Grant{docs}},
		"of an unknown mode":  {docs, "root", []capability.Grant{docs}},
		"a layer that failed": {docs, capability.Observe, []capability.Grant{shell}},
	} {
		effective, denials := registry(t).Resolve([]capability.Request{{Grant: c.asked, Required: true}}, c.mode, everyone(c.given...))
		if len(denials) == 0 || len(effective.Grants) > 0 {
			t.Errorf("%s: allowed %v", name, effective.Grants)
		}
		for _, d := range denials {
			if d.Action == "" || d.Layer == "" || d.Rule == "" || d.Reason == "" || d.Remedy == "" || !d.Code.Registered() {
				t.Errorf("%s: the denial leaves something out: %+v", name, d)
			}
		}
	}
}
