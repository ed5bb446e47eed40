package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/reason"
)

func TestOrdinaryWorkIsAllowed(t *testing.T) {
	in := report(t)
	r := conclude(t, load(t, shipped(t), nil), in)
	if err := r.Refusal(); err != nil {
		t.Fatal(err)
	}
	var asked []capability.Grant
	for _, q := range in.Requested {
		asked = append(asked, q.Grant)
	}
	if want := capability.NewSet(asked...); !r.Effective.Grants.Contains(want) || !want.Contains(r.Effective.Grants) {
		t.Errorf("effective %v, asked %v", r.Effective.Grants, want)
	}
	if len(r.Answers) != len(capability.Layers()) {
		t.Errorf("%d answers", len(r.Answers))
	}
	for _, a := range r.Answers {
		if a.Status != capability.OK {
			t.Errorf("%s failed: %s", a.Layer, a.Detail)
		}
	}
}

// TestDenialsNameLayerRuleAndLine goes through what people and code may try. Every case must be refused by the
// rule named, and the line must be where that rule stands.
func TestDenialsNameLayerRuleAndLine(t *testing.T) {
	engine := load(t, shipped(t), nil)
	for name, c := range map[string]struct {
		change func(*policy.Input)
		more   []capability.Request
		layer  capability.Layer
		rule   string
		says   string
	}{
		"merge": {more: []capability.Request{request(t, "repo.merge", "repo:a/b", "branch:main")},
			layer: capability.ConstitutionLayer, rule: "constitution.merge_is_for_people", says: "let a person merge"},
		"merge as operator in production": {change: func(in *policy.Input) {
			in.WorkOrder.Role, in.WorkOrder.Mode = "operator", capability.Production
			in.Facts.ModeEvidence, in.Facts.ModeEvidenceCurrent = in.WorkOrder.Tool.Digest, true
		}, more: []capability.Request{request(t, "repo.merge", "repo:a/b", "branch:main")},
			layer: capability.ConstitutionLayer, rule: "constitution.merge_is_for_people"},
		"undeclared input": {more: []capability.Request{request(t, "input.read", "input:secrets/**", "")},
			layer: capability.ConstitutionLayer, rule: "constitution.only_declared_inputs", says: "docs"},
		"undeclared output": {more: []capability.Request{request(t, "output.write", "output:other.json", "")},
			layer: capability.ConstitutionLayer, rule: "constitution.only_declared_outputs", says: "report.json"},
		"another tool": {more: []capability.Request{request(t, "tool.run", "tool:nmap", "")},
			layer: capability.ConstitutionLayer, rule: "constitution.only_the_named_tool"},
		"candidate on trusted-local": {change: local("candidate", false),
			layer: capability.ConstitutionLayer, rule: "constitution.code_needs_isolation", says: "candidate"},
		"community on trusted-local, though on the allowlist": {change: local("community", true),
			layer: capability.ConstitutionLayer, rule: "constitution.code_needs_isolation", says: "community"},
		"self-claimed review": {change: local("reviewed", false),
			layer: capability.ConstitutionLayer, rule: "constitution.code_needs_isolation", says: "candidate"},
		"unknown environment class": {change: func(in *policy.Input) { in.WorkOrder.Environment.Class = "container" },
			layer: capability.ConstitutionLayer, rule: "constitution.environment_class_known"},
		"credential": {change: func(in *policy.Input) { in.WorkOrder.Role = "operator" },
			more:  []capability.Request{request(t, "credential.use", "credential:c", "host:h.example:443")},
			layer: capability.ConstitutionLayer, rule: "constitution.credentials_are_supervised"},
		"network as analyst": {more: []capability.Request{request(t, "network.connect", "host:h.example:443", "")},
			layer: capability.RoleLayer, rule: "role.unlisted", says: "operator"},
		"network as operator": {change: func(in *policy.Input) { in.WorkOrder.Role, in.WorkOrder.Mode = "operator", capability.Proposal },
			more:  []capability.Request{request(t, "network.connect", "host:h.example:443", "")},
			layer: capability.DeploymentLayer, rule: "deployment.no_network"},
		"unknown role": {change: func(in *policy.Input) { in.WorkOrder.Role = "root" },
			layer: capability.RoleLayer, rule: "role.known", says: "analyst, operator"},
		"role above its mode": {change: func(in *policy.Input) { in.WorkOrder.Mode = capability.Proposal },
			layer: capability.RoleLayer, rule: "role.maximum_mode", says: "shadow"},
		"candidate in observe": {change: func(in *policy.Input) { in.WorkOrder.Role = "reporter" },
			more:  []capability.Request{request(t, "artifact.propose", "output:report.json", "")},
			layer: capability.ModeLayer, rule: "mode.above_ceiling", says: "proposal"},
		"candidate in shadow": {change: func(in *policy.Input) { in.WorkOrder.Role, in.WorkOrder.Mode = "reporter", capability.Shadow },
			more:  []capability.Request{request(t, "artifact.propose", "output:report.json", "")},
			layer: capability.ModeLayer, rule: "mode.shadow_stays_local"},
		"production without evidence": {change: func(in *policy.Input) { in.WorkOrder.Role, in.WorkOrder.Mode = "operator", capability.Production },
			layer: capability.ModeLayer, rule: "mode.production_needs_evidence"},
		"production with evidence": {change: func(in *policy.Input) {
			in.WorkOrder.Role, in.WorkOrder.Mode = "operator", capability.Production
			in.Facts.ModeEvidence, in.Facts.ModeEvidenceCurrent = in.WorkOrder.Tool.Digest, true
		}, layer: capability.DeploymentLayer, rule: "deployment.maximum_mode"},
		"unlisted tool": {change: func(in *policy.Input) {
			in.WorkOrder.Tool.Name = "nmap"
			in.Requested = []capability.Request{request(t, "tool.run", "tool:nmap", "")}
		}, layer: capability.DeploymentLayer, rule: "deployment.unlisted_tool", says: "textstat"},
		"unknown provider": {change: func(in *policy.Input) { in.WorkOrder.Environment.Provider = "docker" },
			layer: capability.DeploymentLayer, rule: "deployment.listed_provider"},
		"provider of another class": {change: func(in *policy.Input) { in.WorkOrder.Environment.Provider = "trusted-local" },
			layer: capability.DeploymentLayer, rule: "deployment.listed_provider"},
		"unknown executor": {change: func(in *policy.Input) { in.WorkOrder.Executor = "shell" },
			layer: capability.DeploymentLayer, rule: "deployment.listed_executor"},
		"unknown deployment": {change: func(in *policy.Input) { in.Deployment.Name = "cloud" },
			layer: capability.DeploymentLayer, rule: "deployment.known"},
		"too much memory": {change: func(in *policy.Input) { in.WorkOrder.Environment.Limits["memory_bytes"] = 1 << 40 },
			layer: capability.DeploymentLayer, rule: "deployment.environment_limit", says: "memory_bytes"},
		"no wall time": {change: func(in *policy.Input) { delete(in.WorkOrder.Environment.Limits, "wall_ms") },
			layer: capability.DeploymentLayer, rule: "deployment.environment_limit_missing", says: "wall_ms"},
		"too many output bytes": {change: func(in *policy.Input) { in.WorkOrder.Outputs.MaxBytes = 1 << 50 },
			layer: capability.DeploymentLayer, rule: "deployment.output_limit", says: "max_bytes"},
		"unlimited outputs": {change: func(in *policy.Input) { in.WorkOrder.Outputs.MaxCount = 0 },
			layer: capability.DeploymentLayer, rule: "deployment.output_limit_missing", says: "max_count"},
	} {
		in := report(t, c.more...)
		if c.change != nil {
			c.change(&in)
		}
		r := conclude(t, engine, in)
		if len(r.Denials) == 0 || len(r.Effective.Grants) > 0 {
			t.Errorf("%s: allowed %v", name, r.Effective.Grants)
			continue
		}
		// The last request is the one that the case adds; the ones before may be refused for other reasons.
		d := r.Denials[len(r.Denials)-1]
		code := reason.PolicyDenied
		if c.rule == "mode.above_ceiling" || c.rule == "mode.shadow_stays_local" {
			code = reason.CapabilityModeCeiling
		}
		if d.Layer != c.layer || d.Rule != c.rule || d.Code != code {
			t.Errorf("%s: refused by %s, %s, %s: %s", name, d.Layer, d.Rule, d.Code, d.Reason)
		}
		if text := d.Refusal().Error(); !strings.Contains(text, c.says) || d.Remedy == "" {
			t.Errorf("%s: %q does not say %q, or has no remedy", name, text, c.says)
		}
		if line := sourceLine(t, d.File, d.Line); !strings.HasPrefix(line, "deny contains") {
			t.Errorf("%s: %s:%d is %q", name, d.File, d.Line, line)
		}
	}
}

