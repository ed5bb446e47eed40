package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"pgregory.net/rapid"
)

// block writes a document as block YAML with quoted strings, an independent way to the same value.
func block(b *strings.Builder, indent string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			b.WriteString(" {}\n")
			return
		}
		b.WriteByte('\n')
		for k, e := range v {
			fmt.Fprintf(b, "%s%s:", indent, quoted(k))
			block(b, indent+"  ", e)
		}
	case []any:
		if len(v) == 0 {
			b.WriteString(" []\n")
			return
		}
		b.WriteByte('\n')
		for _, e := range v {
			fmt.Fprintf(b, "%s-", indent)
			block(b, indent+"  ", e)
		}
	case string:
		fmt.Fprintf(b, " %s\n", quoted(v))
	case nil:
		b.WriteString(" null\n")
	default:
		fmt.Fprintf(b, " %v\n", v)
	}
}

func quoted(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r > 0x7e || r < 0x20 || r == '"' || r == '\\' {
			fmt.Fprintf(&b, `\U%08x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

func anyDocument(depth int) *rapid.Generator[any] {
	text := rapid.StringOf(rapid.SampledFrom([]rune("ab 1-:#'\"\\\n\t{}[],&*!|>%@`~yesno.é\u0085\u2028\ufeff😂\ufffd")))
	leaves := []*rapid.Generator[any]{rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64Range(-canonical.MaxInteger, canonical.MaxInteger).AsAny(), text.AsAny()}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	return rapid.OneOf(append(leaves, rapid.SliceOfN(anyDocument(depth-1), 0, 4).AsAny(), rapid.MapOfN(text, anyDocument(depth-1), 0, 4).AsAny())...)
}

func TestBlockYAMLAndJSONGiveTheSameDigest(t *testing.T) {
	r := permissive(t)
	rapid.Check(t, func(t *rapid.T) {
		doc := map[string]any{"kind": "writ.any.v1", "body": anyDocument(3).Draw(t, "body")}
		asJSON, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		var asYAML strings.Builder
		block(&asYAML, "", doc)
		j, err := r.Load("x.json", asJSON)
		if err != nil {
			t.Fatal(err)
		}
		y, err := r.Load("x.yaml", []byte(asYAML.String()))
		if err != nil {
			t.Fatalf("%s\n%v", asYAML.String(), err)
		}
		if y.Digest != j.Digest {
			t.Fatalf("YAML %s\nJSON %s", y.Canonical, j.Canonical)
		}
	})
}
