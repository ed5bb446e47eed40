package schemas_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/schemas"
)

// tree holds every schema file by name.
type tree map[string]map[string]any

func readTree(t testing.TB) tree {
	t.Helper()
	names, err := fs.Glob(schemas.FS, "*.schema.json")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	files := tree{}
	for _, name := range names {
		b, err := schemas.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		files[name] = v
	}
	return files
}

// node is one schema within a file.
type node struct {
	tree    tree
	file    string
	pointer string
	value   map[string]any
}

// at is the schema that a location such as "receipt.v1.schema.json#/properties/name"
// names; ok is false where nothing stands there.
func (tr tree) at(location string) (n node, ok bool) {
	file, pointer, _ := strings.Cut(location, "#")
	v := tr[file]
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if token == "" {
			continue
		}
		if v, ok = v[token].(map[string]any); !ok {
			return node{}, false
		}
	}
	return node{tr, file, pointer, v}, v != nil
}

func (n node) location() string { return n.file + "#" + n.pointer }

// under is a schema below n.
func (n node) under(tokens ...string) (node, bool) {
	return n.tree.at(n.location() + "/" + strings.Join(tokens, "/"))
}

// resolved follows references to where the words are.
func (n node) resolved(t testing.TB) node {
	t.Helper()
	for {
		ref, ok := n.value["$ref"].(string)
		if !ok {
			return n
		}
		if strings.HasPrefix(ref, "#") {
			ref = n.file + ref
		}
		next, ok := n.tree.at(ref)
		if !ok {
			t.Fatalf("%s refers to %s, which is not there", n.location(), ref)
		}
		n = next
	}
}

// orNull returns the schema of what is there where null is accepted too.
func (n node) orNull(t testing.TB) (node, bool) {
	t.Helper()
	forms, _ := n.value["anyOf"].([]any)
	if len(forms) != 2 {
		return node{}, false
	}
	if null, _ := forms[0].(map[string]any); null["type"] != "null" {
		return node{}, false
	}
	v, ok := forms[1].(map[string]any)
	return node{n.tree, n.file, n.pointer + "/anyOf/1", v}.resolved(t), ok
}

// properties are the names of the fields, sorted; required those that must be there.
func (n node) properties() []string {
	p, _ := n.value["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(p))
}

func (n node) required() []string {
	names := n.strings("required")
	slices.Sort(names)
	return names
}

// strings is a list of strings under a keyword.
func (n node) strings(keyword string) []string {
	list, _ := n.value[keyword].([]any)
	var out []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// object reports whether n describes the fields of an object.
func (n node) object() bool {
	_, ok := n.value["properties"]
	return ok && n.value["type"] == "object"
}

// walk visits every schema of the tree that describes the fields of an object.
func (tr tree) walk(visit func(n node)) {
	for _, file := range slices.Sorted(maps.Keys(tr)) {
		descend(node{tr, file, "", tr[file]}, visit)
	}
}

func descend(n node, visit func(n node)) {
	if n.object() {
		visit(n)
	}
	for _, key := range slices.Sorted(maps.Keys(n.value)) {
		switch v := n.value[key].(type) {
		case map[string]any:
			descend(node{n.tree, n.file, n.pointer + "/" + key, v}, visit)
		case []any:
			for _, item := range v {
				if sub, ok := item.(map[string]any); ok {
					descend(node{n.tree, n.file, n.pointer + "/" + key + "/-", sub}, visit)
				}
			}
		}
	}
}
