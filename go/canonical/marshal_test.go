package canonical_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

type colour uint8

func (c colour) CanonicalText() string {
	if int(c) < len(colours()) {
		return colours()[c]
	}
	return "\xff"
}

func (c *colour) ParseCanonicalText(s string) error {
	for i, name := range colours() {
		if name == s {
			*c = colour(i)
			return nil
		}
	}
	return errors.New("no such colour")
}

func colours() []string { return []string{"red", "green"} }

type name string

type base struct {
	ID   canonical.ID `json:"id"`
	Note string       `json:"note,omitempty"`
}

type order struct {
	base
	Zebra  int               `json:"zebra"`
	Alpha  []string          `json:"alpha"`
	Map    map[name]int64    `json:"map"`
	Labels map[string]string `json:"labels,omitempty"`
	Child  *order            `json:"child,omitempty"`
	Maybe  *int              `json:"maybe"`
	Bytes  []byte            `json:"bytes"`
	Raw    canonical.Raw     `json:"raw,omitempty"`
	Any    any               `json:"any"`
	Colour colour            `json:"colour"`
	Small  uint8             `json:"small"`
	Pair   [2]bool           `json:"pair"`
	When   struct {
		Milli int64 `json:"milli"`
	} `json:"when,omitzero"`
	Digest canonical.Digest `json:"digest,omitempty"`
	Hidden float64          `json:"-"`
	secret chan int
}

func TestMarshal(t *testing.T) {
	seven := 7
	full := order{
		base: base{ID: "wo_1", Note: "n"}, Zebra: -1, Alpha: []string{"x", "é\n"}, Map: map[name]int64{"b": 1, "a": 2},
		Labels: map[string]string{"k": "v"}, Child: &order{}, Maybe: &seven, Bytes: []byte{0, 255}, Raw: canonical.Raw(`{"r":1}`),
		Any: map[string]any{"y": []any{1, "s", nil, true}}, Colour: 1, Small: 255, Pair: [2]bool{true, false}, secret: nil,
	}
	full.When.Milli = 5
	const empty = `"alpha":[],"any":null,"bytes":"","colour":"red","id":"","map":{},"maybe":null,"pair":[false,false],"small":0,"zebra":0`
	var nilOrder *order
	for _, c := range []struct {
		name string
		in   any
		want string
	}{
		{"nil", nil, "null"},
		{"nil pointer", nilOrder, "null"},
		{"empty struct", struct{}{}, "{}"},
		{"zero values", order{}, "{" + empty + "}"},
		{"pointer to struct", &order{}, "{" + empty + "}"},
		{"everything", full, `{"alpha":["x","é\n"],"any":{"y":[1,"s",null,true]},"bytes":"AP8=","child":{` + empty +
			`},"colour":"green","id":"wo_1","labels":{"k":"v"},"map":{"a":2,"b":1},"maybe":7,"note":"n","pair":[true,false],"raw":{"r":1},"small":255,"when":{"milli":5},"zebra":-1}`},
		{"keys by UTF-16", map[string]int{"\ufb33": 1, "😀": 2, "€": 3}, `{"€":3,"😀":2,"` + "\ufb33" + `":1}`},
		{"largest", []int64{canonical.MaxInteger, -canonical.MaxInteger}, "[9007199254740991,-9007199254740991]"},
		{"largest unsigned", uint64(canonical.MaxInteger), "9007199254740991"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := canonical.Marshal(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			checked, err := canonical.Canonicalize(got)
			if err != nil || string(checked) != c.want {
				t.Errorf("not canonical: %s, %v", checked, err)
			}
			appended, err := canonical.Append([]byte("x"), c.in)
			if err != nil || string(appended) != "x"+c.want {
				t.Errorf("Append: %s, %v", appended, err)
			}
			digest, err := canonical.DigestOf(c.in)
			if err != nil || digest != canonical.Sum([]byte(c.want)) {
				t.Errorf("DigestOf: %s, %v", digest, err)
			}
		})
	}
}

type pointerText struct{ X int }

func (*pointerText) CanonicalText() string { return "" }

type loop struct {
	Next *loop          `json:"next"`
	Map  map[string]any `json:"map,omitempty"`
}

