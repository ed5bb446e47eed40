package capability_test

import (
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/schemas"
)

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

func TestRegistryOfTheRelease(t *testing.T) {
	r := registry(t)
	if !r.Digest().Valid() {
		t.Error("no digest")
	}
	merge, ok := r.Action("repo.merge")
	if !ok || !merge.HumanOnly {
		t.Error("repo.merge is not for people only")
	}
	for _, a := range r.Actions() {
		if a.HumanOnly != (a.Name == "repo.merge") {
			t.Errorf("%s: human only is %v", a.Name, a.HumanOnly)
		}
		if got, ok := r.Action(a.Name); !ok || got != a {
			t.Errorf("%s is not found", a.Name)
		}
	}
	if _, ok := r.Action("repo.Merge"); ok {
		t.Error("an alias is an action")
	}
}

func TestBadRegistriesAreRefused(t *testing.T) {
	row := func(name, resource, destination, mode, summary string) string {
		return `{"action":"` + name + `","resource":"` + resource + `","destination":"` + destination + `","minimum_mode":"` + mode +
			`","human_only":false,"summary":"` + summary + `"}`
	}
	good := row("a.b", "tool", "none", "observe", "s")
	doc := func(rows ...string) string {
		return `{"kind":"writ.actions.v1","actions":[` + strings.Join(rows, ",") + `]}`
	}
	if _, err := capability.ParseRegistry([]byte(doc(good))); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"twice":           doc(good, good),
		"scope":           doc(row("a.b", "file", "none", "observe", "s")),
		"destination":     doc(row("a.b", "tool", "", "observe", "s")),
		"mode":            doc(row("a.b", "tool", "none", "root", "s")),
		"no summary":      doc(row("a.b", "tool", "none", "observe", "")),
		"star":            doc(row("*", "tool", "none", "observe", "s")),
		"no dot":          doc(row("run", "tool", "none", "observe", "s")),
		"kind":            strings.Replace(doc(good), "writ.actions.v1", "writ.actions.v2", 1),
		"unknown field":   strings.Replace(doc(good), `"kind"`, `"x":1,"kind"`, 1),
		"not JSON":        "actions",
		"duplicate field": strings.Replace(doc(good), `"human_only":false`, `"human_only":true,"human_only":false`, 1),
	} {
		if _, err := capability.ParseRegistry([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestParseGrant(t *testing.T) {
	r := registry(t)
	for _, c := range []struct {
		action, resource, destination string
		code                          reason.Code
	}{
		{"input.read", "input:docs/**", "", ""},
		{"result.report", "none", "", ""},
		{"result.report", "", "", ""},
		{"result.report", "", "none", ""},
		{"model.call", "model:a/b", "host:h:1", ""},
		{"repo.merge", "repo:a/b", "branch:main", ""}, // can be asked for, and is refused with an explanation
		{"shell.run", "tool:a", "", reason.CapabilityUnknownAction},
		{"*", "tool:a", "", reason.CapabilityUnknownAction},
		{"", "tool:a", "", reason.CapabilityUnknownAction},
		{"input.read", "output:docs", "", reason.CapabilityMalformedGrant},
		{"input.read", "none", "", reason.CapabilityMalformedGrant},
		{"input.read", "", "", reason.CapabilityMalformedScope},
		{"input.read", "input:docs", "host:h:1", reason.CapabilityMalformedGrant},
		{"model.call", "model:a/b", "", reason.CapabilityMalformedGrant},
		{"model.call", "model:a/b", "branch:main", reason.CapabilityMalformedGrant},
		{"result.report", "tool:a", "", reason.CapabilityMalformedGrant},
	} {
		_, err := r.ParseGrant(c.action, c.resource, c.destination)
		if reason.CodeOf(err) != c.code {
			t.Errorf("%s on %q to %q: %v, want %q", c.action, c.resource, c.destination, err, c.code)
		}
	}
	g, err := r.ParseGrant("input.read", "input:docs", "")
	if err != nil {
		t.Fatal(err)
	}
	g.Limits.Calls = -1
	if !reason.Is(r.Check(g), reason.CapabilityMalformedGrant) {
		t.Error("a negative limit is accepted")
	}
}
