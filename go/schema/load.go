package schema

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// MaxDocumentBytes is the size of the largest document of a person, YAML or JSON.
const MaxDocumentBytes = 1 << 20

// MaxDocumentDepth is how deep lists and mappings of such a document may lie within each other.
const MaxDocumentDepth = 32

// Load reads a person's document. The name tells its form: .json is strict JSON, .yaml and .yml the YAML subset
// of this package; for other names a document that begins with { or [ is JSON and anything else YAML. The document
// must name a registered kind, one of kinds when any are given, and match its schema. The error is an
// *InvalidError.
func (r *Registry) Load(name string, b []byte, kinds ...string) (*Document, error) {
	src := newSource(name, b)
	if len(b) > MaxDocumentBytes {
		return nil, newInvalid([]Problem{{File: name, Line: 1, Column: 1, Rule: "size", Code: reason.CanonicalTooLarge,
			Message: fmt.Sprintf("the document has %d bytes; %d are allowed", len(b), MaxDocumentBytes), Remedy: "make the document smaller"}})
	}
	parse := parseYAML
	if isJSON(name, b) {
		parse = func(src *source) (canonical.Value, error) {
			return parseJSON(src, canonical.Limits{Bytes: MaxDocumentBytes, Depth: MaxDocumentDepth}, "")
		}
	}
	v, err := parse(src)
	if err != nil {
		return nil, err
	}
	e, err := r.kindOf(v, src, kinds)
	if err != nil {
		return nil, err
	}
	if err := r.validate(e, v, src); err != nil {
		return nil, err
	}
	text := v.AppendCanonical(nil)
	return &Document{Kind: e.kind, Canonical: text, Digest: canonical.Sum(text), Name: name, src: src, value: v}, nil
}

func isJSON(name string, b []byte) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".json":
		return true
	case ".yaml", ".yml":
		return false
	default:
		trimmed := strings.TrimLeft(string(b[:min(len(b), 512)]), " \t\r\n\ufeff")
		return strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")
	}
}

// kindOf finds the schema that the document asks for.
func (r *Registry) kindOf(v canonical.Value, src *source, kinds []string) (*entry, error) {
	wanted := kinds
	if len(wanted) == 0 {
		wanted = r.kinds
	}
	fail := func(offset int, pointer, message, remedy string, code reason.Code) error {
		return newInvalid([]Problem{src.problem(offset, pointer, "kind", message, remedy, code)})
	}
	if v.Kind() != canonical.KindObject {
		return nil, fail(v.Offset(), "", fmt.Sprintf("the document is %s and not a mapping of fields", article(v.Kind())),
			"begin with kind: "+strings.Join(wanted, " or "), reason.SchemaUnknownKind)
	}
	kind, ok := v.Get("kind")
	if !ok {
		return nil, fail(v.Offset(), "", "field kind is missing", "add kind: "+strings.Join(wanted, " or "), reason.SchemaUnknownKind)
	}
	offset, _ := locate(v, "/kind")
	if kind.Kind() != canonical.KindString {
		return nil, fail(offset, "/kind", fmt.Sprintf("kind is %s and not a string", article(kind.Kind())), "write one of "+strings.Join(wanted, ", "), reason.SchemaUnknownKind)
	}
	e, err := r.lookup(kind.Str())
	if err != nil {
		refusal, _ := reason.As(err)
		return nil, fail(offset, "/kind", refusal.What, suggestKind(kind.Str(), wanted), refusal.Code)
	}
	if !slices.Contains(wanted, e.kind) {
		return nil, fail(offset, "/kind", "this is a "+e.kind, "give a "+strings.Join(wanted, " or "), reason.SchemaWrongKind)
	}
	return e, nil
}

// parseJSON reads strict JSON; the error is an *InvalidError. A code other than "" replaces the reason.
func parseJSON(src *source, limits canonical.Limits, code reason.Code) (canonical.Value, error) {
	v, err := canonical.Parse(src.text, limits)
	if err == nil {
		return v, nil
	}
	var se *canonical.SyntaxError
	if !errors.As(err, &se) {
		return canonical.Value{}, err
	}
	refusal, _ := reason.As(err)
	if code == "" {
		code = se.Code
	}
	return canonical.Value{}, newInvalid([]Problem{src.problem(se.Offset, se.Path, "syntax", se.Detail, refusal.Remedy, code)})
}

// article names a kind of value the way a sentence does.
func article(k canonical.Kind) string {
	switch k {
	case canonical.KindNull:
		return "empty (null)"
	case canonical.KindArray, canonical.KindInteger, canonical.KindObject:
		return "an " + k.String()
	default:
		return "a " + k.String()
	}
}
