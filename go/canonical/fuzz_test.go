package canonical_test

import (
	"bytes"
	"encoding/json"
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
