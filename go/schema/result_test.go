package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
)

const counts = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,"required":["words"],
 "properties":{"words":{"type":"array","items":{"$ref":"#/$defs/word"}},"note":{"anyOf":[{"type":"string"},{"type":"integer"}]},
 "day":{"type":"string","format":"date"},"tree":{"$ref":"#/$defs/tree"},
 "shape":{"oneOf":[{"type":"object","required":["r"],"properties":{"r":{"type":"integer","minimum":1}}},{"type":"object","required":["w","h"],"properties":{"w":{"type":"integer"},"h":{"type":"integer"}}}]}},
 "$defs":{"word":{"type":"object","required":["text","count"],"additionalProperties":false,"properties":{"text":{"type":"string","pattern":"^[a-z]+$"},"count":{"type":"integer","minimum":1}}},
 "tree":{"type":"object","additionalProperties":false,"properties":{"children":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}`

func TestValidateResult(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		code      reason.Code
		at        string // "line:column /path rule"
		text      string
	}{
		{"good", `{"words":[{"text":"a","count":1}],"note":1,"day":"2026-01-31","tree":{"children":[{},{"children":[]}]},"shape":{"r":1}}`, "", "", ""},
		{"not JSON", `{"words":`, reason.ResultMalformed, "1:10 /words syntax", "ends"},
		{"duplicate key", `{"words":[],"words":[]}`, reason.ResultMalformed, "1:13 /words syntax", "twice"},
		{"float", `{"words":[],"note":1.5}`, reason.ResultMalformed, "1:20 /note syntax", ""},
		{"missing", `{}`, reason.ResultSchema, "1:1  required", "words is missing"},
		{"unknown", "{\"words\":[],\n \"nota\":1}", reason.ResultSchema, "2:2 /nota additionalProperties", "did you mean note?"},
		{"pattern through a reference", `{"words":[{"text":"A","count":1}]}`, reason.ResultSchema, "1:12 /words/0/text pattern", "^[a-z]+$"},
		{"minimum", `{"words":[{"text":"a","count":0}]}`, reason.ResultSchema, "1:23 /words/0/count minimum", "0 is too small"},
		{"neither type", `{"words":[],"note":true}`, reason.ResultSchema, "1:13 /note anyOf", "found boolean where string or integer is wanted"},
		{"nearest form", `{"words":[],"shape":{"r":0}}`, reason.ResultSchema, "1:22 /shape/r minimum", "at least 1"},
		{"format", `{"words":[],"day":"2026-02-30"}`, reason.ResultSchema, "1:13 /day format", "date"},
		{"too deep", `{"words":[],"tree":` + strings.Repeat(`{"children":[`, 20) + strings.Repeat(`]}`, 20) + `}`, reason.ResultMalformed, "", "within each other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := schema.ValidateResult([]byte(counts), []byte(c.doc))
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var ie *schema.InvalidError
			if !errors.As(err, &ie) {
				t.Fatalf("got %v", err)
			}
			p := ie.Problems[0]
			at := fmt.Sprintf("%d:%d %s %s", p.Line, p.Column, p.Path, p.Rule)
			if p.Code != c.code || (c.at != "" && at != c.at) || !strings.Contains(p.Message+": "+p.Remedy, c.text) || reason.ExitOf(err) != 20 {
				t.Errorf("got %s at %q: %v", p.Code, at, err)
			}
		})
	}
}

func TestResultSchemasThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, in string
		code     reason.Code
	}{
		{"not JSON", `{`, reason.SchemaBadSchema},
		{"a number", `1`, reason.SchemaBadSchema},
		{"not a schema", `{"type":"nothing"}`, reason.SchemaBadSchema},
		{"fraction", `{"multipleOf":0.5}`, reason.SchemaBadSchema},
		{"look-ahead", `{"pattern":"(?!x)"}`, reason.SchemaBadSchema},
		{"repetition bomb", `{"pattern":"((a{1000}){1000}){1000}"}`, reason.SchemaBadSchema},
		{"web", `{"$ref":"https://example.com/s.json"}`, reason.SchemaRemoteReference},
		{"file", `{"properties":{"a":{"$ref":"file:///etc/hostname"}}}`, reason.SchemaRemoteReference},
		{"relative", `{"items":[{"$ref":"other.json"}]}`, reason.SchemaRemoteReference},
		{"anchor", `{"$ref":"#name"}`, reason.SchemaRemoteReference},
		{"built-in registry", `{"$ref":"writ:///schemas/workorder.v1.schema.json"}`, reason.SchemaRemoteReference},
		{"id", `{"$id":"https://example.com/s.json"}`, reason.SchemaBadSchema},
		{"dynamic reference", `{"$dynamicRef":"#x"}`, reason.SchemaBadSchema},
		{"other draft", `{"$schema":"http://json-schema.org/draft-07/schema#"}`, reason.SchemaBadSchema},
		{"own meta-schema", `{"$schema":"https://example.com/meta"}`, reason.SchemaBadSchema},
		{"dangling reference", `{"$ref":"#/$defs/none"}`, reason.SchemaBadSchema},
		{"too deep", strings.Repeat(`{"not":`, 40) + `{}` + strings.Repeat(`}`, 40), reason.SchemaBadSchema},
		{"too large", `{"title":"` + strings.Repeat("x", schema.MaxResultSchemaBytes) + `"}`, reason.SchemaBadSchema},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := schema.CompileResultSchema([]byte(c.in))
			if reason.CodeOf(err) != c.code || reason.ExitOf(err) != 3 {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A schema that talks about "$ref" as a name in the result is no reference.
func TestNamesThatLookLikeKeywords(t *testing.T) {
	const s = `{"type":"object","properties":{"$ref":{"type":"string"},"$id":{"type":"integer"}}}`
	if err := schema.ValidateResult([]byte(s), []byte(`{"$ref":"https://example.com","$id":1}`)); err != nil {
		t.Error(err)
	}
}

func TestCostlySchemasAreStoppedBeforeTheyRun(t *testing.T) {
	// Each definition asks for the next one twice: 2^40 visits of one value.
	var doubling strings.Builder
	doubling.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling.WriteString(`"d40":{"type":"string"}}}`)
	// Doubling at each level of the document.
	const deep = `{"$ref":"#/$defs/n","$defs":{"n":{"anyOf":[{"properties":{"x":{"$ref":"#/$defs/n"}}},{"properties":{"x":{"$ref":"#/$defs/n"}},"required":["y"]}]}}}`
	nested := strings.Repeat(`{"x":`, 30) + `1` + strings.Repeat(`}`, 30)
	for _, c := range []struct{ name, schema, doc string }{
		{"doubling", doubling.String(), `1`},
		{"doubling by depth", deep, nested},
		{"refers to itself", `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`, `1`},
		{"long pattern on long text", `{"pattern":"` + strings.Repeat("(a|b)?", 30000) + `"}`, `"` + strings.Repeat("ab", 1<<20) + `"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			begun := time.Now()
			err := schema.ValidateResult([]byte(c.schema), []byte(c.doc))
			if code := reason.CodeOf(err); code != reason.SchemaTooCostly && code != reason.SchemaBadSchema {
				t.Errorf("got %v", err)
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	// The same shapes at a sensible size still work.
	if err := schema.ValidateResult([]byte(deep), []byte(`{"x":{"x":{"x":1}}}`)); err != nil {
		t.Error(err)
	}
	if err := schema.ValidateResult([]byte(counts), []byte(`{"words":[`+strings.Repeat(`{"text":"a","count":1},`, 100_000)+`{"text":"a","count":1}]}`)); err != nil {
		t.Error(err)
	}
}

func TestResultSchemaDigestIgnoresLayout(t *testing.T) {
	a, err := schema.CompileResultSchema([]byte(`{"type":"object","title":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := schema.CompileResultSchema([]byte(`{ "title": "\u0078", "type": "object" }`))
	if err != nil || a.Digest() != b.Digest() || !a.Digest().Valid() {
		t.Errorf("%s, %v", a.Digest(), err)
	}
}
