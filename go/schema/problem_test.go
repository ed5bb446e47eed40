package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
)

func TestErrorShowsTheLine(t *testing.T) {
	text := strings.NewReplacer("path: report.json", "path: ../x", "media_type: text/plain", "mediatype: text/plain").Replace(order)
	_, err := open(t).Load("work-order.yaml", []byte(text))
	want := `work-order.yaml:20:7: /outputs/paths/0/path: "../x" is not accepted here: write a relative path with /, without . or .. and without a leading / (rule: pattern)
20 |     - path: ../x
   |       ^
work-order.yaml:22:7: /outputs/paths/1: field media_type is missing: add media_type (rule: required)
work-order.yaml:23:7: /outputs/paths/1/mediatype: field "mediatype" is unknown here: did you mean media_type? (rule: additionalProperties)`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	r, ok := reason.As(err)
	const sentence = `"../x" is not accepted here, and 2 more problems (work-order.yaml:20:7: /outputs/paths/0/path): write a relative path with /, without . or .. and without a leading / [schema.violation]`
	if !ok || r.Error() != sentence {
		t.Errorf("as a refusal: %v", r)
	}
}

func TestExcerptStaysReadable(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"tab":             {"{\"kind\":\t1.5}", "1 | {\"kind\": 1.5}\n  |          ^"},
		"escape sequence": {"{\"a\x1b[2J\":1}", "1 | {\"a\ufffd[2J\":1}\n  |    ^"},
		"long line":       {`{"a": "` + strings.Repeat("x", 200) + `", "b": 1.5}`, "1 | " + strings.Repeat("x", 41) + `", "b": 1.5}` + "\n  | " + strings.Repeat(" ", 49) + "^"},
		"wide characters": {`{"é": 1.5}`, "1 | {\"é\": 1.5}\n  |       ^"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t).Load("x.json", []byte(c.text))
			var ie *schema.InvalidError
			if !errors.As(err, &ie) || ie.Problems[0].Excerpt() != c.want {
				t.Errorf("got\n%s\nwant\n%s\n%v", ie.Problems[0].Excerpt(), c.want, err)
			}
		})
	}
}

func TestProblemsAreSortedAndCapped(t *testing.T) {
	var extra strings.Builder
	for i := range 40 {
		extra.WriteString("zz" + strings.Repeat("y", i) + ": 1\n")
	}
	_, err := open(t).Load("order.yaml", []byte(order+extra.String()))
	var ie *schema.InvalidError
	if !errors.As(err, &ie) || len(ie.Problems) != schema.MaxProblems || ie.Omitted != 20 {
		t.Fatalf("got %v", err)
	}
	for i := 1; i < len(ie.Problems); i++ {
		if ie.Problems[i].Line < ie.Problems[i-1].Line {
			t.Errorf("problem %d stands before its neighbour", i)
		}
	}
	if !strings.HasSuffix(err.Error(), "\nand 20 more") {
		t.Error(err)
	}
}

func TestSizeLimit(t *testing.T) {
	_, err := open(t).Load("order.yaml", []byte(order+"#"+strings.Repeat("x", schema.MaxDocumentBytes)))
	if reason.CodeOf(err) != reason.CanonicalTooLarge {
		t.Errorf("got %v", err)
	}
}

func TestDocumentPositionsAndOwnProblems(t *testing.T) {
	d, err := open(t).Load("order.yaml", []byte(order))
	if err != nil {
		t.Fatal(err)
	}
	for pointer, want := range map[string][2]int{"": {2, 1}, "/tool/name": {12, 3}, "/tool/arguments/1": {13, 24}, "/outputs/paths/1": {22, 7}, "/limits/money/scale": {31, 39}} {
		if line, column, ok := d.Position(pointer); !ok || line != want[0] || column != want[1] {
			t.Errorf("%s stands at %d:%d, want %v", pointer, line, column, want)
		}
	}
	if line, _, ok := d.Position("/tool/nothing"); ok || line != 11 {
		t.Errorf("a missing field is placed at line %d, %v", line, ok)
	}
	invalid := d.Invalid(d.Problem("/tool/name", "lock", `tool "wordcount" is not in the lock file`, "run writ lock", reason.ToolUnknown))
	want := "order.yaml:12:3: /tool/name: tool \"wordcount\" is not in the lock file: run writ lock (rule: lock)\n12 |   name: wordcount\n   |   ^"
	if invalid.Error() != want || reason.ExitOf(invalid) != 5 {
		t.Errorf("got %s, exit %d", invalid, reason.ExitOf(invalid))
	}
	var small struct {
		Kind string `json:"kind"`
	}
	if err := d.Decode(&small); reason.CodeOf(err) != reason.CanonicalUnknownField || !strings.HasPrefix(err.Error(), "order.yaml:3:1: /title") {
		t.Errorf("Decode into too small a struct: %v", err)
	}
}
