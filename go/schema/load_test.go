package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
)

func open(t testing.TB) *schema.Registry {
	t.Helper()
	r, err := schema.Open()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// order is a whole work order in YAML; tests replace parts of it.
const order = `# what a person writes
kind: writ.workorder.v1
title: Count the words
objective: |
  Every text is counted.
mode: observe
role: reader
environment:
  provider: wasm
  limits: {memory_bytes: 67108864, wall_ms: 10000}
tool:
  name: wordcount
  arguments: ["--top", '10', no, on, 8080:80]
inputs:
  - name: texts
    source: ./texts
outputs:
  result: report.json
  paths:
    - path: report.json
      media_type: application/json
    - path: logs/..hidden/*.txt
      media_type: text/plain
      required: false
  max_count: 4
  max_bytes: 1048576
actions:
- action: model.call
  resource: small
limits:
  money: {amount: 150, currency: EUR, scale: 2}
`

// sameInJSON is the same order in JSON, with another order of fields and other escapes.
const sameInJSON = `{"title": "Count the words", "kind": "writ.workorder.v1", "objective": "Every text is counted.\n",
 "role": "reader", "mode": "\u006fbserve", "environment": {"limits": {"wall_ms": 10000, "memory_bytes": 67108864}, "provider": "wasm"},
 "tool": {"name": "wordcount", "arguments": ["--top", "10", "no", "on", "8080:80"]},
 "inputs": [{"source": "./texts", "name": "texts"}],
 "outputs": {"max_bytes": 1048576, "max_count": 4, "result": "report.json", "paths": [
   {"media_type": "application/json", "path": "report.json"},
   {"media_type": "text/plain", "path": "logs/..hidden/*.txt", "required": false}]},
 "actions": [{"resource": "small", "action": "model.call"}],
 "limits": {"money": {"scale": 2, "amount": 150, "currency": "EUR"}}}`

func TestYAMLAndJSONGiveTheSameDigest(t *testing.T) {
	r := open(t)
	y, err := r.Load("order.yaml", []byte(order))
	if err != nil {
		t.Fatal(err)
	}
	j, err := r.Load("order.json", []byte(sameInJSON))
	if err != nil {
		t.Fatal(err)
	}
	if y.Digest != j.Digest || string(y.Canonical) != string(j.Canonical) || y.Kind != "writ.workorder.v1" {
		t.Errorf("YAML %s\nJSON %s", y.Canonical, j.Canonical)
	}
	for _, name := range []string{"order", "-"} { // without an extension the form is recognised
		if d, err := r.Load(name, []byte(sameInJSON)); err != nil || d.Digest != y.Digest {
			t.Errorf("%s as JSON: %v", name, err)
		}
		if d, err := r.Load(name, []byte(strings.ReplaceAll(order, "\n", "\r\n"))); err != nil || d.Digest != y.Digest {
			t.Errorf("%s as YAML with CRLF: %v", name, err)
		}
	}
	if err := r.ValidateCanonical(y.Kind, y.Canonical); err != nil {
		t.Error(err)
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, new string // one replacement in order
		code     reason.Code
		rule     string
		at       string // "line:column /path"
		text     string // part of the message or remedy
	}{
		{"anchor", "role: reader", "role: &r reader", reason.SchemaYAMLAlias, "yaml", "7:7 /role", "anchor"},
		{"alias", "role: reader", "role: *r", reason.SchemaYAMLAlias, "yaml", "7:7 ", "alias"},
		{"merge key", "role: reader", "<<: {role: reader}", reason.SchemaYAMLMerge, "yaml", "7:1 ", "merge"},
		{"tag", "role: reader", "role: !!str reader", reason.SchemaYAMLTag, "yaml", "7:7 /role", "tag"},
		{"alias of an anchor", "role: reader", "role: &r reader\nx: *r", reason.SchemaYAMLAlias, "yaml", "7:7 /role", "anchor"},
		{"tag without a name", "role: reader", "role: ! reader", reason.SchemaYAMLTag, "yaml", "7:7 /role", "tag"},
		{"tag without a value", "role: reader", "role: !x", reason.SchemaYAMLTag, "yaml", "7:7 /role", "tag"},
		{"tag on a mapping", "tool:\n", "tool: !t\n", reason.SchemaYAMLTag, "yaml", "11:7 /tool", "tag"},
		{"anchor on a key", "role: reader", "&r role: reader", reason.SchemaYAMLAlias, "yaml", "7:1 ", "anchor"},
		{"key is a list", "role: reader", "[a]: reader", reason.SchemaYAMLKey, "yaml", "7:1 ", "not a string"},
		{"key is a block", "role: reader", "? |\n  a\n: reader", reason.SchemaYAMLKey, "yaml", "7:3 ", "one line"},
		{"line separator", "Count", "C\u2028unt", reason.SchemaYAMLSyntax, "characters", "3:9 ", "U+2028"},
		{"directive", "# what", "%YAML 1.1\n---\n# what", reason.SchemaYAMLDirective, "yaml", "1:1 ", "directive"},
		{"second document", "role: reader\n", "role: reader\n---\na: 1\n", reason.SchemaYAMLMultiDocument, "yaml", "8:1 ", "second"},
		{"after the end", "scale: 2}\n", "scale: 2}\n...\na: 1\n", reason.SchemaYAMLSyntax, "yaml", "32:1 ", "document start"},
		{"duplicate key", "role: reader", "mode: shadow", reason.SchemaYAMLDuplicateKey, "yaml", "7:1 ", `"mode"`},
		{"duplicate in flow", "wall_ms: 10000", "memory_bytes: 1", reason.SchemaYAMLDuplicateKey, "yaml", "10:36 /environment/limits", "memory_bytes"},
		{"float", "wall_ms: 10000", "wall_ms: 1.5", reason.SchemaYAMLFloat, "yaml", "10:45 /environment/limits/wall_ms", "whole number"},
		{"whole float", "wall_ms: 10000", "wall_ms: 10.0", reason.SchemaYAMLFloat, "yaml", "10:45 /environment/limits/wall_ms", ""},
		{"exponent", "wall_ms: 10000", "wall_ms: 1e4", reason.SchemaYAMLFloat, "yaml", "10:45 /environment/limits/wall_ms", ""},
		{"infinity", "wall_ms: 10000", "wall_ms: .inf", reason.SchemaYAMLFloat, "yaml", "10:45 /environment/limits/wall_ms", ""},
		{"not a number", "wall_ms: 10000", "wall_ms: .NaN", reason.SchemaYAMLFloat, "yaml", "10:45 /environment/limits/wall_ms", ""},
		{"huge integer", "wall_ms: 10000", "wall_ms: 9007199254740992", reason.SchemaYAMLIntegerForm, "yaml", "10:45 /environment/limits/wall_ms", "2^53"},
		{"enormous integer", "wall_ms: 10000", "wall_ms: " + strings.Repeat("9", 500), reason.SchemaYAMLIntegerForm, "yaml", "10:45 /environment/limits/wall_ms", ""},
		{"octal", "wall_ms: 10000", "wall_ms: 0o17", reason.SchemaYAMLIntegerForm, "yaml", "10:45 /environment/limits/wall_ms", "decimal"},
		{"old octal", "wall_ms: 10000", "wall_ms: 017", reason.SchemaYAMLIntegerForm, "yaml", "10:45 /environment/limits/wall_ms", ""},
		{"hexadecimal", "wall_ms: 10000", "wall_ms: 0x1F", reason.SchemaYAMLIntegerForm, "yaml", "10:45 /environment/limits/wall_ms", ""},
		{"binary", "wall_ms: 10000", "wall_ms: 0b11", reason.SchemaYAMLIntegerForm, "yaml", "10:45 /environment/limits/wall_ms", ""},
		{"underscores", "wall_ms: 10000", "wall_ms: 10_000", reason.SchemaYAMLIntegerForm, "yaml", "10:45 /environment/limits/wall_ms", ""},
		{"underscore after the sign", "wall_ms: 10000", "wall_ms: -_5", reason.SchemaYAMLIntegerForm, "yaml", "10:45 /environment/limits/wall_ms", ""},
		{"underscore in an exponent", "wall_ms: 10000", "wall_ms: 1e_3", reason.SchemaYAMLFloat, "yaml", "10:45 /environment/limits/wall_ms", ""},
		{"plus", "wall_ms: 10000", "wall_ms: +1", reason.SchemaYAMLIntegerForm, "yaml", "10:45 /environment/limits/wall_ms", ""},
		{"negative zero", "wall_ms: 10000", "wall_ms: -0", reason.SchemaYAMLIntegerForm, "yaml", "10:45 /environment/limits/wall_ms", ""},
		{"date", "Count the words", "2026-01-31", reason.SchemaYAMLTimestamp, "yaml", "3:8 /title", "quote"},
		{"date and time", "Count the words", "2026-01-31T10:00:00Z", reason.SchemaYAMLTimestamp, "yaml", "3:8 /title", ""},
		{"base 60", "Count the words", "12:30", reason.SchemaYAMLTimestamp, "yaml", "3:8 /title", ""},
		{"integer key", "role: reader", "1: reader", reason.SchemaYAMLKey, "yaml", "7:1 ", "quote"},
		{"boolean key", "role: reader", "true: reader", reason.SchemaYAMLKey, "yaml", "7:1 ", ""},
		{"null key", "role: reader", "~: reader", reason.SchemaYAMLKey, "yaml", "7:1 ", ""},
		{"broken UTF-8", "Count", "C\xffunt", reason.CanonicalInvalidUTF8, "characters", "3:9 ", "0xff"},
		{"control character", "Count", "C\x00unt", reason.SchemaYAMLSyntax, "characters", "3:9 ", "U+0000"},
		{"bare carriage return", "Count", "C\runt", reason.SchemaYAMLSyntax, "characters", "3:9 ", ""},
		{"byte order mark", "# what", "\ufeff# what", reason.CanonicalByteOrderMark, "characters", "1:1 ", ""},
		{"tab indentation", "  provider", "\tprovider", reason.SchemaYAMLSyntax, "yaml", "", ""},
		{"open bracket", "[\"--top\"", "[[\"--top\"", reason.SchemaYAMLSyntax, "yaml", "", ""},
		{"too deep", "Count the words", strings.Repeat("[", 40) + strings.Repeat("]", 40), reason.CanonicalTooDeep, "yaml", "3:39 /title" + strings.Repeat("/0", 31), ""},
		{"too deep in blocks", "Count the words", "\n" + strings.Repeat(" -", 50), reason.CanonicalTooDeep, "yaml", "", ""},

		{"unknown kind", "workorder.v1", "workodrer.v1", reason.SchemaUnknownKind, "kind", "2:1 /kind", "did you mean writ.workorder.v1"},
		{"unknown version", "workorder.v1", "workorder.v2", reason.SchemaUnknownKind, "kind", "2:1 /kind", "knows writ.workorder.v1"},
		{"nothing like a kind", "writ.workorder.v1", "order", reason.SchemaUnknownKind, "kind", "2:1 /kind", "registered: write one of writ.workorder.v1"},
		{"other kind", "writ.workorder.v1", "writ.reasons.v1", reason.SchemaWrongKind, "kind", "2:1 /kind", "writ.workorder.v1"},
		{"no kind", "kind: writ.workorder.v1\n", "", reason.SchemaUnknownKind, "kind", "2:1 ", "add kind"},
		{"kind is a list", "kind: writ.workorder.v1", "kind: []", reason.SchemaUnknownKind, "kind", "2:1 /kind", "an array"},

		{"unknown field", "mode: observe", "mod: observe", reason.SchemaViolation, "required", "2:1 ", "mode is missing"},
		{"unknown field below", "media_type: text/plain", "media_type: text/plain\n      requird: true", reason.SchemaUnknownField, "additionalProperties", "24:7 /outputs/paths/1/requird", "did you mean required?"},
		{"nothing like it", "mode: observe", "mode: observe\nzzz: 1", reason.SchemaUnknownField, "additionalProperties", "7:1 /zzz", "remove it"},
		{"missing field", "  name: wordcount\n", "", reason.SchemaViolation, "required", "11:1 /tool", "add name"},
		{"misspelt mode", "mode: observe", "mode: observ", reason.SchemaViolation, "enum", "6:1 /mode", "did you mean observe?"},
		{"other mode", "mode: observe", "mode: x", reason.SchemaViolation, "enum", "6:1 /mode", `"shadow"`},
		{"parent folder", "path: report.json", "path: ../x", reason.SchemaViolation, "pattern", "20:7 /outputs/paths/0/path", "relative path"},
		{"parent folder inside", "path: report.json", "path: a/../x", reason.SchemaViolation, "pattern", "20:7 /outputs/paths/0/path", ""},
		{"absolute path", "path: report.json", "path: /x", reason.SchemaViolation, "pattern", "20:7 /outputs/paths/0/path", ""},
		{"this folder", "path: report.json", "path: ./x", reason.SchemaViolation, "pattern", "20:7 /outputs/paths/0/path", ""},
		{"double slash", "path: report.json", "path: a//x", reason.SchemaViolation, "pattern", "20:7 /outputs/paths/0/path", ""},
		{"trailing slash", "path: report.json", "path: a/", reason.SchemaViolation, "pattern", "20:7 /outputs/paths/0/path", ""},
		{"zero", "wall_ms: 10000", "wall_ms: 0", reason.SchemaViolation, "minimum", "10:36 /environment/limits/wall_ms", "at least 1"},
		{"quoted number", "wall_ms: 10000", "wall_ms: '1'", reason.SchemaViolation, "type", "10:36 /environment/limits/wall_ms", "found string where integer is wanted"},
		{"boolean for a string", "role: reader", "role: true", reason.SchemaViolation, "type", "7:1 /role", "found boolean"},
		{"nothing there", "role: reader", "role:", reason.SchemaViolation, "type", "7:1 /role", "found null"},
		{"null", "role: reader", "role: ~", reason.SchemaViolation, "type", "7:1 /role", "found null"},
		{"long title", "Count the words", strings.Repeat("x", 201), reason.SchemaViolation, "maxLength", "3:1 /title", "at most 200"},
		{"no outputs", "result: report.json\n  paths:", "paths: []\n  x-paths:", reason.SchemaViolation, "minItems", "18:3 /outputs/paths", "at least 1"},
		{"repeated action", "resource: small\n", "resource: small\n- {resource: small, action: model.call}\n", reason.SchemaViolation, "uniqueItems", "30:3 /actions/1", "repeats item 0"},
		{"currency", "currency: EUR", "currency: eur", reason.SchemaViolation, "pattern", "31:24 /limits/money/currency", "three capital letters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(order, c.old, c.new, 1)
			if text == order {
				t.Fatal("the replacement does nothing")
			}
			_, err := open(t).Load("order.yaml", []byte(text), "writ.workorder.v1")
			var ie *schema.InvalidError
			if !errors.As(err, &ie) {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			p := ie.Problems[0]
			at := strings.TrimPrefix(strings.SplitN(err.Error(), ": ", 2)[0], "order.yaml:") + " " + p.Path
			if p.Code != c.code || p.Rule != c.rule || (c.at != "" && at != c.at) || !strings.Contains(p.Message+": "+p.Remedy, c.text) {
				t.Errorf("got %s %s at %q:\n%v", p.Code, p.Rule, at, err)
			}
			if reason.ExitOf(err) != 3 || reason.CodeOf(err) != c.code {
				t.Errorf("as a refusal: %s, exit %d", reason.CodeOf(err), reason.ExitOf(err))
			}
		})
	}
}
