package canonical_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/gowebpki/jcs"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

func seeds(f *testing.F) {
	for _, s := range []string{
		``, `null`, `{}`, `[]`, `""`, `0`, `-0`, `-1`, `1.5`, `1e9`, `9007199254740991`, `9007199254740992`,
		`{"a":1,"b":[true,false,null,{"c":"d"}]}`, `{"a":1,"\u0061":2}`, `{"a":{"b":{"b":1,"b":1}}}`,
		`"\ud83d\ude02"`, `"\ud83d"`, `"\u0000\b\t\n\f\r\"\\\/"`, "\"\xff\"", "\ufeff{}", `[1,]`, `{"a":1}x`,
		`{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3,"":4}`, ` [ 1 , 2 ] `, `[[[[[[[[]]]]]]]]`, "{\"é\":\"\x7f\"}",
	} {
		f.Add([]byte(s))
	}
}

// FuzzStrictJSON: nothing panics; whatever is accepted is also JSON to encoding/json and holds the same values;
// whatever is refused has a registered reason and a position inside the document.
func FuzzStrictJSON(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := canonical.Parse(b, canonical.Limits{})
		if err != nil {
			se, ok := err.(*canonical.SyntaxError)
			if !ok || !se.Code.Registered() || se.Offset < 0 || se.Offset > len(b) || se.Line < 1 || se.Column < 1 || reason.ExitOf(err) != 3 {
				t.Fatalf("bad error %#v", err)
			}
			return
		}
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		var std any
		if err := dec.Decode(&std); err != nil {
			t.Fatalf("accepted what encoding/json refuses: %v", err)
		}
		want, err := json.Marshal(std)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(v.Any())
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got  %s\nwant %s, %v", got, want, err)
		}
	})
}

// FuzzCanonical: canonical bytes parse to themselves, equal what gowebpki/jcs writes, and survive Decode and
// Marshal through Go values.
func FuzzCanonical(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		once, err := canonical.Canonicalize(b)
		if err != nil {
			return
		}
		twice, err := canonical.Canonicalize(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not idempotent: %q then %q, %v", once, twice, err)
		}
		want, err := jcs.Transform(b)
		if err != nil || !bytes.Equal(once, want) {
			t.Fatalf("got %q, jcs %q, %v", once, want, err)
		}
		var v any
		if err := canonical.DecodeCanonical(once, &v); err != nil {
			t.Fatal(err)
		}
		again, err := canonical.Marshal(v)
		if err != nil || !bytes.Equal(again, once) {
			t.Fatalf("through Go values: %q, %v", again, err)
		}
	})
}

// everything has a field of every kind that the stream decodes by itself.
type everything struct {
	A canonical.Raw             `json:"a"`
	B []byte                    `json:"b,omitempty"`
	C *everything               `json:"c,omitempty"`
	D []everything              `json:"d,omitempty"`
	E map[string]int8           `json:"e,omitempty"`
	F [2]bool                   `json:"f,omitempty"`
	G string                    `json:"g,omitempty"`
	H uint16                    `json:"h,omitempty"`
	I canonical.Digest          `json:"i,omitempty"`
	J map[string]*canonical.Raw `json:"j,omitempty"`
}

// FuzzStream: whatever the short way of decoding takes, the long way over a tree of values takes too, and both
// come to the same Go values.
func FuzzStream(f *testing.F) {
	seeds(f)
	for _, s := range []string{
		`{"a":{"b":[1,{"c":"\n"}]},"b":"AAE=","c":{"a":null},"d":[{"a":1},{"a":2}],"e":{"x":-128,"y":127},"f":[true,false],"g":"\"é\\","h":65535}`,
		`{"a":1,"b":"AAF="}`, `{"a":1,"b":"AA\nE="}`, `{"a":1,"e":{"x":128}}`, `{"a":1,"f":[true]}`, `{"a":1,"h":-1}`, `{"b":"","a":1}`, `{"a":1,"a":2}`,
		`{"a": 1}`, `{"a":"\u001f"}`, `{"a":"\u0041"}`, `{"a":"\/"}`, `{"a":{"é":1}}`, `{"a":-0}`, `{"a":01}`, `{"a":9007199254740992}`, `{"a":1,"z":1}`,
		`{"a":1,"i":"` + string(abc) + `"}`, `{"a":1,"i":"sha256:0"}`, `{"a":1,"j":{"x":null,"y":[]}}`, `{"a":1}{}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var short, long everything
		if !canonical.DecodeStream(b, &short) {
			return
		}
		value, err := canonical.Parse(b, canonical.Limits{})
		if err != nil {
			t.Fatalf("the stream takes %q: %v", b, err)
		}
		if form := value.AppendCanonical(nil); !bytes.Equal(form, b) {
			t.Fatalf("the stream takes %q, whose form is %q", b, form)
		}
		if err := value.Decode(&long); err != nil {
			t.Fatalf("the stream takes %q: %v", b, err)
		}
		if !reflect.DeepEqual(short, long) {
			t.Fatalf("%q is %+v by the stream, %+v by the tree", b, short, long)
		}
	})
}
