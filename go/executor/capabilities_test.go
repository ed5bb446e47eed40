package executor_test

import (
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

const manifest = `{"kind":"writ.executor_capabilities.v1","protocols":["writ.executor.v1"],
"operations":["prepare","start","cancel","collect","cleanup"],"environments":["ephemeral_isolated"],"tools":["wasm"],"checkpoint":false,
"effects":[{"operation":"prepare","effect_class":"provider_idempotent"},{"operation":"start","effect_class":"reconcilable"},
{"operation":"cancel","effect_class":"provider_idempotent"},{"operation":"collect","effect_class":"provider_idempotent"},
{"operation":"cleanup","effect_class":"provider_idempotent"}]}`

func TestCapabilities(t *testing.T) {
	c, err := executor.ParseCapabilities([]byte(manifest), "a")
	if err != nil {
		t.Fatal(err)
	}
	if c.Class(operation.Start) != operation.Reconcilable || c.Class(operation.Launch) != "" {
		t.Errorf("classes %+v", c.Effects)
	}
	for _, tt := range []struct {
		isolation, tool string
		ok              bool
	}{{"ephemeral_isolated", "wasm", true}, {"trusted_local", "wasm", false}, {"ephemeral_isolated", "command", false}} {
		if err := c.Supports(tt.isolation, tt.tool); (err == nil) != tt.ok || (err != nil && !reason.Is(err, reason.AdapterUnsupported)) {
			t.Errorf("%v: %v", tt, err)
		}
	}
}

func TestCapabilitiesAreStrict(t *testing.T) {
	for name, change := range map[string][2]string{
		"another kind":          {"writ.executor_capabilities.v1", "writ.other.v1"},
		"an unknown field":      {`"checkpoint":false`, `"checkpoint":false,"note":1`},
		"a missing operation":   {`,"cleanup"]`, `]`},
		"a foreign operation":   {`"prepare",`, `"prepare","destroy",`},
		"no class":              {`{"operation":"start","effect_class":"reconcilable"},`, ``},
		"an unknown class":      {`"reconcilable"`, `"maybe"`},
		"checkpoint undeclared": {`"checkpoint":false`, `"checkpoint":true`},
	} {
		if _, err := executor.ParseCapabilities([]byte(strings.Replace(manifest, change[0], change[1], 1)), "a"); !reason.Is(err, reason.PinMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := executor.ParseCapabilities(nil, "a"); !reason.Is(err, reason.PinMalformed) {
		t.Errorf("no manifest: %v", err)
	}
}