func local(class string, reviewed bool) func(*policy.Input) {
	return func(in *policy.Input) {
		in.WorkOrder.CodeClass, in.Facts.ToolReviewed = class, reviewed
		in.WorkOrder.Environment.Provider, in.WorkOrder.Environment.Class = "trusted-local", "trusted_local"
	}
}

func sourceLine(t *testing.T, file string, line int64) string {
	t.Helper()
	lines := strings.Split(string(shipped(t)[file]), "\n")
	if line < 1 || int(line) > len(lines) {
		t.Fatalf("%s has no line %d", file, line)
	}
	return lines[line-1]
}

func TestReviewedCodeMayRunTrusted(t *testing.T) {
	in := report(t)
	local("reviewed", true)(&in)
	if err := conclude(t, load(t, shipped(t), nil), in).Refusal(); err != nil {
		t.Error(err)
	}
}

func TestOptionalRequestIsOmittedWithItsReason(t *testing.T) {
	connect := request(t, "network.connect", "host:h.example:443", "")
	connect.Required = false
	r := conclude(t, load(t, shipped(t), nil), report(t, connect))
	if err := r.Refusal(); err != nil {
		t.Fatal(err)
	}
	if len(r.Effective.Omitted) != 1 || r.Effective.Omitted[0].Rule != "role.unlisted" {
		t.Errorf("omitted %v", r.Effective.Omitted)
	}
}

