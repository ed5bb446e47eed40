package schema

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	yaml "go.yaml.in/yaml/v3"
)

// tree turns the reader's nodes into a value.
type tree struct {
	src   *source
	path  []string
	depth int
}

func (t *tree) value(n *yaml.Node) (canonical.Value, *Problem) {
	if p := t.decorated(n); p != nil {
		return canonical.Value{}, p
	}
	switch n.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		if t.depth++; t.depth > MaxDocumentDepth {
			return canonical.Value{}, t.fail(n, reason.CanonicalTooDeep, fmt.Sprintf("more than %d lists and mappings lie within each other", MaxDocumentDepth), "make the document flatter")
		}
		defer func() { t.depth-- }()
		if n.Kind == yaml.MappingNode {
			return t.mapping(n)
		}
		return t.sequence(n)
	case yaml.ScalarNode:
		return t.scalar(n)
	default:
		return canonical.Value{}, t.fail(n, reason.SchemaYAMLUnsupported, "this construct is outside the accepted YAML", "write plain mappings, lists and values")
	}
}

// decorated refuses what may stand before or instead of any value.
func (t *tree) decorated(n *yaml.Node) *Problem {
	at := t.offset(n)
	switch {
	case n.Kind == yaml.AliasNode:
		return t.fail(n, reason.SchemaYAMLAlias, "an alias stands here", "write the value out; quote it if it is a string that begins with *")
	case n.Anchor != "":
		return t.fail(n, reason.SchemaYAMLAlias, "an anchor stands here", "write the value out where it is needed; quote it if it is a string that begins with &")
	case n.Style&yaml.TaggedStyle != 0 || (at < len(t.src.text) && t.src.text[at] == '!'):
		// The node of the tag "!" alone does not show it; but nothing else begins with an exclamation mark.
		return t.fail(n, reason.SchemaYAMLTag, "a tag stands here", "leave it out, or quote the value if it is a string that begins with !")
	default:
		return nil
	}
}

// plainScalar reports whether a scalar was written without quotes and not as a block of text.
func plainScalar(n *yaml.Node) bool {
	const marked = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return n.Kind == yaml.ScalarNode && n.Style&marked == 0
}

// scalar classifies by the text itself and not by the reader's tag: readers disagree about 0x1f, 1_000 or 12:30,
// and this package promises one reading.
func (t *tree) scalar(n *yaml.Node) (canonical.Value, *Problem) {
	if !plainScalar(n) {
		return t.text(n)
	}
	s := n.Value
	odd := func(code reason.Code, what, remedy string) (canonical.Value, *Problem) {
		return canonical.Value{}, t.fail(n, code, canonical.QuoteShort(s)+what, remedy)
	}
	switch c := classify(s); c {
	case plainNull:
		return canonical.Value{}.At(t.offset(n)), nil
	case plainTrue, plainFalse:
		return canonical.NewBool(c == plainTrue).At(t.offset(n)), nil
	case plainInteger:
		i, err := strconv.ParseInt(s, 10, 64)
		v, rangeErr := canonical.NewInteger(i)
		if err != nil || rangeErr != nil {
			return odd(reason.SchemaYAMLIntegerForm, " lies outside ±(2^53-1)", "write a smaller one, or quote it if it is a string")
		}
		return v.At(t.offset(n)), nil
	case plainOddInteger:
		return odd(reason.SchemaYAMLIntegerForm, " is not a plain decimal integer; readers of YAML disagree about it", "write decimal digits only, or quote it if it is a string")
	case plainFloat:
		return odd(reason.SchemaYAMLFloat, " is not a whole number", "write a whole number of a smaller unit, or quote it if it is a string")
	case plainTime:
		return odd(reason.SchemaYAMLTimestamp, " looks like a date, a time or a base-60 number; readers of YAML disagree about it", "quote it")
	default:
		return t.text(n)
	}
}

func (t *tree) text(n *yaml.Node) (canonical.Value, *Problem) {
	v, err := canonical.NewString(n.Value)
	if err != nil {
		return canonical.Value{}, t.fail(n, reason.CanonicalInvalidUTF8, "the string is not valid UTF-8", "write the characters themselves")
	}
	return v.At(t.offset(n)), nil
}

func (t *tree) sequence(n *yaml.Node) (canonical.Value, *Problem) {
	items := make([]canonical.Value, 0, len(n.Content))
	for i, item := range n.Content {
		t.path = append(t.path, strconv.Itoa(i))
		v, problem := t.value(item)
		if problem != nil {
			return canonical.Value{}, problem
		}
		t.path = t.path[:len(t.path)-1]
		items = append(items, v)
	}
	return canonical.NewArray(items).At(t.offset(n)), nil
}

func (t *tree) mapping(n *yaml.Node) (canonical.Value, *Problem) {
	members := make([]canonical.Member, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		name, problem := t.key(key)
		if problem != nil {
			return canonical.Value{}, problem
		}
		m := canonical.Member{Name: name, KeyOffset: t.offset(key)}
		t.path = append(t.path, name)
		if m.Value, problem = t.value(n.Content[i+1]); problem != nil {
			return canonical.Value{}, problem
		}
		t.path = t.path[:len(t.path)-1]
		members = append(members, m)
	}
	v, err := canonical.NewObject(members)
	if err != nil {
		return canonical.Value{}, t.objectProblem(n, err)
	}
	return v.At(t.offset(n)), nil
}

func (t *tree) key(n *yaml.Node) (string, *Problem) {
	if p := t.decorated(n); p != nil {
		return "", p
	}
	switch {
	case plainScalar(n) && n.Value == "<<":
		return "", t.fail(n, reason.SchemaYAMLMerge, "a merge key stands here", "write the fields out; quote it if it is a key")
	case n.Kind != yaml.ScalarNode || (plainScalar(n) && classify(n.Value) != plainString):
		return "", t.fail(n, reason.SchemaYAMLKey, "this key is not a string", "quote it")
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return "", t.fail(n, reason.SchemaYAMLKey, "this key is a block of text", "write it on one line before its colon")
	}
	v, problem := t.text(n)
	return v.Str(), problem
}

// objectProblem turns canonical's error about an object's members into a problem at the key.
func (t *tree) objectProblem(n *yaml.Node, err error) *Problem {
	var ve *canonical.ValueError
	if !errors.As(err, &ve) {
		return t.fail(n, reason.SchemaYAMLSyntax, err.Error(), "")
	}
	code := ve.Code
	if code == reason.CanonicalDuplicateKey {
		code = reason.SchemaYAMLDuplicateKey
	}
	p := t.src.problem(ve.Offset, pointerOf(t.path), "yaml", ve.Detail, "keep one of the two", code)
	return &p
}

func (t *tree) offset(n *yaml.Node) int { return t.src.offset(n.Line, n.Column) }

func (t *tree) fail(n *yaml.Node, code reason.Code, message, remedy string) *Problem {
	p := t.src.problem(t.offset(n), pointerOf(t.path), "yaml", message, remedy, code)
	return &p
}
