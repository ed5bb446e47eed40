// Package schemas_test holds the schemas of the product against its Go types, its golden
// files and what it really writes, so that code and schemas cannot drift apart.
package schemas_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/schemas"
)

func open(t testing.TB) *schema.Registry {
	t.Helper()
	r, err := schema.Open()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// embedded is one of the data files that stand beside the schemas, in canonical JSON.
func embedded(t testing.TB, name string) []byte {
	t.Helper()
	b, err := schemas.FS.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return canonicalize(t, b)
}

// file is a JSON file of the tree in canonical JSON; the path is taken from this folder.
func file(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return canonicalize(t, b)
}

func canonicalize(t testing.TB, b []byte) []byte {
	t.Helper()
	c, err := canonical.Canonicalize(b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := canonical.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decode reads canonical JSON as maps, lists and json.Number.
func decode(t testing.TB, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// encode is the canonical JSON of what decode returns.
func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return canonicalize(t, b)
}

// document is one document, and the kind that it should be of. Of several with one name it is
// enough to tamper with the first.
type document struct {
	name, kind string
	bytes      []byte
}

// good fails the test unless the document matches its schema.
func (d document) good(t *testing.T, r *schema.Registry) {
	t.Helper()
	if err := r.ValidateCanonical(d.kind, d.bytes); err != nil {
		t.Errorf("%s: %v\n%.2000s", d.name, err, d.bytes)
	}
}

// tampered fails the test unless each change of the document is refused: a field that no
// schema knows in any of its objects, another type of any value, a character of any id,
// digest or key. Where skip is true of a path, what lies there is left as it is.
func (d document) tampered(t *testing.T, r *schema.Registry, skip func(path string) bool) {
	t.Helper()
	v := decode(t, d.bytes)
	changes := 0
	tamper(&v, "", skip, func(what string) {
		changes++
		if err := r.ValidateCanonical(d.kind, encode(t, v)); reason.CodeOf(err).Exit() != reason.ExitInvalid {
			t.Errorf("%s, %s: accepted, or refused for another reason: %v", d.name, what, err)
		}
	})
	if changes < 2 {
		t.Errorf("%s: only %d changes were tried", d.name, changes)
	}
}

// tamper makes one change after the other, in place, and takes each back.
func tamper(v *any, at string, skip func(string) bool, try func(what string)) {
	if skip != nil && skip(at) {
		return
	}
	original := *v
	replace := func(with any, what string) {
		*v = with
		try(what + " at " + at)
		*v = original
	}
	switch x := original.(type) {
	case map[string]any:
		x["no_schema_knows_this"] = true
		try("an unknown field at " + at)
		delete(x, "no_schema_knows_this")
		replace("an object", "a string for an object")
		for name, member := range x {
			set := member
			tamper(&set, at+"/"+name, skip, func(what string) {
				x[name] = set
				try(what)
				x[name] = member
			})
		}
	case []any:
		replace("a list", "a string for a list")
		for i, item := range x {
			set := item
			tamper(&set, at+"/"+strconv.Itoa(i), skip, func(what string) {
				x[i] = set
				try(what)
				x[i] = item
			})
		}
	case string:
		replace(json.Number("7"), "a number for a string")
		if typed(x) && !anyText.MatchString(at) {
			replace(x[:len(x)-1]+"!", "a changed character")
		}
	default:
		replace("a string", fmt.Sprintf("a string for %v", x))
	}
}

// anyText matches where text of any form may stand: what was measured, and what a person
// wrote in a command.
var anyText = regexp.MustCompile(`/(facts/\d+/text|target|flags/\d+/value)$`)

// typed reports whether a string is an id, a digest, or an operation key or subject.
func typed(s string) bool {
	for _, prefix := range []string{"sha256:", "att_", "wo_", "res_", "dlv_", "writ/att_", "operation/writ/", "attempt/att_", "work_order/wo_"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}
