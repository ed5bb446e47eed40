package admission_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/testing/fixture"
)

// A state folder is of the deployment that permits least until its owner, and nobody else,
// names another.
func TestLoadDeployment(t *testing.T) {
	const production = "kind: writ.deployment.v1\nname: local-production\n"
	for name, tc := range map[string]struct {
		text string
		mode os.FileMode
		want string
		code reason.Code
		// invalid says that the document is not what its kind says.
		invalid bool
	}{
		"none":            {want: "local"},
		"named":           {text: production, mode: 0o600, want: "local-production"},
		"of many writers": {text: production, mode: 0o620, code: reason.DeploymentBadChoice},
		"of all":          {text: production, mode: 0o602, code: reason.DeploymentBadChoice},
		"another kind":    {text: "kind: writ.accounts.v1\nname: local-production\n", mode: 0o600, invalid: true},
		"no name":         {text: "kind: writ.deployment.v1\n", mode: 0o600, invalid: true},
		"more":            {text: production + "maximum_mode: production\n", mode: 0o600, invalid: true},
		"no plain name":   {text: "kind: writ.deployment.v1\nname: ../x\n", mode: 0o600, invalid: true},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			at := filepath.Join(state, admission.DeploymentFile)
			if tc.text != "" {
				if err := os.WriteFile(at, []byte(tc.text), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(at, tc.mode); err != nil {
					t.Fatal(err)
				}
			}
			d, err := admission.LoadDeployment(state)
			var invalid *schema.InvalidError
			if tc.code != "" || tc.invalid {
				if tc.invalid != errors.As(err, &invalid) || !tc.invalid && !reason.Is(err, tc.code) {
					t.Errorf("%+v, %v; want %s", d, err, tc.code)
				}
				return
			}
			if err != nil || d.Name != tc.want {
				t.Errorf("%+v, %v; want %s", d, err, tc.want)
			}
		})
	}
}

// What one tool and adapter showed says nothing of others: policies are told so.
func TestEvidenceOfOtherCode(t *testing.T) {
	a := &admission.Admission{State: t.TempDir()}
	tool, adapter, other := fixture.Digest("tool"), fixture.Digest("adapter"), fixture.Digest("other")
	_, facts, err := a.Facts(tool, adapter, &kernel.State{})
	if err != nil || facts != (policy.Facts{AdapterDigest: adapter}) {
		t.Errorf("an order that nobody approved: %+v, %v", facts, err)
	}
	known := &kernel.State{Raised: &kernel.ModeRaised{Evidence: kernel.ModeEvidence{Attempt: fixture.Attempt, Tool: tool, Adapter: adapter}}}
	for name, now := range map[string]struct {
		tool, adapter, changed bool
	}{"the same": {}, "another tool": {tool: true, changed: true}, "another adapter": {adapter: true, changed: true}} {
		is, by := tool, adapter
		if now.tool {
			is = other
		}
		if now.adapter {
			by = other
		}
		_, facts, err := a.Facts(is, by, known)
		if err != nil || !facts.ModeEvidence.Valid() || facts.ModeEvidenceCurrent == now.changed {
			t.Errorf("%s: %+v, %v", name, facts, err)
		}
	}
}