func TestMarshalRefuses(t *testing.T) {
	circle := &loop{}
	circle.Next = circle
	self := map[string]any{}
	self["self"] = self
	for _, c := range []struct {
		name string
		in   any
		code reason.Code
		path string
	}{
		{"float", 1.5, reason.CanonicalUnsupportedType, ""},
		{"float in a field", struct {
			A []float32 `json:"a"`
		}{}, reason.CanonicalUnsupportedType, "/a"},
		{"float in an interface", map[string]any{"a": []any{0, 1.0}}, reason.CanonicalUnsupportedType, "/a/1"},
		{"int64 too large", struct {
			A []int64 `json:"a/b"`
		}{[]int64{1, canonical.MaxInteger + 1}}, reason.CanonicalIntegerRange, "/a~1b/1"},
		{"int64 too small", int64(math.MinInt64), reason.CanonicalIntegerRange, ""},
		{"uint64 too large", uint64(math.MaxUint64), reason.CanonicalIntegerRange, ""},
		{"invalid UTF-8", []string{"ok", "\xff"}, reason.CanonicalInvalidUTF8, "/1"},
		{"invalid UTF-8 in a key", map[string]int{"\xff": 1}, reason.CanonicalInvalidUTF8, ""},
		{"invalid UTF-8 from CanonicalText", colour(9), reason.CanonicalInvalidUTF8, ""},
		{"channel", make(chan int), reason.CanonicalUnsupportedType, ""},
		{"function", func() {}, reason.CanonicalUnsupportedType, ""},
		{"complex", complex(1, 1), reason.CanonicalUnsupportedType, ""},
		{"integer keys", map[int]string{}, reason.CanonicalUnsupportedType, ""},
		{"byte array", [2]byte{}, reason.CanonicalUnsupportedType, ""},
		{"time", time.Time{}, reason.CanonicalUnsupportedType, ""},
		{"CanonicalText on the pointer only", pointerText{}, reason.CanonicalUnsupportedType, ""},
		{"untagged field", struct{ A int }{}, reason.CanonicalUnsupportedType, ""},
		{"tag without a name", struct {
			A int `json:",omitempty"`
		}{}, reason.CanonicalUnsupportedType, ""},
		{"unknown option", struct {
			A int `json:"a,string"`
		}{}, reason.CanonicalUnsupportedType, ""},
		{"same name through embedding", struct {
			base
			Other string `json:"id"`
		}{}, reason.CanonicalUnsupportedType, ""},
		{"only unexported fields", struct{ a int }{}, reason.CanonicalUnsupportedType, ""},
		{"pointer to pointer", new(*int), reason.CanonicalUnsupportedType, ""},
		{"empty raw", canonical.Raw{}, reason.CanonicalNotCanonical, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := canonical.Marshal(c.in)
			var ve *canonical.ValueError
			if !errors.As(err, &ve) || ve.Code != c.code || ve.Path != c.path {
				t.Fatalf("got %v, want %s at %q", err, c.code, c.path)
			}
			if reason.CodeOf(err) != c.code {
				t.Errorf("as a refusal: %v", reason.CodeOf(err))
			}
			if out, err := canonical.Append([]byte("x"), c.in); err == nil || string(out) != "x" {
				t.Errorf("Append: %q, %v", out, err)
			}
		})
	}
	for name, in := range map[string]any{"circular pointers": circle, "circular map": self} {
		t.Run(name, func(t *testing.T) {
			if _, err := canonical.Marshal(in); reason.CodeOf(err) != reason.CanonicalTooDeep {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Marshal goes exactly as deep as Parse does.
func TestMarshalDepth(t *testing.T) {
	for _, c := range []struct {
		depth int
		code  reason.Code
	}{{64, ""}, {65, reason.CanonicalTooDeep}} {
		var doc any
		for range c.depth {
			doc = []any{doc}
		}
		b, err := canonical.Marshal(doc)
		if reason.CodeOf(err) != c.code {
			t.Errorf("depth %d: %v", c.depth, err)
		}
		if err == nil {
			if _, err := canonical.Canonicalize(b); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestRawUnderEncodingJSON(t *testing.T) {
	got, err := json.Marshal(map[string]any{"empty": canonical.Raw{}, "nil": canonical.Raw(nil), "of": canonical.Raw(`{"a":[1]}`)})
	if want := `{"empty":null,"nil":null,"of":{"a":[1]}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestRawIsVerifiedWhenItEnters(t *testing.T) {
	raw, err := canonical.NewRaw([]byte(` {"b":1, "a":"\u0041"} `))
	if err != nil || string(raw) != `{"a":"A","b":1}` {
		t.Fatalf("%s, %v", raw, err)
	}
	if _, err := canonical.NewRaw([]byte(`{"a":1,"a":2}`)); reason.CodeOf(err) != reason.CanonicalDuplicateKey {
		t.Errorf("got %v", err)
	}
}

func TestMarshalIsSafeForConcurrentFirstUse(t *testing.T) {
	type fresh struct {
		A map[string][]*fresh `json:"a"`
	}
	in := fresh{A: map[string][]*fresh{"x": {{}, nil}}}
	done := make(chan string)
	const many = 16
	for range many {
		go func() {
			b, err := canonical.Marshal(in)
			if err != nil {
				b = []byte(err.Error())
			}
			done <- string(b)
		}()
	}
	for range many {
		if got := <-done; got != `{"a":{"x":[{"a":{}},null]}}` {
			t.Error(got)
		}
	}
}
