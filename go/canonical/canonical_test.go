package canonical_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf16"

	"github.com/gowebpki/jcs"
	"github.com/writ-runtime/writ/go/canonical"
	"pgregory.net/rapid"
)

// The vectors of RFC 8785 and of its authors' test suite, without fractions.
func TestCanonicalizeVectors(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"RFC 8785 3.2.2, integers only",
			`{"numbers":[333333333,45,-2],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
			`{"literals":[null,true,false],"numbers":[333333333,45,-2],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		{"RFC 8785 3.2.3, sorting",
			`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			`{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`},
		{"arrays", "[\n 56,\n {\"d\": true, \"10\": null, \"1\": [ ]}\n]", `[56,{"1":[],"10":null,"d":true}]`},
		{"french", `{"peach":"a","péché":"b","pêche":"c","sin":"d"}`, `{"peach":"a","péché":"b","pêche":"c","sin":"d"}`},
		{"structures", `{"1":{"f":{"f":"hi","F":5},"\n":56},"10":{},"":"empty","a":{},"111":[{"e":"yes","E":"no"}],"A":{}}`,
			`{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}`},
		{"not normalised", `{"Unnormalized Unicode":"A\u030a"}`, "{\"Unnormalized Unicode\":\"A\u030a\"}"},
		{"every short escape", `"\u0008\u0009\u000a\u000c\u000d\u0022\u005c\u002f\u007f\u001F"`, "\"\\b\\t\\n\\f\\r\\\"\\\\/\u007f\\u001f\""},
		{"HTML is left alone", `{"</script>":"<&>\u2028"}`, "{\"</script>\":\"<&>\u2028\"}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := canonical.Canonicalize([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			oracle, err := jcs.Transform([]byte(c.in))
			if err != nil || !bytes.Equal(got, oracle) {
				t.Errorf("jcs gives %s, %v", oracle, err)
			}
		})
	}
}

// documents draws JSON values of the accepted subset, as encoding/json would hold them.
func documents(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.Int64Range(-canonical.MaxInteger, canonical.MaxInteger).AsAny(),
		texts().AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	return rapid.OneOf(append(leaves,
		rapid.SliceOfN(documents(depth-1), 0, 4).AsAny(),
		rapid.MapOfN(texts(), documents(depth-1), 0, 20).AsAny(),
	)...)
}

// texts draws strings with many characters around the borders that sorting and escaping care about.
func texts() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a\x00\x1f\"\\/\u007f\u0080é\ud7ff\ue000\ufb33\uffff\U00010000😂\U0010ffff"))))
}

func TestCanonicalizeAgreesWithJCS(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, err := json.Marshal(documents(3).Draw(t, "document"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := canonical.Canonicalize(in)
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		want, err := jcs.Transform(in)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got  %s\njcs  %s, %v", got, want, err)
		}
		again, err := canonical.Canonicalize(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("canonical bytes change: %s, %v", again, err)
		}
	})
}

func TestMarshalAnyAgreesWithCanonicalize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := documents(3).Draw(t, "document")
		got, err := canonical.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		in, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		want, err := canonical.Canonicalize(in)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got  %s\nwant %s, %v", got, want, err)
		}
		var back any
		if err := canonical.Decode(got, &back); err != nil {
			t.Fatal(err)
		}
		again, err := canonical.Marshal(back)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("decoded and marshalled: %s, %v", again, err)
		}
	})
}

// Names are compared with the definition in RFC 8785 taken at its word: as arrays of UTF-16 code units.
func TestKeysSortByUTF16(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(texts(), 2, 30, rapid.ID).Draw(t, "names")
		doc := map[string]int{}
		for _, n := range names {
			doc[n] = 1
		}
		got, err := canonical.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		v, err := canonical.Parse(got, canonical.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(names, func(a, b string) int {
			return slices.CompareFunc(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)), cmp.Compare[uint16])
		})
		for i, m := range v.Members() {
			if m.Name != names[i] {
				t.Fatalf("place %d holds %q, want %q", i, m.Name, names[i])
			}
		}
	})
}
