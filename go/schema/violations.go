package schema

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// codes are the reasons that violations of one schema get.
type codes struct{ violation, unknownField reason.Code }

// lookup finds the part of a schema at a location, for the names and remedies written there.
type lookup func(location string) (canonical.Value, bool)

// violations validates v and returns what is wrong, one problem a leaf of jsonschema's tree; none when it matches.
func violations(s *jsonschema.Schema, v canonical.Value, src *source, find lookup, c codes) []Problem {
	err := s.Validate(v.Any())
	if err == nil {
		return nil
	}
	r := reporter{value: v, src: src, find: find, codes: c}
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		r.add(nil, "", "the document cannot be checked: "+err.Error(), "", reason.InternalBug)
		return r.problems
	}
	r.walk(ve)
	return r.problems
}

type reporter struct {
	value    canonical.Value
	src      *source
	find     lookup
	codes    codes
	problems []Problem
}

func (r *reporter) add(tokens []string, rule, text, remedy string, code reason.Code) {
	pointer := pointerOf(tokens)
	offset, _ := locate(r.value, pointer)
	r.problems = append(r.problems, r.src.problem(offset, pointer, rule, text, remedy, code))
}

// walk goes down to the leaves of jsonschema's tree, where the words are.
func (r *reporter) walk(e *jsonschema.ValidationError) {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		r.alternatives(e, "anyOf")
		return
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			r.alternatives(e, "oneOf")
			return
		}
	case *kind.PropertyNames:
		r.add(append(clone(e), k.Property), "propertyNames", fmt.Sprintf("key %s is not accepted here", canonical.QuoteShort(k.Property)), r.remedy(e), r.codes.violation)
		return
	}
	if len(e.Causes) == 0 {
		r.leaf(e)
	}
	for _, cause := range e.Causes {
		r.walk(cause)
	}
}

// alternatives reports a value that matches none of several forms. When each form only wants another type, that
// is one problem; else the form that went furthest is the one that was probably meant.
func (r *reporter) alternatives(e *jsonschema.ValidationError, rule string) {
	var wanted []string
	got := ""
	best, bestScore := (*jsonschema.ValidationError)(nil), -1
	for _, cause := range e.Causes {
		if leaf := onlyType(cause, len(e.InstanceLocation)); leaf != nil {
			wanted, got = append(wanted, leaf.Want...), leaf.Got
			continue
		}
		if score := deepest(cause); score > bestScore {
			best, bestScore = cause, score
		}
	}
	switch {
	case best != nil:
		r.walk(best)
	case got != "":
		r.add(e.InstanceLocation, rule, wrongType(got, wanted), r.remedy(e), r.codes.violation)
	default:
		r.add(e.InstanceLocation, rule, "the value has none of the accepted forms", r.remedy(e), r.codes.violation)
	}
}

// onlyType returns the type mismatch that is all that is wrong in e at this depth, or nil.
func onlyType(e *jsonschema.ValidationError, depth int) *kind.Type {
	for len(e.Causes) == 1 {
		e = e.Causes[0]
	}
	t, ok := e.ErrorKind.(*kind.Type)
	if !ok || len(e.Causes) > 0 || len(e.InstanceLocation) != depth {
		return nil
	}
	return t
}

func deepest(e *jsonschema.ValidationError) int {
	d := len(e.InstanceLocation)
	for _, cause := range e.Causes {
		d = max(d, deepest(cause))
	}
	return d
}

