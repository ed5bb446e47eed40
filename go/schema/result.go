package schema

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// Limits of ValidateResult. MaxResultCost bounds the size of a result (its values, and a step for each 16 bytes of
// text) times the number of steps its schema may take at each.
const (
	MaxResultSchemaBytes = 256 << 10
	MaxResultSchemaDepth = 32
	MaxResultBytes       = 8 << 20
	MaxResultDepth       = 32
	MaxResultCost        = 20_000_000
)

// resultBase is where a caller's schema stands; nothing answers to it.
const resultBase = "writ:///result-schema"

// ValidateResult checks a tool's structured result against an output schema that the caller supplies. Both are
// strict JSON. The schema is draft 2020-12, refers only to itself by JSON Pointer ("#/$defs/x"), and its patterns
// are Go RE2, whose time is linear. The error is an *InvalidError with code schema.bad_schema,
// schema.remote_reference or schema.too_costly when the schema is at fault (or either is too large), and
// result.malformed or result.schema when the result is.
func ValidateResult(schemaBytes []byte, doc []byte) error {
	s, err := CompileResultSchema(schemaBytes)
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

// ResultSchema is an output schema that was checked once and validates many results. It is immutable and safe
// for concurrent use.
type ResultSchema struct {
	value    canonical.Value
	compiled *jsonschema.Schema
	digest   canonical.Digest
}

// CompileResultSchema checks a caller's output schema; see ValidateResult for what it accepts.
func CompileResultSchema(schemaBytes []byte) (*ResultSchema, error) {
	src := newSource("output-schema", schemaBytes)
	v, err := parseJSON(src, canonical.Limits{Bytes: MaxResultSchemaBytes, Depth: MaxResultSchemaDepth}, reason.SchemaBadSchema)
	if err != nil {
		return nil, err
	}
	if p := checkReferences(src, v, nil); p != nil {
		return nil, newInvalid([]Problem{*p})
	}
	compiled, err := compileGuarded(v)
	if err != nil {
		return nil, newInvalid([]Problem{src.problem(v.Offset(), "", "schema", "the output schema cannot be used: "+firstLine(err), "", reason.SchemaBadSchema)})
	}
	return &ResultSchema{value: v, compiled: compiled, digest: canonical.Sum(v.AppendCanonical(nil))}, nil
}

// Digest returns the digest of the schema, taken over its canonical bytes.
func (s *ResultSchema) Digest() canonical.Digest { return s.digest }

// Validate checks one result; see ValidateResult for its errors.
func (s *ResultSchema) Validate(doc []byte) error {
	src := newSource("result", doc)
	v, err := parseJSON(src, canonical.Limits{Bytes: MaxResultBytes, Depth: MaxResultDepth}, reason.ResultMalformed)
	if err != nil {
		return err
	}
	size, depth := measure(v)
	if c := newCosts(s.value).root(depth); c > MaxResultCost/int64(size) {
		return newInvalid([]Problem{src.problem(0, "", "cost", "checking the result against its schema would take too many steps",
			"give the output schema fewer alternatives that refer to each other", reason.SchemaTooCostly)})
	}
	find := func(location string) (canonical.Value, bool) {
		_, fragment, _ := strings.Cut(location, "#")
		return descend(s.value, fragment)
	}
	if problems := violations(s.compiled, v, src, find, codes{reason.ResultSchema, reason.ResultSchema}); len(problems) > 0 {
		return newInvalid(problems)
	}
	return nil
}

// compileGuarded compiles a stranger's schema. A panic in the third-party compiler must not end the process: it
// counts as a bad schema.
func compileGuarded(v canonical.Value) (s *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the compiler gave up: %v", r)
		}
	}()
	c := newCompiler(nil)
	if err := c.AddResource(resultBase, v.Any()); err != nil {
		return nil, err
	}
	return c.Compile(resultBase)
}

// checkReferences refuses keywords that would make a schema depend on anything but its own bytes and the place of
// a reference in them.
func checkReferences(src *source, v canonical.Value, path []string) *Problem {
	refuse := func(m canonical.Member, code reason.Code, text, remedy string) *Problem {
		p := src.problem(m.KeyOffset, pointerOf(append(path, m.Name)), m.Name, text, remedy, code)
		return &p
	}
	for _, m := range v.Members() {
		if m.Value.Kind() == canonical.KindString {
			switch s := m.Value.Str(); {
			case m.Name == "$ref" && s != "#" && !strings.HasPrefix(s, "#/"):
				return refuse(m, reason.SchemaRemoteReference, fmt.Sprintf("the schema refers to %s", canonical.QuoteShort(s)), "put what it refers to under $defs and write #/$defs/name")
			case m.Name == "$dynamicRef" || m.Name == "$recursiveRef":
				return refuse(m, reason.SchemaBadSchema, "dynamic references are not accepted", "use $ref")
			case m.Name == "$id" || m.Name == "id" && len(path) == 0:
				return refuse(m, reason.SchemaBadSchema, "a schema with an id of its own is not accepted", "remove it")
			case m.Name == "$schema" && strings.TrimSuffix(s, "#") != "https://json-schema.org/draft/2020-12/schema":
				return refuse(m, reason.SchemaBadSchema, fmt.Sprintf("the schema is of draft %s", canonical.QuoteShort(s)), "write it for draft 2020-12")
			}
		}
		if p := checkReferences(src, m.Value, append(path, m.Name)); p != nil {
			return p
		}
	}
	for i, item := range v.Items() {
		if p := checkReferences(src, item, append(path, fmt.Sprint(i))); p != nil {
			return p
		}
	}
	return nil
}

// measure returns the size of a document, which is its values and the text in them, and how deep they lie.
func measure(v canonical.Value) (size, depth int) {
	size = 1 + len(v.Str())/costGrain
	down := func(child canonical.Value) {
		s, d := measure(child)
		size, depth = size+s, max(depth, d+1)
	}
	for _, m := range v.Members() {
		size += len(m.Name) / costGrain
		down(m.Value)
	}
	for _, item := range v.Items() {
		down(item)
	}
	return size, depth
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