func TestWideRequestIsNarrowedToWhatIsDeclared(t *testing.T) {
	in := report(t)
	in.Requested[0] = request(t, "input.read", "input:**", "")
	in.Requested[0].Required = false
	r := conclude(t, load(t, shipped(t), nil), in)
	if err := r.Refusal(); err != nil {
		t.Fatal(err)
	}
	var resources []string
	for _, g := range r.Effective.Grants {
		if g.Action == "input.read" {
			resources = append(resources, g.Resource.String())
		}
	}
	if fmt.Sprint(resources) != "[input:docs/**]" {
		t.Errorf("effective %v", resources)
	}
	if a := r.Answers[0]; a.Layer != capability.ConstitutionLayer || len(a.Narrowings) != 1 {
		t.Errorf("narrowings of %s: %v", a.Layer, a.Narrowings)
	}
}

func TestMissingLayerDeniesEverything(t *testing.T) {
	in := report(t)
	e := load(t, shipped(t), nil)
	d, err := e.Decide(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	support, broker := agreeing(capability.SupportLayer, in), agreeing(capability.BrokerLayer, in)
	for name, r := range map[string]policy.Record{
		"no broker":          e.Conclude(in, d, support),
		"no support":         e.Conclude(in, d, broker),
		"two brokers":        e.Conclude(in, d, support, broker, broker),
		"a second mode":      e.Conclude(in, d, support, broker, agreeing(capability.ModeLayer, in)),
		"no policies":        e.Conclude(in, policy.Decision{}, support, broker),
		"a layer unheard of": e.Conclude(in, d, support, broker, agreeing("plugin", in)),
	} {
		if len(r.Effective.Grants) > 0 || r.Refusal() == nil {
			t.Errorf("%s: allowed %v", name, r.Effective.Grants)
		}
	}
}
