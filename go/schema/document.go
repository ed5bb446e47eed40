package schema

import (
	"errors"
	"strconv"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// Document is a person's document that matched the schema of its kind. It is immutable.
type Document struct {
	// Kind is the registered kind that the document names.
	Kind string
	// Canonical is the document in RFC 8785 bytes.
	Canonical []byte
	// Digest is taken over Canonical.
	Digest canonical.Digest
	// Name is what the document was loaded under, for messages.
	Name string

	src   *source
	value canonical.Value
}

// Value returns the parsed document; offsets in it are bytes of the source text, YAML or JSON.
func (d *Document) Value() canonical.Value { return d.value }

// Decode reads the document into *v by the rules of canonical.Decode. The error is an *InvalidError that points
// into the source text, or internal when v cannot be decoded into.
func (d *Document) Decode(v any) error {
	err := d.value.Decode(v)
	var ve *canonical.ValueError
	if !errors.As(err, &ve) || ve.Code.Exit() != reason.ExitInvalid {
		return err
	}
	return newInvalid([]Problem{d.Problem(ve.Path, "decode", ve.Detail, "", ve.Code)})
}

// Position returns line and column, both counted from 1, of what a JSON Pointer names: the key for a member, the
// value for an item. For a pointer to something that is not there it is the nearest thing around it, and ok is
// false.
func (d *Document) Position(pointer string) (line, column int, ok bool) {
	offset, ok := locate(d.value, pointer)
	line, column = d.src.position(offset)
	return line, column, ok
}

// Problem returns a problem of this document, for checks that a schema cannot make. Give it to Invalid.
func (d *Document) Problem(pointer, rule, message, remedy string, code reason.Code) Problem {
	offset, _ := locate(d.value, pointer)
	return d.src.problem(offset, pointer, rule, message, remedy, code)
}

// Invalid returns the error for problems of this document, of which there must be at least one.
func (d *Document) Invalid(problems ...Problem) *InvalidError { return newInvalid(problems) }

func (s *source) problem(offset int, pointer, rule, message, remedy string, code reason.Code) Problem {
	line, column := s.position(offset)
	return Problem{File: s.name, Line: line, Column: column, Path: pointer, Rule: rule, Message: message, Remedy: remedy,
		Code: code, excerpt: s.excerpt(line, column)}
}

// locate walks a JSON Pointer through v and returns the byte offset of what it names.
func locate(v canonical.Value, pointer string) (offset int, ok bool) {
	offset = v.Offset()
	for _, token := range pointerTokens(pointer) {
		next, at, found := step(v, token)
		if !found {
			return offset, false
		}
		v, offset = next, at
	}
	return offset, true
}

// step goes down one token and returns where that stands: the key of a member, the beginning of an item.
func step(v canonical.Value, token string) (next canonical.Value, offset int, ok bool) {
	switch v.Kind() {
	case canonical.KindObject:
		for _, m := range v.Members() {
			if m.Name == token {
				return m.Value, m.KeyOffset, true
			}
		}
	case canonical.KindArray:
		i, err := strconv.Atoi(token)
		if items := v.Items(); err == nil && i >= 0 && i < len(items) {
			return items[i], items[i].Offset(), true
		}
	}
	return canonical.Value{}, 0, false
}

func pointerTokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, t := range tokens {
		tokens[i] = unescape.Replace(t)
	}
	return tokens
}

func pointerOf(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(canonical.EscapePointer(t))
	}
	return b.String()
}
