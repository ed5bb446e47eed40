package schema_test

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/schemas"
)

func TestEveryRegisteredSchemaCompilesAndHasADigest(t *testing.T) {
	r := open(t)
	seen := map[canonical.Digest]string{}
	for _, kind := range r.Kinds() {
		d, err := r.Digest(kind)
		if err != nil || !d.Valid() || seen[d] != "" {
			t.Errorf("%s: digest %q (also of %q), %v", kind, d, seen[d], err)
		}
		seen[d] = kind
		// Compiling happens when a document comes; this one matches no schema, and must not be an internal fault.
		if err := r.ValidateCanonical(kind, []byte(`{"no schema knows this":0}`)); reason.ExitOf(err) != 3 {
			t.Errorf("%s accepts anything, or is broken: %v", kind, err)
		}
	}
}

func TestEverySchemaFileIsRegistered(t *testing.T) {
	files, err := fs.Glob(schemas.FS, "*.schema.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	index, err := schemas.FS.ReadFile("registry.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.Contains(string(index), `"`+file+`"`) {
			t.Errorf("%s is not in registry.json", file)
		}
	}
}

// Unknown fields are refused everywhere: a schema that says which fields an object has says that there are no
// others.
func TestEveryObjectIsClosed(t *testing.T) {
	files, err := fs.Glob(schemas.FS, "*.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := schemas.FS.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, err := canonical.Parse(b, canonical.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		closed(t, file, "#", v)
	}
}

func closed(t *testing.T, file, at string, v canonical.Value) {
	if fields, ok := v.Get("properties"); ok && fields.Kind() == canonical.KindObject {
		if typ, ok := v.Get("type"); ok && typ.Str() == "object" {
			extra, ok := v.Get("additionalProperties")
			uneval, unok := v.Get("unevaluatedProperties")
			if !(ok && (extra.Kind() == canonical.KindBool && !extra.Bool() || extra.Kind() == canonical.KindObject)) && !(unok && uneval.Kind() == canonical.KindBool && !uneval.Bool()) {
				t.Errorf("%s%s: the object accepts unknown fields", file, at)
			}
		}
	}
	for _, m := range v.Members() {
		closed(t, file, at+"/"+canonical.EscapePointer(m.Name), m.Value)
	}
	for i, item := range v.Items() {
		closed(t, file, fmt.Sprintf("%s/%d", at, i), item)
	}
}

func TestTheRegistriesMatchTheirOwnSchemas(t *testing.T) {
	for _, file := range []string{"registry.json", "reasons.v1.json"} {
		b, err := schemas.FS.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := open(t).Load(file, b); err != nil {
			t.Error(err)
		}
	}
}

func TestValidateCanonical(t *testing.T) {
	r := open(t)
	for _, c := range []struct {
		name, kind, in string
		code           reason.Code
	}{
		{"unknown kind", "writ.nothing.v1", `{}`, reason.SchemaUnknownKind},
		{"empty kind", "", `{}`, reason.SchemaUnknownKind},
		{"not JSON", "writ.registry.v1", `{`, reason.CanonicalSyntax},
		{"not canonical", "writ.registry.v1", `{"schemas":[],"kind":"writ.registry.v1"}`, reason.CanonicalNotCanonical},
		{"other kind inside", "writ.registry.v1", `{"kind":"writ.reasons.v1","schemas":[{"file":"a.schema.json","kind":"writ.a.v1"}]}`, reason.SchemaViolation},
		{"unknown field", "writ.registry.v1", `{"extra":1,"kind":"writ.registry.v1","schemas":[{"file":"a.schema.json","kind":"writ.a.v1"}]}`, reason.SchemaUnknownField},
		{"good", "writ.registry.v1", `{"kind":"writ.registry.v1","schemas":[{"file":"a.schema.json","kind":"writ.a.v1"}]}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := r.ValidateCanonical(c.kind, []byte(c.in)); reason.CodeOf(err) != c.code || (c.code == "") != (err == nil) {
				t.Errorf("got %v, want %s", err, c.code)
			}
		})
	}
}

func TestBrokenRegistries(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	const good = `{"kind":"writ.registry.v1","schemas":[{"kind":"writ.a.v1","file":"a.json"}]}`
	for name, files := range map[string]fstest.MapFS{
		"no registry":       {},
		"not JSON":          {"registry.json": file(`{`)},
		"unknown field":     {"registry.json": file(`{"kind":"writ.registry.v1","schemas":[],"x":1}`)},
		"missing file":      {"registry.json": file(good)},
		"kind twice":        {"registry.json": file(`{"kind":"writ.registry.v1","schemas":[{"kind":"writ.a.v1","file":"a.json"},{"kind":"writ.a.v1","file":"a.json"}]}`), "a.json": file(`{}`)},
		"schema not JSON":   {"registry.json": file(good), "a.json": file(`{`)},
		"duplicate keyword": {"registry.json": file(good), "a.json": file(`{"type":"object","type":"array"}`)},
		"not a schema":      {"registry.json": file(good), "a.json": file(`{"type":"nothing"}`)},
		"bad pattern":       {"registry.json": file(good), "a.json": file(`{"pattern":"("}`)},
		"remote reference":  {"registry.json": file(good), "a.json": file(`{"$ref":"https://example.com/x.json"}`)},
		"local file":        {"registry.json": file(good), "a.json": file(`{"$ref":"file:///etc/hostname"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := schema.OpenFS(files)
			if err == nil {
				err = r.ValidateCanonical("writ.a.v1", []byte(`{}`))
			}
			if reason.CodeOf(err) != reason.SchemaRegistry || reason.ExitOf(err) != 1 {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSharedFilesAreReachableAndAreNoKind(t *testing.T) {
	r, err := schema.OpenFS(fstest.MapFS{
		"registry.json": {Data: []byte(`{"kind":"writ.registry.v1","schemas":[{"kind":"writ.a.v1","file":"a.json"}],"shared":["c.json"]}`)},
		"a.json":        {Data: []byte(`{"type":"object","properties":{"kind":{"const":"writ.a.v1"},"d":{"$ref":"c.json#/$defs/small"}},"additionalProperties":false}`)},
		"c.json":        {Data: []byte(`{"$defs":{"small":{"type":"integer","maximum":3,"x-remedy":"write at most 3"}}}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Load("x.yaml", []byte("kind: writ.a.v1\nd: 3\n")); err != nil {
		t.Error(err)
	}
	if _, err := r.Load("x.yaml", []byte("kind: writ.a.v1\nd: 4\n")); err == nil || !strings.Contains(err.Error(), "write at most 3") {
		t.Errorf("got %v", err)
	}
	if err := r.ValidateCanonical("c.json", []byte(`{}`)); reason.CodeOf(err) != reason.SchemaUnknownKind {
		t.Errorf("got %v", err)
	}
}

func TestRegistryIsSafeForConcurrentFirstUse(t *testing.T) {
	r := open(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := r.Load("order.yaml", []byte(order)); err != nil {
				t.Error(err)
			}
			for _, kind := range r.Kinds() {
				if _, err := r.Digest(kind); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
