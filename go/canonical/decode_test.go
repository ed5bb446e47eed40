package canonical_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	"pgregory.net/rapid"
)

func TestDecodeReadsWhatMarshalWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := orders(2).Draw(t, "order")
		b, err := canonical.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out order
		if err := canonical.DecodeCanonical(b, &out); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		again, err := canonical.Marshal(&out)
		if err != nil || !bytes.Equal(b, again) {
			t.Fatalf("wrote %s\nthen  %s, %v", b, again, err)
		}
	})
}

func orders(depth int) *rapid.Generator[order] {
	return rapid.Custom(func(t *rapid.T) order {
		o := order{
			base:   base{ID: canonical.ID(texts().Draw(t, "id")), Note: texts().Draw(t, "note")},
			Zebra:  rapid.IntRange(-canonical.MaxInteger, canonical.MaxInteger).Draw(t, "zebra"),
			Alpha:  rapid.SliceOfN(texts(), 0, 3).Draw(t, "alpha"),
			Map:    rapid.MapOfN(rapid.Map(texts(), func(s string) name { return name(s) }), rapid.Int64Range(-9, 9), 0, 3).Draw(t, "map"),
			Bytes:  rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"),
			Any:    documents(2).Draw(t, "any"),
			Colour: rapid.SampledFrom([]colour{0, 1}).Draw(t, "colour"),
			Small:  rapid.Uint8().Draw(t, "small"),
			Maybe:  rapid.Ptr(rapid.IntRange(-9, 9), true).Draw(t, "maybe"),
		}
		if depth > 0 && rapid.Bool().Draw(t, "has child") {
			child := orders(depth-1).Draw(t, "child")
			o.Child = &child
		}
		return o
	})
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		name, in string
		code     reason.Code
		path     string
		offset   int
	}{
		{"unknown field", `{"zebra":1,"extra":2}`, reason.CanonicalUnknownField, "/extra", 11},
		{"other case", `{"Zebra":1}`, reason.CanonicalUnknownField, "/Zebra", 1},
		{"skipped field", `{"-":1}`, reason.CanonicalUnknownField, "/-", 1},
		{"unknown below", `{"child":{"child":{"x":1}}}`, reason.CanonicalUnknownField, "/child/child/x", 19},
		{"string for integer", `{"zebra":"1"}`, reason.CanonicalWrongType, "/zebra", 9},
		{"null for integer", `{"zebra":null}`, reason.CanonicalWrongType, "/zebra", 9},
		{"null for list", `{"alpha":null}`, reason.CanonicalWrongType, "/alpha", 9},
		{"null for map", `{"map":null}`, reason.CanonicalWrongType, "/map", 7},
		{"integer for string", `{"alpha":["a",1]}`, reason.CanonicalWrongType, "/alpha/1", 14},
		{"integer for boolean", `{"pair":[true,1]}`, reason.CanonicalWrongType, "/pair/1", 14},
		{"list for object", `[]`, reason.CanonicalWrongType, "", 0},
		{"short array", `{"pair":[true]}`, reason.CanonicalWrongType, "/pair", 8},
		{"uint8 overflow", `{"small":256}`, reason.CanonicalOutOfRange, "/small", 9},
		{"negative unsigned", `{"small":-1}`, reason.CanonicalOutOfRange, "/small", 9},
		{"base64 without padding", `{"bytes":"AP8"}`, reason.CanonicalWrongType, "/bytes", 9},
		{"base64 with a line break", `{"bytes":"AP8=\n"}`, reason.CanonicalWrongType, "/bytes", 9},
		{"base64 with stray bits", `{"bytes":"AP9="}`, reason.CanonicalWrongType, "/bytes", 9},
		{"unknown text", `{"colour":"blue"}`, reason.CanonicalWrongType, "/colour", 10},
		{"text of another kind", `{"colour":1}`, reason.CanonicalWrongType, "/colour", 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o order
			err := canonical.Decode([]byte(c.in), &o)
			var ve *canonical.ValueError
			if !errors.As(err, &ve) || ve.Code != c.code || ve.Path != c.path || ve.Offset != c.offset {
				t.Fatalf("got %#v, want %s at %q, offset %d", err, c.code, c.path, c.offset)
			}
		})
	}
}

func TestDecodeKeepsWhatTheDocumentLeavesOut(t *testing.T) {
	o := order{Zebra: 3, Alpha: []string{"kept"}, Small: 1}
	if err := canonical.Decode([]byte(`{"small":2,"maybe":null,"raw":{"b":[1 ,2],"a":null}}`), &o); err != nil {
		t.Fatal(err)
	}
	if o.Zebra != 3 || o.Alpha[0] != "kept" || o.Small != 2 || o.Maybe != nil || string(o.Raw) != `{"a":null,"b":[1,2]}` {
		t.Errorf("got %+v", o)
	}
}

func TestDecodeIntoTheWrongPlace(t *testing.T) {
	for name, into := range map[string]any{"value": order{}, "nil": nil, "nil pointer": (*order)(nil), "float": new(float64), "interface with methods": new(error)} {
		t.Run(name, func(t *testing.T) {
			err := canonical.Decode([]byte(`{}`), into)
			if got := reason.ExitOf(err); got != 1 {
				t.Errorf("exit %d (%v), want internal", got, err)
			}
		})
	}
}

func TestDecodeCanonicalRefusesOtherForms(t *testing.T) {
	for name, in := range map[string]string{
		"space": `{"small": 1}`, "order": `{"small":1,"alpha":[]}`, "escape": `{"note":"\u0041"}`, "solidus": `{"note":"\/"}`,
	} {
		t.Run(name, func(t *testing.T) {
			var o order
			if err := canonical.Decode([]byte(in), &o); err != nil {
				t.Fatal(err)
			}
			if err := canonical.DecodeCanonical([]byte(in), &o); reason.CodeOf(err) != reason.CanonicalNotCanonical {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The error value of a failed Decode is compared with nil all over the program; a typed nil would be a trap.
func TestDecodeReturnsPlainNil(t *testing.T) {
	var n int
	if err := canonical.Decode([]byte("1"), &n); err != nil {
		t.Fatalf("%#v", err)
	}
	if v, err := canonical.Parse([]byte("1"), canonical.Limits{}); err != nil || v.Int() != 1 {
		t.Fatalf("%#v", err)
	}
}
