package schema_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
	yaml "go.yaml.in/yaml/v3"
)

// permissive registers one kind that accepts any fields, so that the fuzzers reach the readers behind it.
func permissive(t testing.TB) *schema.Registry {
	t.Helper()
	r, err := schema.OpenFS(fstest.MapFS{
		"registry.json":   {Data: []byte(`{"kind":"writ.registry.v1","schemas":[{"kind":"writ.any.v1","file":"any.schema.json"}]}`)},
		"any.schema.json": {Data: []byte(`{"type":"object","properties":{"kind":{"const":"writ.any.v1"}}}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func yamlSeeds() []string {
	return []string{
		"", "a: 1", "a: [1, {b: c}]", "a:\n  - b: c\n    d: e\n  -\n  - - x\n", "a: |\n  x\n  y\n", "a: >-\n  x\n\n  y\n", "a: 'it''s'\n", `a: "\u00e9\x41\ud83d\ude02\n"`,
		`a: "\uZZZZ"`, "a: &x 1\nb: *x", "<<: {}", "a: !!str 1", "a: 1\na: 2", "a: 0x1f", "a: 1.5", "a: yes", "? a\n: b", "a: 1\n---\nb: 2", "%YAML 1.2\n---\na: 1", "a: 2026-01-01",
		"a:\n- b\n- c:\n  - d\n", "a: b # c\n# d\n", "\"a b\": {}\n'c': []\n", "a: \"x\n  y\"\n", "a: x\n  y\n", "a: ~\nb:\nc: null\n", "{a: 1, b: [c, d]}", "- a\n- b\n", "a: -\n", "é: ü\r\nb: c\r\n",
	}
}

// FuzzLoad: nothing panics, errors point into the document, and accepted documents canonicalize to the same digest
// whether they come as YAML or as JSON.
func FuzzLoad(f *testing.F) {
	for _, s := range yamlSeeds() {
		f.Add([]byte("kind: writ.any.v1\n"+s), "x.yaml")
		f.Add([]byte(s), "x")
	}
	f.Add([]byte(order), "order.yaml")
	f.Add([]byte(sameInJSON), "order.json")
	any, real := permissive(f), open(f)
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		for _, r := range []*schema.Registry{any, real} {
			d, err := r.Load(name, b)
			if err != nil {
				var ie *schema.InvalidError
				if !errors.As(err, &ie) || len(ie.Problems) == 0 || reason.ExitOf(err) != 3 || err.Error() == "" {
					t.Fatalf("bad error %#v", err)
				}
				for _, p := range ie.Problems {
					if p.Line < 1 || p.Column < 1 || p.Line > bytes.Count(b, []byte("\n"))+1 || !p.Code.Registered() || p.Rule == "" || p.Message == "" {
						t.Fatalf("bad problem %#v", p)
					}
				}
				continue
			}
			again, err := canonical.Canonicalize(d.Canonical)
			if err != nil || !bytes.Equal(again, d.Canonical) || canonical.Sum(again) != d.Digest {
				t.Fatalf("not canonical: %q, %v", d.Canonical, err)
			}
			j, err := r.Load("x.json", d.Canonical)
			if err != nil || j.Digest != d.Digest {
				t.Fatalf("as JSON: %v", err)
			}
			// JSON in canonical form is also YAML, except where this subset is narrower on purpose.
			if y, err := r.Load("x.yaml", d.Canonical); err == nil && y.Digest != d.Digest {
				t.Fatalf("read as YAML, JSON changes:\n%s\n%s", d.Canonical, y.Canonical)
			}
		}
	})
}

// FuzzYAMLHasOneReading: what is accepted reads the same in another YAML library.
func FuzzYAMLHasOneReading(f *testing.F) {
	for _, s := range yamlSeeds() {
		f.Add([]byte(s))
	}
	r := permissive(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		b = append([]byte("kind: writ.any.v1\n"), b...)
		d, err := r.Load("x.yaml", b)
		if err != nil {
			return
		}
		var doc any
		if err := yaml.Unmarshal(b, &doc); err != nil {
			t.Skipf("the other library refuses: %v", err)
		}
		want, err := canonical.Marshal(doc)
		if err != nil {
			t.Fatalf("the other library reads %#v: %v\nwe read %s", doc, err, d.Canonical)
		}
		if !bytes.Equal(want, d.Canonical) {
			t.Fatalf("two readings of %q\nours   %s\ntheirs %s", b, d.Canonical, want)
		}
	})
}

// FuzzValidateResult: no schema of a stranger panics, and errors are of the two sides they can come from.
func FuzzValidateResult(f *testing.F) {
	f.Add([]byte(counts), []byte(`{"words":[{"text":"a","count":1}],"note":true}`))
	f.Add([]byte(`{"$ref":"#"}`), []byte(`1`))
	f.Add([]byte(`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"not":{}}]}}}`), []byte(`[]`))
	f.Add([]byte(`{"prefixItems":[{"const":1}],"items":false,"contains":{"enum":[1,"a"]},"uniqueItems":true}`), []byte(`[1,1,2]`))
	f.Add([]byte(`{"patternProperties":{"^a":{"if":{"type":"string"},"then":{"maxLength":1}}},"propertyNames":{"minLength":2},"unevaluatedProperties":false}`), []byte(`{"a":"bb","ab":1,"c":2}`))
	f.Add([]byte(`{"dependentSchemas":{"a":{"required":["b"]}},"dependentRequired":{"a":["c"]},"minProperties":3}`), []byte(`{"a":1}`))
	f.Fuzz(func(t *testing.T, s, doc []byte) {
		err := schema.ValidateResult(s, doc)
		if err == nil {
			return
		}
		var ie *schema.InvalidError
		if !errors.As(err, &ie) || len(ie.Problems) == 0 || ie.Error() == "" {
			t.Fatalf("bad error %#v", err)
		}
		if exit := reason.ExitOf(err); exit != 3 && exit != 20 {
			t.Fatalf("exit %d: %v", exit, err)
		}
	})
}
