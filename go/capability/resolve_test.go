package capability_test

import (
	"maps"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
)

func grant(t *testing.T, action, resource, destination string) capability.Grant {
	t.Helper()
	g, err := registry(t).ParseGrant(action, resource, destination)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// everyone answers for every layer with the same set.
func everyone(allowed ...capability.Grant) map[capability.Layer]capability.Answer {
	answers := map[capability.Layer]capability.Answer{}
	for _, l := range capability.Layers() {
		answers[l] = capability.Answer{Layer: l, Status: capability.OK, Allowed: capability.NewSet(allowed...)}
	}
	return answers
}

func TestResolveGivesWhatEveryLayerAllows(t *testing.T) {
	docs := grant(t, "input.read", "input:docs/**", "")
	all := grant(t, "input.read", "input:**", "")
	effective, denials := registry(t).Resolve([]capability.Request{{Grant: docs, Required: true}}, capability.Observe, everyone(all))
	if len(denials) > 0 {
		t.Fatal(denials)
	}
	want := capability.Effective{Mode: capability.Observe, Grants: capability.NewSet(docs)}
	if !reflect.DeepEqual(effective, want) {
		t.Errorf("got %v, want %v", effective, want)
	}
}

func TestEachLayerAloneCanRefuse(t *testing.T) {
	docs := grant(t, "input.read", "input:docs/**", "")
	for _, l := range capability.Layers() {
		usable := capability.Answer{Layer: l, Status: capability.OK, Allowed: capability.NewSet(docs)}
		none := usable
		none.Allowed = nil
		part := usable
		part.Allowed = capability.NewSet(grant(t, "input.read", "input:docs/a", ""))
		unspoken := usable
		unspoken.Status = ""
		failed := usable
		failed.Status = capability.Failed
		odd := usable
		odd.Status = "OK"
		other := usable
		other.Layer = capability.RoleLayer
		if l == capability.RoleLayer {
			other.Layer = capability.ModeLayer
		}
		unregistered := usable
		unregistered.Allowed = capability.Set{docs, {Action: "shell.run", Resource: docs.Resource}}
		negative := usable
		negative.Allowed = capability.Set{{Action: "input.read", Resource: docs.Resource, Limits: capability.Limits{Calls: -1}}}
		for name, c := range map[string]struct {
			answer *capability.Answer
			code   reason.Code
		}{
			"absent":              {nil, reason.PolicyLayerFailed},
			"allows nothing":      {&none, reason.CapabilityNotGranted},
			"allows a part":       {&part, reason.CapabilityNotGranted},
			"no status":           {&unspoken, reason.PolicyLayerFailed},
			"failed with a set":   {&failed, reason.PolicyLayerFailed},
			"unknown status":      {&odd, reason.PolicyLayerFailed},
			"answer of another":   {&other, reason.PolicyMalformedAnswer},
			"unregistered action": {&unregistered, reason.PolicyMalformedAnswer},
			"negative limit":      {&negative, reason.PolicyMalformedAnswer},
		} {
			answers := everyone(docs)
			delete(answers, l)
			if c.answer != nil {
				answers[l] = *c.answer
			}
			for _, required := range []bool{true, false} {
				effective, denials := registry(t).Resolve([]capability.Request{{Grant: docs, Required: required}}, capability.Observe, answers)
				if !required && c.code == reason.CapabilityNotGranted {
					if len(denials) > 0 || len(effective.Omitted) != 1 || effective.Omitted[0].Layer != l {
						t.Errorf("%s, %s, optional: %v, %v", l, name, effective, denials)
					}
					continue
				}
				if len(effective.Grants) > 0 || len(denials) != 1 {
					t.Fatalf("%s, %s: %v, %v", l, name, effective, denials)
				}
				if d := denials[0]; d.Layer != l || d.Code != c.code || d.Rule == "" || d.Reason == "" || d.Remedy == "" {
					t.Errorf("%s, %s: %+v", l, name, d)
				}
			}
			// Nothing asked for: a broken layer must stop the attempt all the same.
			if _, denials := registry(t).Resolve(nil, capability.Observe, answers); (len(denials) > 0) != (c.code != reason.CapabilityNotGranted) {
				t.Errorf("%s, %s, nothing requested: %v", l, name, denials)
			}
		}
	}
}

func TestAnswerOfNoLayerDeniesEverything(t *testing.T) {
	docs := grant(t, "input.read", "input:docs/**", "")
	answers := everyone(docs)
	answers["plugin"] = capability.Answer{Layer: "plugin", Status: capability.OK, Allowed: capability.NewSet(docs)}
	effective, denials := registry(t).Resolve([]capability.Request{{Grant: docs, Required: true}}, capability.Observe, answers)
	if len(effective.Grants) > 0 || len(denials) != 1 || denials[0].Code != reason.PolicyMalformedAnswer {
		t.Errorf("%v, %v", effective, denials)
	}
}

func TestMergeIsNeverEffective(t *testing.T) {
	merge := grant(t, "repo.merge", "repo:a/b", "branch:main")
	for _, m := range capability.Modes() {
		effective, denials := registry(t).Resolve([]capability.Request{{Grant: merge}}, m, everyone(merge))
		if len(effective.Grants) > 0 || len(denials) > 0 || len(effective.Omitted) != 1 || effective.Omitted[0].Code != reason.CapabilityHumanOnly {
			t.Errorf("%s: %v, %v", m, effective, denials)
		}
		_, denials = registry(t).Resolve([]capability.Request{{Grant: merge, Required: true}}, m, everyone(merge))
		if len(denials) != 1 || denials[0].Layer != capability.ConstitutionLayer || denials[0].Code != reason.CapabilityHumanOnly {
			t.Errorf("%s: %v", m, denials)
		}
	}
}

func TestModeCeilingRefusesWhatEveryLayerAllows(t *testing.T) {
	propose := grant(t, "artifact.propose", "output:report.json", "")
	for _, m := range capability.Modes() {
		effective, denials := registry(t).Resolve([]capability.Request{{Grant: propose, Required: true}}, m, everyone(propose))
		if m.AtLeast(capability.Proposal) {
			if len(denials) > 0 || len(effective.Grants) != 1 {
				t.Errorf("%s: %v", m, denials)
			}
			continue
		}
		if len(denials) != 1 || denials[0].Layer != capability.ModeLayer || denials[0].Code != reason.CapabilityModeCeiling {
			t.Errorf("%s: %v", m, denials)
		}
	}
}

func TestUnregisteredRequestAndUnknownModeAreRefused(t *testing.T) {
	docs := grant(t, "input.read", "input:docs/**", "")
	shell := capability.Grant{Action: "shell.run", Resource: docs.Resource}
	_, denials := registry(t).Resolve([]capability.Request{{Grant: docs}, {Grant: shell}}, capability.Observe, everyone(docs))
	if len(denials) != 1 || denials[0].Action != "shell.run" || denials[0].Code != reason.CapabilityUnknownAction {
		t.Errorf("unregistered: %v", denials)
	}
	effective, denials := registry(t).Resolve([]capability.Request{{Grant: docs}}, "root", everyone(docs))
	if len(effective.Grants) > 0 || len(denials) != 1 || denials[0].Code != reason.CapabilityUnknownMode {
		t.Errorf("mode: %v", denials)
	}
}

func TestDenialNamesTheRuleThatSpoke(t *testing.T) {
	docs := grant(t, "input.read", "input:docs/**", "")
	answers := everyone(docs)
	answers[capability.RoleLayer] = capability.Answer{Layer: capability.RoleLayer, Status: capability.OK, Reasons: []capability.Reason{
		{Effect: capability.Allow, Action: "input.read", Resource: docs.Resource, Rule: "role.allows", Text: "yes"},
		{Effect: capability.Deny, Action: "input.read", Resource: scope(t, "input:other"), Rule: "role.other", Text: "other"},
		{Effect: capability.Deny, Action: capability.AnyAction, Rule: "role.everything", Text: "all"},
		{Effect: capability.Deny, Action: "input.read", Resource: scope(t, "input:docs/secret"), Rule: "role.secret", File: "policies/role/role.rego", Line: 7, Text: "no", Remedy: "ask less"},
	}}
	_, denials := registry(t).Resolve([]capability.Request{{Grant: docs, Required: true}}, capability.Observe, answers)
	if len(denials) != 1 {
		t.Fatal(denials)
	}
	want := capability.Denial{Code: reason.PolicyDenied, Action: "input.read", Resource: docs.Resource, Layer: capability.RoleLayer,
		Rule: "role.secret", File: "policies/role/role.rego", Line: 7, Reason: "no", Remedy: "ask less"}
	if denials[0] != want {
		t.Errorf("got %+v", denials[0])
	}
	const sentence = "input.read on input:docs/** is refused by the role layer: no (policies/role/role.rego:7): ask less [policy.denied]"
	if got := denials[0].Refusal().Error(); got != sentence {
		t.Errorf("got %s", got)
	}
}

func TestLimitsNarrowAndRefuseWhenNamed(t *testing.T) {
	docs := grant(t, "input.read", "input:docs/**", "")
	limited := docs
	limited.Limits.Calls = 5
	answers := everyone(docs)
	answers[capability.BrokerLayer] = capability.Answer{Layer: capability.BrokerLayer, Status: capability.OK, Allowed: capability.NewSet(limited)}
	effective, denials := registry(t).Resolve([]capability.Request{{Grant: docs, Required: true}}, capability.Observe, answers)
	if len(denials) > 0 || !reflect.DeepEqual(effective.Grants, capability.NewSet(limited)) {
		t.Errorf("a request without limits: %v, %v", effective, denials)
	}
	more := docs
	more.Limits.Calls = 6
	if _, denials := registry(t).Resolve([]capability.Request{{Grant: more, Required: true}}, capability.Observe, answers); len(denials) != 1 || denials[0].Layer != capability.BrokerLayer {
		t.Errorf("a request beyond the limit: %v", denials)
	}
}

func TestResolveProperties(t *testing.T) {
	r := registry(t)
	rapid.Check(t, func(t *rapid.T) {
		answers := map[capability.Layer]capability.Answer{}
		for _, l := range capability.Layers() {
			answers[l] = capability.Answer{Layer: l, Status: capability.OK, Allowed: sets().Draw(t, string(l))}
		}
		var requests []capability.Request
		for _, g := range rapid.SliceOfN(grants(), 1, 4).Draw(t, "requests") {
			requests = append(requests, capability.Request{Grant: g})
		}
		var before capability.Set
		for _, m := range capability.Modes() {
			effective, denials := r.Resolve(requests, m, answers)
			if len(denials) > 0 {
				t.Fatal(denials)
			}
			if effective.Mode != m {
				t.Fatalf("mode %s became %s", m, effective.Mode)
			}
			for l, a := range answers {
				if !a.Allowed.Contains(effective.Grants) {
					t.Fatalf("%v is not in the set of %s, %v", effective.Grants, l, a.Allowed)
				}
			}
			for _, g := range effective.Grants {
				asked := false
				for _, q := range requests {
					asked = asked || q.Contains(g)
				}
				if !asked || !r.WithinMode(g, m) {
					t.Fatalf("%v was not asked for, or is above %s", g, m)
				}
			}
			// Raising the mode opens what was granted already, and takes nothing back.
			if !effective.Grants.Contains(before) {
				t.Fatalf("%s lost %v", m, before)
			}
			before = effective.Grants
		}

		// One more narrowing anywhere never widens.
		l := rapid.SampledFrom(capability.Layers()).Draw(t, "layer")
		narrower := maps.Clone(answers)
		a := narrower[l]
		a.Allowed = a.Allowed.Intersect(sets().Draw(t, "narrower"))
		narrower[l] = a
		effective, _ := r.Resolve(requests, capability.Production, narrower)
		if !before.Contains(effective.Grants) {
			t.Fatalf("narrowing %s gave %v, before %v", l, effective.Grants, before)
		}

		// The same question twice gives the same bytes.
		one, _ := r.Resolve(requests, capability.Production, answers)
		two, _ := r.Resolve(requests, capability.Production, maps.Clone(answers))
		b1, err := canonical.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		if b2, err := canonical.Marshal(two); err != nil || string(b1) != string(b2) {
			t.Fatalf("%s is not %s (%v)", b1, b2, err)
		}
	})
}

func TestNarrowReportsParts(t *testing.T) {
	docs, a := grant(t, "input.read", "input:docs/**", ""), grant(t, "input.read", "input:docs/a", "")
	requests := []capability.Request{{Grant: docs}, {Grant: a}, {Grant: grant(t, "tool.run", "tool:t", "")}}
	got := capability.Answer{Layer: capability.RoleLayer, Status: capability.OK, Allowed: capability.NewSet(a)}.Narrow(requests)
	want := []capability.Narrowing{{Requested: docs, Allowed: capability.NewSet(a)}}
	if !reflect.DeepEqual(got.Narrowings, want) {
		t.Errorf("got %v", got.Narrowings)
	}
}
