package policy_test

import (
	"bytes"
	"context"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/reason"
)

func TestForbiddenFunctionsFailLoadingWithTheirPlace(t *testing.T) {
	for _, call := range []string{
		`http.send({"method": "get", "url": "http://h"})`, `time.now_ns()`, `rand.intn("x", 3)`, `uuid.rfc4122("x")`,
		`opa.runtime()`, `net.lookup_ip_addr("h")`, `io.jwt.decode_verify("x", {})`, `io.jwt.decode("x")`,
		`json.match_schema({}, {})`, `rego.parse_module("a", "package a")`, `units.parse("1.5")`, `to_number("1.5")`,
		`json.unmarshal("1.5")`, `round(1)`, `1 / 2`, `time.parse_ns("2006", "2006")`, `trace("x")`, `providers.aws.sign_req({}, {}, 1)`,
		`[x | x := http.send({})]`, `{"a": [time.now_ns()]}`,
	} {
		module := open + noDenial + "\nodd := " + call + "\n"
		line := strings.Count(module, "\n")
		_, err := policy.Load(context.Background(), replaced(t, capability.ModeLayer, module), policy.Options{Registry: registry(t)})
		if !reason.Is(err, reason.PolicyForbiddenBuiltin) {
			t.Errorf("%s: %v", call, err)
			continue
		}
		r, _ := reason.As(err)
		if want := "policies/mode/mode.rego:" + strconv.Itoa(line); !strings.HasPrefix(r.Where, want) || r.Remedy == "" {
			t.Errorf("%s: where is %s, want %s", call, r.Where, want)
		}
	}
	// Not even a mock may name one.
	_, err := policy.Load(context.Background(), replaced(t, capability.ModeLayer, open+noDenial+"\nodd := 1 if count(\"x\") == 1 with count as http.send\n"), policy.Options{Registry: registry(t)})
	if err == nil {
		t.Error("a mock brings in http.send")
	}
}

func TestCapabilitiesHoldNothingNondeterministic(t *testing.T) {
	c := policy.Capabilities()
	if c.AllowNet == nil || len(c.AllowNet) > 0 {
		t.Error("remote schemas may be fetched")
	}
	names := map[string]bool{}
	for _, b := range c.Builtins {
		names[b.Name] = true
		if b.IsNondeterministic() {
			t.Errorf("%s is allowed", b.Name)
		}
	}
	for _, b := range []string{"http.send", "time.now_ns", "rand.intn", "uuid.rfc4122", "opa.runtime", "net.lookup_ip_addr", "div", "crypto.x509.parse_and_verify_certificates"} {
		if names[b] {
			t.Errorf("%s is allowed", b)
		}
	}
	for _, b := range []string{"sprintf", "concat", "count", "regex.match", "object.union", "startswith", "rem", "net.cidr_contains"} {
		if !names[b] {
			t.Errorf("%s is missing", b)
		}
	}
	if before := len(ast.CapabilitiesForThisVersion().Builtins); before <= len(c.Builtins) {
		t.Error("nothing was taken away")
	}
}