// leaf words one violation.
func (r *reporter) leaf(e *jsonschema.ValidationError) {
	at, remedy := e.InstanceLocation, r.remedy(e)
	say := func(rule, text string) { r.add(at, rule, text, remedy, r.codes.violation) }
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		known := r.properties(e)
		for _, name := range k.Properties {
			r.add(append(clone(e), name), "additionalProperties", fmt.Sprintf("field %s is unknown here", canonical.QuoteShort(name)), suggest(name, known), r.codes.unknownField)
		}
	case *kind.Required:
		for _, name := range k.Missing {
			r.add(at, "required", fmt.Sprintf("field %s is missing", name), "add "+name, r.codes.violation)
		}
	case *kind.Type:
		say("type", wrongType(k.Got, k.Want))
	case *kind.Enum:
		r.enum(e, k)
	case *kind.Const:
		say("const", fmt.Sprintf("%s is not %s", display(k.Got), display(k.Want)))
	case *kind.Pattern:
		const readable = 48 // a longer expression tells a person less than the remedy does
		if remedy != "" && len(k.Want) > readable {
			say("pattern", canonical.QuoteShort(k.Got)+" is not accepted here")
		} else {
			say("pattern", fmt.Sprintf("%s does not match pattern %s", canonical.QuoteShort(k.Got), k.Want))
		}
	case *kind.Format:
		say("format", fmt.Sprintf("%s is not in the form %s", display(k.Got), k.Want))
	case *kind.MinLength:
		say("minLength", fmt.Sprintf("the text has %d characters; at least %d are wanted", k.Got, k.Want))
	case *kind.MaxLength:
		say("maxLength", fmt.Sprintf("the text has %d characters; at most %d are accepted", k.Got, k.Want))
	case *kind.MinItems:
		say("minItems", fmt.Sprintf("the list has %d items; at least %d are wanted", k.Got, k.Want))
	case *kind.MaxItems:
		say("maxItems", fmt.Sprintf("the list has %d items; at most %d are accepted", k.Got, k.Want))
	case *kind.UniqueItems:
		r.add(append(clone(e), strconv.Itoa(k.Duplicates[1])), "uniqueItems", fmt.Sprintf("item %d repeats item %d", k.Duplicates[1], k.Duplicates[0]), remedy, r.codes.violation)
	case *kind.MinProperties:
		say("minProperties", fmt.Sprintf("the mapping has %d fields; at least %d are wanted", k.Got, k.Want))
	case *kind.MaxProperties:
		say("maxProperties", fmt.Sprintf("the mapping has %d fields; at most %d are accepted", k.Got, k.Want))
	case *kind.Minimum:
		say("minimum", fmt.Sprintf("%s is too small; at least %s is wanted", k.Got.RatString(), k.Want.RatString()))
	case *kind.Maximum:
		say("maximum", fmt.Sprintf("%s is too large; at most %s is accepted", k.Got.RatString(), k.Want.RatString()))
	case *kind.FalseSchema:
		say("false", "nothing is accepted here")
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			r.add(at, "dependentRequired", fmt.Sprintf("field %s is missing, which %s needs", name, k.Prop), "add "+name, r.codes.violation)
		}
	default:
		rule := "schema"
		if path := e.ErrorKind.KeywordPath(); len(path) > 0 {
			rule = path[0]
		}
		say(rule, e.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
	}
}

func (r *reporter) enum(e *jsonschema.ValidationError, k *kind.Enum) {
	var words, shown []string
	for _, w := range k.Want {
		shown = append(shown, display(w))
		if s, ok := w.(string); ok {
			words = append(words, s)
		}
	}
	remedy := "write one of " + strings.Join(shown, ", ")
	if got, ok := k.Got.(string); ok {
		if near := nearest(got, words); near != "" {
			remedy = fmt.Sprintf("did you mean %s? (%s)", near, strings.Join(shown, ", "))
		}
	}
	r.add(e.InstanceLocation, "enum", display(k.Got)+" is not accepted here", remedy, r.codes.violation)
}

// remedy returns the words that the schema itself offers where it failed, under x-remedy.
func (r *reporter) remedy(e *jsonschema.ValidationError) string {
	node, ok := r.find(e.SchemaURL)
	if !ok {
		return ""
	}
	words, _ := node.Get("x-remedy")
	return words.Str()
}

// properties returns the field names that the failing schema knows.
func (r *reporter) properties(e *jsonschema.ValidationError) []string {
	node, _ := r.find(e.SchemaURL)
	known, _ := node.Get("properties")
	var names []string
	for _, m := range known.Members() {
		names = append(names, m.Name)
	}
	return names
}

func suggest(name string, known []string) string {
	const few = 12
	switch near := nearest(name, known); {
	case near != "":
		return "did you mean " + near + "?"
	case len(known) == 0 || len(known) > few:
		return "remove it"
	default:
		return "remove it, or write one of " + strings.Join(known, ", ")
	}
}

func wrongType(got string, want []string) string {
	for i, w := range want {
		want[i] = strings.Replace(w, "number", "integer", 1)
	}
	return fmt.Sprintf("found %s where %s is wanted", strings.Replace(got, "number", "integer", 1), strings.Join(want, " or "))
}

// display shows a value of a document in a message.
func display(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return canonical.QuoteShort(v)
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	default:
		return fmt.Sprint(v)
	}
}

func clone(e *jsonschema.ValidationError) []string {
	return append([]string(nil), e.InstanceLocation...)
}

// descend walks a URI fragment that is a JSON Pointer through a schema.
func descend(v canonical.Value, fragment string) (canonical.Value, bool) {
	pointer, err := url.PathUnescape(fragment)
	if err != nil {
		return canonical.Value{}, false
	}
	for _, token := range pointerTokens(pointer) {
		next, _, ok := step(v, token)
		if !ok {
			return canonical.Value{}, false
		}
		v = next
	}
	return v, true
}
