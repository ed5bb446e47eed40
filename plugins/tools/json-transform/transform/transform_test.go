package transform_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/plugins/tools/json-transform/transform"
)

func apply(t *testing.T, items string, operations ...string) (string, []transform.Change) {
	t.Helper()
	d, err := transform.ReadDeclaration([]byte(`{"kind":"json-transform.v1","operations":[` + strings.Join(operations, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	list, err := transform.ReadItems([]byte(items))
	if err != nil {
		t.Fatal(err)
	}
	list, changes, err := d.Apply(list)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), changes
}

func TestOperations(t *testing.T) {
	for _, c := range []struct{ items, operation, want, change string }{
		{`[{"a":1},{"a":2},{}]`, `{"op":"filter","field":"a","equals":2}`, `[{"a":2}]`, "{filter 3 1 0}"},
		{`[{"a":1},{"a":"1"},{"a":null},{}]`, `{"op":"filter","field":"a","equals":null}`, `[{"a":null}]`, "{filter 4 1 0}"},
		{`[{"a":1},{"a":2},{}]`, `{"op":"filter","field":"a","not_equals":2}`, `[{"a":1},{}]`, "{filter 3 2 0}"},
		{`[{"a":[1,{"b":2}]},{"a":[1]}]`, `{"op":"filter","field":"a","equals":[1,{"b":2}]}`, `[{"a":[1,{"b":2}]}]`, "{filter 2 1 0}"},
		{`[{"a":9},{"a":10},{"a":-11},{"a":"12"}]`, `{"op":"filter","field":"a","at_least":10}`, `[{"a":10}]`, "{filter 4 1 0}"},
		{`[{"a":9},{"a":10},{"a":-11},{"a":"2"}]`, `{"op":"filter","field":"a","at_most":9}`, `[{"a":9},{"a":-11}]`, "{filter 4 2 0}"},
		{`[{"a":null},{}]`, `{"op":"filter","field":"a","exists":true}`, `[{"a":null}]`, "{filter 2 1 0}"},
		{`[{"a":null},{}]`, `{"op":"filter","field":"a","exists":false}`, `[{}]`, "{filter 2 1 0}"},
		{`[{"a":1},{"a":true},{}]`, `{"op":"set","field":"a","value":1}`, `[{"a":1},{"a":1},{"a":1}]`, "{set 3 3 2}"},
		{`[{"a":1},{}]`, `{"op":"set","field":"a","value":null}`, `[{"a":null},{"a":null}]`, "{set 2 2 2}"},
		{`[{"a":1},{"c":2}]`, `{"op":"rename","from":"a","to":"b"}`, `[{"b":1},{"c":2}]`, "{rename 2 2 1}"},
		{`[{"a":1,"b":2,"c":3},{"c":3}]`, `{"op":"drop","fields":["a","b"]}`, `[{"c":3},{"c":3}]`, "{drop 2 2 1}"},
		{`[{"a":1,"b":2,"c":3},{"c":3}]`, `{"op":"pick","fields":["c"]}`, `[{"c":3},{"c":3}]`, "{pick 2 2 1}"},
		{`[{"a":"b"},{"a":"a"},{},{"a":10},{"a":9},{"a":-9},{"a":-10},{"a":true},{"a":false},{"a":null}]`, `{"op":"sort","field":"a"}`,
			`[{"a":null},{"a":false},{"a":true},{"a":-10},{"a":-9},{"a":9},{"a":10},{"a":"a"},{"a":"b"},{}]`, "{sort 10 10 10}"},
		{`[{"a":1,"n":1},{"a":2},{"a":1,"n":2},{}]`, `{"op":"sort","field":"a","descending":true}`, `[{"a":2},{"a":1,"n":1},{"a":1,"n":2},{}]`, "{sort 4 4 2}"},
	} {
		got, changes := apply(t, c.items, c.operation)
		if got != c.want || fmt.Sprint(changes[0]) != c.change {
			t.Errorf("%s of %s:\n%s %v, want\n%s %s", c.operation, c.items, got, changes[0], c.want, c.change)
		}
	}
}

func TestIntegersStayExact(t *testing.T) {
	const long = "123456789012345678901234567890"
	got, _ := apply(t, `[{"a":`+long+`},{"a":9007199254740993},{"a":-1`+long+`}]`, `{"op":"sort","field":"a"}`)
	if want := `[{"a":-1` + long + `},{"a":9007199254740993},{"a":` + long + `}]`; got != want {
		t.Error(got)
	}
}

func TestMalformedItemsAreRefused(t *testing.T) {
	for _, text := range []string{
		``, `{}`, `[1]`, `[{"a":1}] []`, `[{"a":1,"a":2}]`, `[{"a":{"b":1,"b":1}}]`, `[{"a":1.5}]`, `[{"a":1e3}]`, `[{"a":-0}]`, `[{"a":}]`, `[{"a":1}`,
		`[{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}]`,
	} {
		if _, err := transform.ReadItems([]byte(text)); err == nil {
			t.Errorf("took %.60s", text)
		}
	}
}

func TestMalformedDeclarationsAreRefused(t *testing.T) {
	for _, op := range []string{
		`{"op":"explode"}`, `{"op":"filter","field":"a"}`, `{"op":"filter","equals":1}`, `{"op":"filter","field":"a","equals":1,"exists":true}`,
		`{"op":"set","field":"a"}`, `{"op":"rename","from":"a"}`, `{"op":"rename","from":"a","to":"a"}`, `{"op":"drop"}`, `{"op":"pick","fields":[]}`, `{"op":"sort"}`,
		`{"op":"sort","field":"a","colour":"red"}`, `{"op":"sort","field":"a","field":"b"}`, `{"op":"set","field":"a","value":1.5}`,
	} {
		if _, err := transform.ReadDeclaration([]byte(`{"kind":"json-transform.v1","operations":[` + op + `]}`)); err == nil {
			t.Errorf("took %s", op)
		}
	}
	for _, text := range []string{`{}`, `[]`, `{"kind":"json-transform.v2","operations":[]}`, `{"kind":"json-transform.v1","operations":[]} x`} {
		if _, err := transform.ReadDeclaration([]byte(text)); err == nil {
			t.Errorf("took %s", text)
		}
	}
}

func TestRenameDoesNotOverwrite(t *testing.T) {
	d, err := transform.ReadDeclaration([]byte(`{"kind":"json-transform.v1","operations":[{"op":"rename","from":"a","to":"b"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Apply([]transform.Item{{"a": "1", "b": "2"}}); err == nil || !strings.Contains(err.Error(), "operation 1, rename: item 0") {
		t.Errorf("answered %v", err)
	}
}
