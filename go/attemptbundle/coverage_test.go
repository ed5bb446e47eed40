package attemptbundle_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// full is the fixed bundle with everything in it that a bundle can hold.
func full(t *testing.T) *attemptbundle.Compiled {
	t.Helper()
	destination, err := capability.ParseScope("host:model.example:443")
	if err != nil {
		t.Fatal(err)
	}
	c, err := compile(t, func(b *attemptbundle.Bundle) {
		pin := attemptbundle.Pin{Name: "p", Version: "1", Digest: fixture.Digest("p")}
		b.Deltas = []canonical.Digest{fixture.Digest("delta")}
		b.Grants = []capability.Grant{{Action: "a", Resource: b.Grants[0].Resource, Destination: destination, Limits: capability.Limits{Calls: 1}}}
		b.Pins.Model = &attemptbundle.Model{Name: "m", Digest: fixture.Digest("m"), Unpinnable: "never"}
		b.Pins.Tokenizer, b.Pins.Harness = &pin, &pin
		b.Pins.Plugins, b.Pins.Skills, b.Pins.ToolSchemas = []attemptbundle.Pin{pin}, []attemptbundle.Pin{pin}, []attemptbundle.Pin{pin}
		b.Environment.Credentials, b.Ceilings.Credentials = []string{"cred:a"}, []string{"cred:a"}
		b.Ceilings.Money = &workorder.Money{}
		b.Mode, b.Proposals = capability.Proposal, []workorder.Proposal{{
			Purpose: "p", Effector: operation.Branch, Destination: "repo:a", Repository: "repo:a", Base: "b", Files: []string{"f"}, Title: "t", Message: "m",
		}}
		startFrom(b, fixture.Digest("payload"), 7)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every field that a bundle has is in its bytes, and so under its digest: no field can be
// added that an attempt would obey and its name would not cover (B1).
func TestEveryFieldIsCovered(t *testing.T) {
	c := full(t)
	var names []string
	fields(t, "bundle", reflect.ValueOf(*c.Bundle()), func(name string, _ reflect.Value) { names = append(names, name) })
	if len(names) < 100 {
		t.Fatalf("only %d fields were found", len(names))
	}
	for i, name := range names {
		back, err := attemptbundle.Parse(c.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		fields(t, "bundle", reflect.ValueOf(back.Bundle()).Elem(), func(_ string, v reflect.Value) {
			if n == i {
				change(t, v)
			}
			n++
		})
		raw, err := canonical.Marshal(*back.Bundle())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if canonical.Sum(raw) == c.Digest() {
			t.Errorf("%s is not covered by the digest", name)
		}
	}
}

// fields visits every field that holds a value, the first element of a list for all.
func fields(t *testing.T, name string, v reflect.Value, visit func(string, reflect.Value)) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			t.Fatalf("%s is not set in the full bundle", name)
		}
		fields(t, name, v.Elem(), visit)
	case reflect.Slice:
		if v.Len() == 0 {
			t.Fatalf("%s is empty in the full bundle", name)
		}
		fields(t, name+"[0]", v.Index(0), visit)
	case reflect.Struct:
		exported := 0
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				exported++
				fields(t, name+"."+f.Name, v.Field(i), visit)
			}
		}
		if exported == 0 { // A scope: one value to everybody but its own package.
			visit(name, v)
		}
	default:
		visit(name, v)
	}
}

func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		if strings.HasPrefix(v.String(), "sha256:") {
			v.SetString(string(fixture.Digest("changed")))
			return
		}
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Struct:
		v.SetZero()
	default:
		t.Fatal(fmt.Errorf("a field of kind %s is not thought of", v.Kind()))
	}
}
