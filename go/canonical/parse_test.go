package canonical_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		name, in string
		code     reason.Code
		line     int
		column   int
		path     string
	}{
		{"nothing", "", reason.CanonicalSyntax, 1, 1, ""},
		{"only space", " \n ", reason.CanonicalSyntax, 2, 2, ""},
		{"bare word", "nul", reason.CanonicalSyntax, 1, 1, ""},
		{"NaN", "NaN", reason.CanonicalSyntax, 1, 1, ""},
		{"Infinity", "[-Infinity]", reason.CanonicalSyntax, 1, 3, "/0"},
		{"comment", "{} // x", reason.CanonicalTrailing, 1, 4, ""},
		{"single quotes", "{'a':1}", reason.CanonicalSyntax, 1, 2, ""},
		{"trailing comma in object", `{"a":1,}`, reason.CanonicalSyntax, 1, 8, ""},
		{"trailing comma in array", `[1,]`, reason.CanonicalSyntax, 1, 4, "/1"},
		{"missing colon", `{"a" 1}`, reason.CanonicalSyntax, 1, 6, "/a"},
		{"open object", `{"a":1`, reason.CanonicalSyntax, 1, 7, ""},
		{"open string", `"abc`, reason.CanonicalSyntax, 1, 5, ""},
		{"open escape", `"abc\`, reason.CanonicalSyntax, 1, 5, ""},
		{"unknown escape", `"\x41"`, reason.CanonicalSyntax, 1, 2, ""},
		{"short escape", `"\u12"`, reason.CanonicalSyntax, 1, 2, ""},
		{"raw control", "\"a\tb\"", reason.CanonicalSyntax, 1, 3, ""},
		{"second document", "{}\n{}", reason.CanonicalTrailing, 2, 1, ""},
		{"zero byte after the end", "1\x00", reason.CanonicalTrailing, 1, 2, ""},
		{"byte order mark", "\ufeff{}", reason.CanonicalByteOrderMark, 1, 1, ""},
		{"byte order mark inside", "[\ufeff1]", reason.CanonicalSyntax, 1, 2, "/0"},
		{"wide space", "[\u00a01]", reason.CanonicalSyntax, 1, 2, "/0"},
		{"broken UTF-8 in string", "\"a\xff\"", reason.CanonicalInvalidUTF8, 1, 3, ""},
		{"broken UTF-8 after an escape", "\"\\n\xc3\"", reason.CanonicalInvalidUTF8, 1, 4, ""},
		{"overlong UTF-8", "\"\xc0\xaf\"", reason.CanonicalInvalidUTF8, 1, 2, ""},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\"", reason.CanonicalInvalidUTF8, 1, 2, ""},
		{"beyond Unicode", "\"\xf4\x90\x80\x80\"", reason.CanonicalInvalidUTF8, 1, 2, ""},
		{"broken UTF-8 outside strings", "\xff", reason.CanonicalInvalidUTF8, 1, 1, ""},
		{"lone high surrogate", `"\ud83d"`, reason.CanonicalLoneSurrogate, 1, 2, ""},
		{"lone low surrogate", `"\ude02"`, reason.CanonicalLoneSurrogate, 1, 2, ""},
		{"two high surrogates", `"\ud83d\ud83d"`, reason.CanonicalLoneSurrogate, 1, 2, ""},
		{"high surrogate before another escape", `"\ud83d\n"`, reason.CanonicalLoneSurrogate, 1, 2, ""},
		{"high surrogate before a letter", `"\ud83dx"`, reason.CanonicalLoneSurrogate, 1, 2, ""},
		{"duplicate key", `{"a":1,"b":{"c":1,"c":2}}`, reason.CanonicalDuplicateKey, 1, 19, "/b/c"},
		{"duplicate after unescaping", `{"a":1,"\u0061":2}`, reason.CanonicalDuplicateKey, 1, 8, "/a"},
		{"duplicate among many", manyKeys(40, "k7"), reason.CanonicalDuplicateKey, 1, 312, "/k7"},
		{"fraction", `{"a":{"b":1.5}}`, reason.CanonicalNotInteger, 1, 11, "/a/b"},
		{"zero fraction", `1.0`, reason.CanonicalNotInteger, 1, 1, ""},
		{"exponent", `1e3`, reason.CanonicalNotInteger, 1, 1, ""},
		{"capital exponent", `1E3`, reason.CanonicalNotInteger, 1, 1, ""},
		{"negative zero", `[-0]`, reason.CanonicalNotInteger, 1, 2, "/0"},
		{"leading zero", `01`, reason.CanonicalSyntax, 1, 1, ""},
		{"plus", `+1`, reason.CanonicalSyntax, 1, 1, ""},
		{"minus alone", `-`, reason.CanonicalSyntax, 1, 2, ""},
		{"hexadecimal", `0x1`, reason.CanonicalTrailing, 1, 2, ""},
		{"2^53", `9007199254740992`, reason.CanonicalIntegerRange, 1, 1, ""},
		{"-2^53", `-9007199254740992`, reason.CanonicalIntegerRange, 1, 1, ""},
		{"forty digits", strings.Repeat("9", 40), reason.CanonicalIntegerRange, 1, 1, ""},
		{"path is escaped", `{"a/b~c":[0,1.5]}`, reason.CanonicalNotInteger, 1, 13, "/a~1b~0c/1"},
		{"column counts characters", `["ééé",x]`, reason.CanonicalSyntax, 1, 8, "/1"},
		{"too deep", strings.Repeat("[", 65) + strings.Repeat("]", 65), reason.CanonicalTooDeep, 1, 65, strings.Repeat("/0", 64)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := canonical.Parse([]byte(c.in), canonical.Limits{})
			var se *canonical.SyntaxError
			if !errors.As(err, &se) {
				t.Fatalf("got %v, want a SyntaxError", err)
			}
			if se.Code != c.code || se.Line != c.line || se.Column != c.column || se.Path != c.path {
				t.Errorf("got  %s %d:%d %q\nwant %s %d:%d %q\n(%v)", se.Code, se.Line, se.Column, se.Path, c.code, c.line, c.column, c.path, se)
			}
			if reason.CodeOf(err) != c.code || reason.ExitOf(err) != 3 {
				t.Errorf("as a refusal: %s, exit %d", reason.CodeOf(err), reason.ExitOf(err))
			}
		})
	}
}

// manyKeys is an object of n different keys and one more.
func manyKeys(n int, last string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i%10)
	}
	return b.String() + `"` + last + `":0}`
}

func TestParseAccepts(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"null", " null\r\n", "null"},
		{"booleans", "[true,\tfalse]", "[true,false]"},
		{"largest integer", "9007199254740991", "9007199254740991"},
		{"smallest integer", "-9007199254740991", "-9007199254740991"},
		{"zero", "0", "0"},
		{"empty", `[{},[],""]`, `[{},[],""]`},
		{"surrogate pair", `"\ud83d\ude02"`, `"😂"`},
		{"zero character", `"\u0000"`, `"\u0000"`},
		{"solidus", `"\/"`, `"/"`},
		{"noncharacter", `"\uffff"`, "\"\uffff\""},
		{"keys that differ only in case", `{"b":1,"B":2}`, `{"B":2,"b":1}`},
		{"depth at the limit", strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 64) + strings.Repeat("]", 64)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := canonical.Canonicalize([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestParseLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     string
		limits canonical.Limits
		code   reason.Code
	}{
		{"bytes", `"12345"`, canonical.Limits{Bytes: 6}, reason.CanonicalTooLarge},
		{"bytes at the limit", `"1234"`, canonical.Limits{Bytes: 6}, ""},
		{"depth", `[{"a":[]}]`, canonical.Limits{Depth: 2}, reason.CanonicalTooDeep},
		{"depth at the limit", `[{"a":[]}]`, canonical.Limits{Depth: 3}, ""},
		{"values", `[1,2,3]`, canonical.Limits{Values: 3}, reason.CanonicalTooManyValues},
		{"values at the limit", `[1,2,3]`, canonical.Limits{Values: 4}, ""},
		{"default bytes", `"` + strings.Repeat("x", 8<<20) + `"`, canonical.Limits{}, reason.CanonicalTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := canonical.Parse([]byte(c.in), c.limits)
			if got := reason.CodeOf(err); got != c.code {
				t.Errorf("got %q (%v), want %q", got, err, c.code)
			}
		})
	}
}

func TestValueKnowsWhereItStands(t *testing.T) {
	src := `{ "a": [10, "x"] }`
	v, err := canonical.Parse([]byte(src), canonical.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	a, ok := v.Get("a")
	if !ok || a.Offset() != strings.Index(src, "[") || v.Members()[0].KeyOffset != 2 {
		t.Errorf("array at %d, key at %d", a.Offset(), v.Members()[0].KeyOffset)
	}
	if items := a.Items(); items[0].Int() != 10 || items[1].Str() != "x" || items[1].Offset() != strings.Index(src, `"x"`) {
		t.Errorf("items %v", items)
	}
}
