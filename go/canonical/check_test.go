package canonical_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// agrees fails the test unless Check says of b what the parser and the writer say.
func agrees(t *testing.T, b []byte, limits canonical.Limits) {
	t.Helper()
	v, parsed := canonical.Parse(b, limits)
	same := parsed == nil && bytes.Equal(v.AppendCanonical(nil), b)
	err := canonical.Check(b, limits)
	if same != (err == nil) {
		t.Fatalf("%q: the parser says %v, in canonical form %t; Check says %v", b, parsed, same, err)
	}
	var syntax *canonical.SyntaxError
	if err != nil && (!errors.As(err, &syntax) || parsed == nil && !reason.Is(err, reason.CanonicalNotCanonical)) {
		t.Fatalf("%q: Check says %v", b, err)
	}
}

func TestCheckAgreesWithTheParser(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, `""`, `0`, `-1`, `true`, `false`, `null`, `{"a":1,"b":[1,2,{"c":"d"}]}`, `[[],{}]`, `999999999999999`, `9007199254740991`,
		``, ` {}`, `{} `, `{ }`, `{"a":1,}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `[1,]`, `[,1]`, `01`, `-0`, `1.0`, `1e3`, `9007199254740992`, `-`, `--1`,
		`"a`, `"\u0041"`, `"\n"`, `"é"`, `"\u00e9"`, "\"\x7f\"", "\"\x01\"", "\"\xff\"", `{"é":1}`, `{"\ud83d\ude00":1,"z":2}`, `tru`, `truex`, `nul`,
		`{"a"}`, `{"a":}`, `{a:1}`, `{"a":1 ,"b":2}`, `[1 ]`, `"a""b"`, `{"":1}`, `{"":1,"a":2}`, `{"a":1,"":2}`,
		strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 65) + strings.Repeat("]", 65), strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65),
	} {
		agrees(t, []byte(text), canonical.Limits{})
		agrees(t, []byte(text), canonical.Limits{Depth: 2, Values: 3, Bytes: 20})
	}
}

func FuzzCheck(f *testing.F) {
	for _, text := range []string{`{"a":1,"b":[1,2,{"c":"d"}]}`, `{"é":1}`, `{"b":1,"a":2}`, ` {}`, `-0`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		agrees(t, b, canonical.Limits{})
		agrees(t, b, canonical.Limits{Depth: 2, Values: 3, Bytes: 20})
	})
}
