package broker_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/broker"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/schemas"
)

const (
	attempt = workorder.AttemptID("att_0199e0d2-0000-7000-8000-000000000001")
	now     = int64(1_800_000_000_000)
)

func live(generation uint64) workorder.Fence {
	return workorder.Fence{Attempt: attempt, Generation: generation, Phase: workorder.Live}
}

func registry(t *testing.T) *capability.Registry {
	t.Helper()
	b, err := schemas.FS.ReadFile("actions.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := capability.ParseRegistry(b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func grant(t *testing.T, action, resource, destination string) capability.Grant {
	t.Helper()
	g, err := registry(t).ParseGrant(action, resource, destination)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestOfferIsTheDeploymentWithoutWhatABrokerNeverIssues(t *testing.T) {
	b := broker.NewLocal(registry(t), broker.LocalTerms())
	read := grant(t, "input.read", "input:**", "")
	credential := grant(t, "credential.use", "credential:c", "host:h.example:443")
	merge := grant(t, "repo.merge", "repo:a/b", "branch:main")
	deployment := capability.Answer{Layer: capability.DeploymentLayer, Status: capability.OK, Allowed: capability.NewSet(read, credential, merge)}
	offer := b.Offer(deployment, []capability.Request{{Grant: read}, {Grant: credential}})
	if offer.Layer != capability.BrokerLayer || offer.Status != capability.OK || len(offer.Allowed) != 1 || !offer.Allowed.Covers(read) {
		t.Errorf("%+v", offer)
	}
	if len(offer.Reasons) != 1 || offer.Reasons[0].Action != "credential.use" || offer.Reasons[0].Effect != capability.Deny {
		t.Errorf("%+v", offer.Reasons)
	}
	failed := deployment
	failed.Status = capability.Failed
	other := deployment
	other.Layer = capability.RoleLayer
	for _, a := range []capability.Answer{failed, other, {}} {
		if offer := b.Offer(a, nil); offer.Status != capability.Failed || len(offer.Allowed) > 0 {
			t.Errorf("offers %+v for %+v", offer, a)
		}
	}
}

func TestIssueRefusesWhatIsNotEffective(t *testing.T) {
	b := broker.NewLocal(registry(t), broker.LocalTerms())
	docs, all := grant(t, "input.read", "input:docs/**", ""), grant(t, "input.read", "input:**", "")
	credential := grant(t, "credential.use", "credential:c", "host:h.example:443")
	merge := grant(t, "repo.merge", "repo:a/b", "branch:main")
	closing := live(1)
	closing.Phase = workorder.Closing
	for name, c := range map[string]struct {
		effective capability.Set
		fence     workorder.Fence
		grant     capability.Grant
		code      reason.Code
	}{
		"granted":       {capability.NewSet(docs), live(1), docs, ""},
		"wider":         {capability.NewSet(docs), live(1), all, reason.CapabilityNotGranted},
		"nothing":       {nil, live(1), docs, reason.CapabilityNotGranted},
		"credential":    {capability.NewSet(credential), live(1), credential, reason.CapabilityNotGranted},
		"merge":         {capability.NewSet(merge), live(1), merge, reason.CapabilityNotGranted},
		"unregistered":  {capability.NewSet(docs), live(1), capability.Grant{Action: "shell.run", Resource: docs.Resource}, reason.CapabilityUnknownAction},
		"closing fence": {capability.NewSet(docs), closing, docs, reason.KernelPhaseForbids},
		"no attempt":    {capability.NewSet(docs), workorder.Fence{Phase: workorder.Live}, docs, reason.BrokerGrantInvalid},
	} {
		if _, err := b.Issue(c.effective, c.fence, c.grant, now); reason.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
	}
}

func TestCheckBindsTheToken(t *testing.T) {
	b := broker.NewLocal(registry(t), broker.Terms{LifeMillis: 1000, Uses: map[string]int64{"model.call": 3}})
	call := grant(t, "model.call", "model:local/**", "host:h.example:443")
	call.Limits.Bytes = 100
	token, err := b.Issue(capability.NewSet(call), live(2), call, now)
	if err != nil {
		t.Fatal(err)
	}
	model := grant(t, "model.call", "model:local/small", "host:h.example:443")
	use := broker.Use{Fence: live(2), Action: "model.call", Resource: model.Resource, Destination: model.Destination, NowUnixMilli: now}
	foreign := grant(t, "model.call", "model:other/small", "host:h.example:80")
	for name, c := range map[string]struct {
		change func(*broker.Use)
		code   reason.Code
	}{
		"as issued":          {func(*broker.Use) {}, ""},
		"last use":           {func(u *broker.Use) { u.Used = 2 }, ""},
		"one too many":       {func(u *broker.Use) { u.Used = 3 }, reason.BrokerGrantSpent},
		"negative":           {func(u *broker.Use) { u.Used = -1 }, reason.BrokerGrantSpent},
		"last moment":        {func(u *broker.Use) { u.NowUnixMilli = now + 999 }, ""},
		"expired":            {func(u *broker.Use) { u.NowUnixMilli = now + 1000 }, reason.BrokerGrantExpired},
		"clock went back":    {func(u *broker.Use) { u.NowUnixMilli = now - 1 }, reason.BrokerGrantExpired},
		"bytes":              {func(u *broker.Use) { u.Bytes = 100 }, ""},
		"too many bytes":     {func(u *broker.Use) { u.Bytes = 101 }, reason.BrokerGrantSpent},
		"newer fence":        {func(u *broker.Use) { u.Fence.Generation = 3 }, reason.BrokerGrantForeign},
		"older fence":        {func(u *broker.Use) { u.Fence.Generation = 1 }, reason.BrokerGrantForeign},
		"another attempt":    {func(u *broker.Use) { u.Fence.Attempt = "att_other" }, reason.BrokerGrantForeign},
		"closing":            {func(u *broker.Use) { u.Fence.Phase = workorder.Closing }, reason.KernelPhaseForbids},
		"no phase":           {func(u *broker.Use) { u.Fence.Phase = "" }, reason.KernelPhaseForbids},
		"another action":     {func(u *broker.Use) { u.Action = "input.read" }, reason.BrokerGrantForeign},
		"another model":      {func(u *broker.Use) { u.Resource = foreign.Resource }, reason.BrokerGrantForeign},
		"another port":       {func(u *broker.Use) { u.Destination = foreign.Destination }, reason.BrokerGrantForeign},
		"no destination":     {func(u *broker.Use) { u.Destination = capability.Scope{} }, reason.BrokerGrantForeign},
		"the zero resource":  {func(u *broker.Use) { u.Resource = capability.Scope{} }, reason.BrokerGrantForeign},
		"the whole resource": {func(u *broker.Use) { u.Resource = call.Resource }, ""},
	} {
		u := use
		c.change(&u)
		if err := token.Check(u); reason.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
	}
	if err := (broker.Token{}).Check(use); !reason.Is(err, reason.BrokerGrantInvalid) {
		t.Errorf("the zero token: %v", err)
	}
}

func TestUsesAreOneByDefaultAndNeverAboveTheLimit(t *testing.T) {
	b := broker.NewLocal(registry(t), broker.LocalTerms())
	report := grant(t, "result.report", "", "")
	token, err := b.Issue(capability.NewSet(report), live(1), report, now)
	if err != nil || token.Uses != 1 {
		t.Errorf("%d uses (%v)", token.Uses, err)
	}
	read := grant(t, "input.read", "input:docs/**", "")
	read.Limits.Calls = 7
	if token, err = b.Issue(capability.NewSet(read), live(1), read, now); err != nil || token.Uses != 7 {
		t.Errorf("%d uses (%v)", token.Uses, err)
	}
}

func TestTokensSurviveTheirCanonicalForm(t *testing.T) {
	reg := registry(t)
	b := broker.NewLocal(reg, broker.LocalTerms())
	g := grant(t, "tool.run", "tool:textstat", "")
	rapid.Check(t, func(t *rapid.T) {
		fence := live(rapid.Uint64Range(1, 1<<50).Draw(t, "generation"))
		token, err := b.Issue(capability.NewSet(g), fence, g, rapid.Int64Range(0, now).Draw(t, "now"))
		if err != nil {
			t.Fatal(err)
		}
		bytes, err := canonical.Marshal(token)
		if err != nil {
			t.Fatal(err)
		}
		var again broker.Token
		if err := canonical.DecodeCanonical(bytes, &again); err != nil || again != token {
			t.Fatalf("%+v became %+v (%v)", token, again, err)
		}
		if d, err := again.Digest(); err != nil || d != canonical.Sum(bytes) {
			t.Fatalf("digest %s (%v)", d, err)
		}
	})
}