func TestBadPoliciesFailLoading(t *testing.T) {
	type files = policy.Files
	change := func(do func(files)) files {
		f := maps.Clone(shipped(t))
		do(f)
		return f
	}
	mode := func(more string) files { return replaced(t, capability.ModeLayer, open+noDenial+more) }
	for name, c := range map[string]struct {
		files files
		says  string
	}{
		"no policies":           {files{}, "decision"},
		"a layer is missing":    {change(func(f files) { delete(f, "policies/role/role.rego") }), "role"},
		"the lib is missing":    {change(func(f files) { delete(f, "policies/lib/lib.rego") }), "lib"},
		"no decision":           {replaced(t, capability.ModeLayer, "package writ.mode\n\nallow := []\n"), "decision"},
		"syntax":                {mode("\nx := \n"), "mode.rego:"},
		"another package":       {change(func(f files) { f["policies/x.rego"] = []byte("package writ.plugin\n") }), "x.rego:1"},
		"a foreign package":     {change(func(f files) { f["policies/x.rego"] = []byte("package system\n") }), "x.rego:1"},
		"unused variable":       {mode("\nx if { y := 1; true }\n"), "mode.rego:"},
		"unused import":         {replaced(t, capability.ModeLayer, strings.Replace(open+noDenial, "\n\ndecision", "\n\nimport data.writ.lib\n\ndecision", 1)), "mode.rego:3"},
		"undefined function":    {mode("\nx := nothing.here(1)\n"), "nothing.here"},
		"a fraction":            {mode("\nx := 1.5\n"), "integers"},
		"a huge number":         {mode("\nx := 1e400\n"), "integers"},
		"print":                 {mode("\nx if print(\"x\")\n"), "mode.rego:"},
		"data that is no JSON":  {change(func(f files) { f["policies/role/data.json"] = []byte("{") }), "data.json"},
		"data with a fraction":  {change(func(f files) { f["policies/role/data.json"] = []byte(`{"role": {"x": 1.5}}`) }), "data.json"},
		"data twice":            {change(func(f files) { f["policies/a/data.json"] = f["policies/role/data.json"] }), "data"},
		"a key twice":           {change(func(f files) { f["policies/role/data.json"] = []byte(`{"role": {"x": 1, "x": 2}}`) }), "data.json"},
		"data of no layer":      {change(func(f files) { f["policies/role/data.json"] = []byte(`{"writ": {}}`) }), "writ"},
		"data in a list":        {change(func(f files) { f["policies/role/data.json"] = []byte(`{"role": []}`) }), "role"},
		"rule of another layer": {mode("\n# METADATA\n# title: X\nx contains {\"rule\": \"role.x\"} if input.a\n"), "role.x"},
		"rule id twice":         {mode("\n# METADATA\n# title: X\nx contains {\"rule\": \"mode.open\"} if input.a\n"), "mode.open"},
		"rule without a title":  {mode("\nx contains {\"rule\": \"mode.x\"} if input.a\n"), "title"},
		"negated comparison":    {mode("\nx if not input.a > 1\n"), "undefined"},
		"negated membership":    {mode("\nx if not input.a in [1]\n"), "undefined"},
		"negated lookup":        {mode("\nx if not data.mode.floors[input.a]\n"), "input.a"},
		"negated call":          {mode("\nx if not startswith(input.a, \"b\")\n"), "input.a"},
		"negated sum":           {mode("\nx if { some r in input.requested; not count(r.action) == 1 }\n"), "r.action"},
		"negated list":          {mode("\nx if not [input.a] == [1]\n"), "input.a"},
	} {
		_, err := policy.Load(context.Background(), c.files, policy.Options{Registry: registry(t)})
		if err == nil {
			t.Errorf("%s: loaded", name)
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, more := range map[string]string{
		"negated reference": "\nx if not input.a\n",
		"negated equality":  "\nx if not input.a == 1\n",
		"negated set":       "\nx if not \"a\" in names\n\nnames contains n if some n in input.names\n",
		"negated default":   "\nx if not word in {\"a\"}\n\ndefault word := \"\"\n\nword := input.word\n",
		"bound before":      "\nx if {\n\ta := input.a\n\tnot a > 1\n}\n",
		"negated rule":      "\nx if not y\n\ny if input.a > 1\n",
	} {
		if _, err := policy.Load(context.Background(), mode(more), policy.Options{Registry: registry(t)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := policy.Load(context.Background(), shipped(t), policy.Options{}); err == nil {
		t.Error("loaded without a registry")
	}
}

func TestPinsAreCompared(t *testing.T) {
	e := load(t, shipped(t), nil)
	pins := map[capability.Layer]canonical.Digest{}
	for _, d := range e.Digests() {
		pins[d.Layer] = d.Digest
		if !d.Digest.Valid() || e.Digest(d.Layer) != d.Digest {
			t.Errorf("%s: digest %q", d.Layer, d.Digest)
		}
	}
	load(t, shipped(t), func(o *policy.Options) { o.Pins = pins })
	for _, l := range capability.PolicyLayers() {
		changed := replaced(t, l, string(shipped(t)["policies/"+string(l)+"/"+string(l)+".rego"])+"\n# changed\n")
		if _, err := policy.Load(context.Background(), changed, policy.Options{Registry: registry(t), Pins: pins}); !reason.Is(err, reason.PinDigestMismatch) {
			t.Errorf("%s: %v", l, err)
		}
	}
	lib := maps.Clone(shipped(t))
	lib["policies/lib/lib.rego"] = append(bytes.Clone(lib["policies/lib/lib.rego"]), '\n')
	if _, err := policy.Load(context.Background(), lib, policy.Options{Registry: registry(t), Pins: pins}); !reason.Is(err, reason.PinDigestMismatch) {
		t.Errorf("lib: %v", err)
	}
	data := maps.Clone(shipped(t))
	data["policies/role/data.json"] = bytes.Replace(data["policies/role/data.json"], []byte(`"shadow"`), []byte(`"production"`), 1)
	if _, err := policy.Load(context.Background(), data, policy.Options{Registry: registry(t), Pins: pins}); !reason.Is(err, reason.PinDigestMismatch) {
		t.Errorf("data: %v", err)
	}
}
