package policy_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/reason"
)

// open is a mode layer that allows all that is asked, to be spoilt by each case.
const open = `package writ.mode

decision := {"allow": allow, "deny": deny}

# METADATA
# title: Everything
allow contains {"action": r.action, "resource": r.resource, "rule": "mode.open", "reason": "open"} if some r in input.requested
`

const noDenial = "\ndeny := []\n"

const yes = `{"action": "input.read", "resource": "input:**", "rule": "mode.open", "reason": "x"}`

func TestOpenLayerAllows(t *testing.T) {
	if err := conclude(t, load(t, replaced(t, capability.ModeLayer, open+noDenial), nil), report(t)).Refusal(); err != nil {
		t.Fatal(err)
	}
}

func TestLayerThatAnswersBadlyDeniesEverything(t *testing.T) {
	rules := `
# METADATA
# title: Everything
known contains {"rule": "mode.open"} if input.never
`
	// An id that is put together stands for no rule, so that the module holds the rule mode.open once.
	decides := func(value string) string {
		return "package writ.mode\n\ndecision := " + strings.ReplaceAll(value, `"mode.open"`, `concat(".", ["mode", "open"])`) + "\n" + rules
	}
	for name, c := range map[string]struct {
		module string
		code   reason.Code
	}{
		"undefined":             {"package writ.mode\n\ndecision := {\"allow\": [], \"deny\": []} if input.never", reason.PolicyMalformedAnswer},
		"a string":              {decides(`"allow"`), reason.PolicyMalformedAnswer},
		"true":                  {decides(`true`), reason.PolicyMalformedAnswer},
		"null":                  {decides(`null`), reason.PolicyMalformedAnswer},
		"no deny":               {decides(`{"allow": []}`), reason.PolicyMalformedAnswer},
		"no allow":              {decides(`{"deny": []}`), reason.PolicyMalformedAnswer},
		"null deny":             {decides(`{"allow": [], "deny": null}`), reason.PolicyMalformedAnswer},
		"more than that":        {decides(`{"allow": [], "deny": [], "mode": "production"}`), reason.PolicyMalformedAnswer},
		"allow is an object":    {decides(`{"allow": {"input.read": true}, "deny": []}`), reason.PolicyMalformedAnswer},
		"unknown field":         {decides(`{"allow": [{"action": "input.read", "resource": "input:**", "rule": "mode.open", "reason": "x", "mode": "production"}], "deny": []}`), reason.PolicyMalformedAnswer},
		"unregistered action":   {decides(`{"allow": [{"action": "shell.run", "resource": "tool:**", "rule": "mode.open", "reason": "x"}], "deny": []}`), reason.PolicyMalformedAnswer},
		"everything":            {decides(`{"allow": [{"action": "*", "rule": "mode.open", "reason": "x"}], "deny": []}`), reason.PolicyMalformedAnswer},
		"scope of another kind": {decides(`{"allow": [{"action": "input.read", "resource": "output:**", "rule": "mode.open", "reason": "x"}], "deny": []}`), reason.PolicyMalformedAnswer},
		"no resource":           {decides(`{"allow": [{"action": "input.read", "rule": "mode.open", "reason": "x"}], "deny": []}`), reason.PolicyMalformedAnswer},
		"dot segments":          {decides(`{"allow": [{"action": "input.read", "resource": "input:docs/../**", "rule": "mode.open", "reason": "x"}], "deny": []}`), reason.PolicyMalformedAnswer},
		"missing destination":   {decides(`{"allow": [{"action": "model.call", "resource": "model:**", "rule": "mode.open", "reason": "x"}], "deny": []}`), reason.PolicyMalformedAnswer},
		"a limit":               {decides(`{"allow": [{"action": "input.read", "resource": "input:**", "limits": {"calls": 1}, "rule": "mode.open", "reason": "x"}], "deny": []}`), reason.PolicyMalformedAnswer},
		"rule of nobody":        {decides(`{"allow": [{"action": "input.read", "resource": "input:**", "rule": concat(".", ["mode", "ghost"]), "reason": "x"}], "deny": []}`), reason.PolicyMalformedAnswer},
		"no rule":               {decides(`{"allow": [{"action": "input.read", "resource": "input:**", "reason": "x"}], "deny": []}`), reason.PolicyMalformedAnswer},
		"a denial of nothing":   {decides(`{"allow": [` + yes + `], "deny": [{"action": "shell.run", "rule": concat(".", ["mode", "open"]), "reason": "x"}]}`), reason.PolicyMalformedAnswer},
		"conflict":              {"package writ.mode\n\ndecision := {\"allow\": [], \"deny\": []}\n\ndecision := {\"allow\": [1], \"deny\": []} if input.requested", reason.PolicyLayerFailed},
		"failing builtin":       {decides(`{"allow": [], "deny": [], "x": regex.match("(", input.work_order.role)}`), reason.PolicyLayerFailed},
		"too large":             {strings.Replace(open+noDenial, `"reason": "open"`, `"reason": concat("", ["x" | some _ in numbers.range(1, 9000)])`, 1), reason.PolicyMalformedAnswer},
	} {
		r := conclude(t, load(t, replaced(t, capability.ModeLayer, c.module), func(o *policy.Options) { o.MaxAnswer = 8 << 10 }), report(t))
		if len(r.Effective.Grants) > 0 || len(r.Denials) == 0 {
			t.Errorf("%s: allowed %v", name, r.Effective.Grants)
			continue
		}
		if d := r.Denials[0]; d.Layer != capability.ModeLayer || d.Code != c.code || d.Rule != "mode.failed" {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A policy can say who may draw on an account of the deployment.
func TestAnAccountCanBeDenied(t *testing.T) {
	module := open + `
# METADATA
# title: Not from this account
deny contains {"action": "*", "rule": "mode.account", "reason": "it is for others"} if input.work_order.account == "theirs"
`
	e := load(t, replaced(t, capability.ModeLayer, module), nil)
	for account, denied := range map[string]bool{"": false, "ours": false, "theirs": true} {
		in := report(t)
		in.WorkOrder.Account = account
		if err := conclude(t, e, in).Refusal(); (err != nil) != denied {
			t.Errorf("from the account %q: %v", account, err)
		}
	}
}

func TestDenialOverridesWithinALayer(t *testing.T) {
	for name, c := range map[string]struct {
		deny    string
		refused map[string]bool // by action
	}{
		"nothing":         {`[]`, nil},
		"the action":      {`[{"action": "input.read", "rule": "mode.no", "reason": "x"}]`, map[string]bool{"input.read": true}},
		"the resource":    {`[{"action": "input.read", "resource": "input:docs/**", "rule": "mode.no", "reason": "x"}]`, map[string]bool{"input.read": true}},
		"a part":          {`[{"action": "input.read", "resource": "input:docs/secret", "rule": "mode.no", "reason": "x"}]`, map[string]bool{"input.read": true}},
		"another":         {`[{"action": "input.read", "resource": "input:other/**", "rule": "mode.no", "reason": "x"}]`, nil},
		"everything":      {`[{"action": "*", "rule": "mode.no", "reason": "x"}]`, map[string]bool{"input.read": true, "tool.run": true, "output.write": true, "artifact.write": true, "result.report": true}},
		"without a scope": {`[{"action": "result.report", "rule": "mode.no", "reason": "x"}]`, map[string]bool{"result.report": true}},
	} {
		module := open + "\n# METADATA\n# title: No\nold contains {\"rule\": \"mode.no\"} if input.never\n\ndeny := " + strings.ReplaceAll(c.deny, `"mode.no"`, `concat(".", ["mode", "no"])`) + "\n"
		r := conclude(t, load(t, replaced(t, capability.ModeLayer, module), nil), report(t))
		got := map[string]bool{}
		for _, d := range r.Denials {
			got[d.Action] = true
			if d.Rule != "mode.no" || d.Layer != capability.ModeLayer {
				t.Errorf("%s: %+v", name, d)
			}
		}
		if len(got) != len(c.refused) {
			t.Errorf("%s: refused %v, want %v", name, got, c.refused)
		}
		for action := range c.refused {
			if !got[action] {
				t.Errorf("%s: %s was not refused", name, action)
			}
		}
	}
}

func TestReasonsComeInOneOrder(t *testing.T) {
	module := open + `
# METADATA
# title: No
no(r) := {"action": r.action, "resource": r.resource, "rule": "mode.no", "reason": "x"}

deny := [no(r) | some i in numbers.range(1, count(input.requested)); r := input.requested[count(input.requested) - i]]
`
	e := load(t, replaced(t, capability.ModeLayer, module), nil)
	a, _ := decide(t, e, report(t)).Answer(capability.ModeLayer)
	var order []string
	for _, r := range a.Reasons {
		if r.Effect == capability.Deny {
			order = append(order, r.Action+" "+r.Resource.String())
		}
	}
	if len(order) != len(report(t).Requested) || !slices.IsSorted(order) {
		t.Errorf("%q", order)
	}
}

func TestDenialWithoutADestinationDeniesEveryDestination(t *testing.T) {
	module := `package writ.mode

decision := {"allow": allow, "deny": deny}

# METADATA
# title: Calls
allow contains {"action": "model.call", "resource": "model:**", "destination": "host:**", "rule": "mode.calls", "reason": "x"}

# METADATA
# title: No
deny contains {"action": "model.call", "resource": "model:a/b", "rule": "mode.no", "reason": "x"}
`
	in := report(t)
	in.Requested = []capability.Request{request(t, "model.call", "model:a/b", "host:h.example:443")}
	d, err := load(t, replaced(t, capability.ModeLayer, module), nil).Decide(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := d.Answer(capability.ModeLayer); a.Status != capability.OK || len(a.Allowed) > 0 {
		t.Errorf("%+v", a)
	}
}

func TestLayerThatTakesTooLongDeniesAndIsNotRemembered(t *testing.T) {
	slow := `package writ.mode

decision := {"allow": [], "deny": []} if count([1 | some a in numbers.range(1, 3000); some b in numbers.range(1, 3000); a + b == input.never]) == 0
`
	e := load(t, replaced(t, capability.ModeLayer, slow), func(o *policy.Options) { o.Timeout = 30 * time.Millisecond })
	begin := time.Now()
	r := conclude(t, e, report(t))
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	if len(r.Denials) == 0 || r.Denials[0].Code != reason.PolicyTimeout || r.Denials[0].Layer != capability.ModeLayer {
		t.Errorf("%+v", r.Denials)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	quick := load(t, shipped(t), nil)
	d, err := quick.Decide(ctx, report(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range d.Answers {
		if a.Code != reason.PolicyTimeout || len(a.Allowed) > 0 {
			t.Errorf("%s after cancellation: %+v", a.Layer, a)
		}
	}
	if err := conclude(t, quick, report(t)).Refusal(); err != nil {
		t.Errorf("the cancelled decision was remembered: %v", err)
	}
}

func TestLayersSeeOnlyTheirOwnDataAndTheLib(t *testing.T) {
	module := `package writ.mode

decision := {"allow": [], "deny": []} if not seen

seen if data.role

seen if data.deployment
`
	a, _ := decide(t, load(t, replaced(t, capability.ModeLayer, module), nil), report(t)).Answer(capability.ModeLayer)
	if a.Status != capability.OK {
		t.Errorf("the data of other layers is visible: %+v", a)
	}
}

func decide(t *testing.T, e *policy.Engine, in policy.Input) policy.Decision {
	t.Helper()
	d, err := e.Decide(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
