package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	yaml "go.yaml.in/yaml/v3"
)

// parseYAML reads the YAML subset. Offsets in the value are bytes of the source. The error is an *InvalidError.
//
// The reader is the one that OPA uses too: a port of libyaml, whose nodes say where they stand and how they were
// written, and which refuses nesting that would exhaust the stack.
func parseYAML(src *source) (canonical.Value, error) {
	if p := checkCharacters(src); p != nil {
		return canonical.Value{}, newInvalid([]Problem{*p})
	}
	if p := checkDirectives(src); p != nil {
		return canonical.Value{}, newInvalid([]Problem{*p})
	}
	body, p := readYAML(src)
	if p != nil {
		return canonical.Value{}, newInvalid([]Problem{*p})
	}
	if body == nil {
		return canonical.Value{}, nil
	}
	t := tree{src: src}
	v, p := t.value(body)
	if p != nil {
		return canonical.Value{}, newInvalid([]Problem{*p})
	}
	return v, nil
}

// checkCharacters refuses broken UTF-8, what YAML 1.2 (5.1) calls non-printable, and the two separators that are
// line breaks to YAML 1.1 only.
func checkCharacters(src *source) *Problem {
	bad := func(at int, code reason.Code, message, remedy string) *Problem {
		p := src.problem(at, "", "characters", message, remedy, code)
		return &p
	}
	for at := 0; at < len(src.text); {
		r, size := utf8.DecodeRune(src.text[at:])
		switch {
		case r == utf8.RuneError && size <= 1:
			return bad(at, reason.CanonicalInvalidUTF8, fmt.Sprintf("byte 0x%02x is not valid UTF-8 here", src.text[at]), "save the file as UTF-8")
		case r == '\ufeff':
			return bad(at, reason.CanonicalByteOrderMark, "the document holds a byte order mark", "save the file as UTF-8 without a byte order mark")
		case r < 0x20 && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfffe, r == 0xffff:
			return bad(at, reason.SchemaYAMLSyntax, fmt.Sprintf("the invisible character U+%04X stands here", r), "write it as an escape in a double-quoted string")
		case r == '\r' && (at+1 == len(src.text) || src.text[at+1] != '\n'):
			return bad(at, reason.SchemaYAMLSyntax, "a carriage return stands alone", "end lines with a line feed")
		}
		at += size
	}
	return nil
}

// checkDirectives refuses lines that begin with % before the document, which the nodes do not show.
func checkDirectives(src *source) *Problem {
	for n := 1; n <= len(src.lines); n++ {
		line := strings.TrimSpace(src.line(n))
		if strings.HasPrefix(src.line(n), "%") {
			p := src.problem(src.lines[n-1], "", "yaml", "a directive stands here", "leave it out", reason.SchemaYAMLDirective)
			return &p
		}
		if line != "" && !strings.HasPrefix(line, "#") {
			break
		}
	}
	return nil
}

// readYAML returns the node of the one document, or nil when there is none. A panic in the third-party reader must
// not end the process that reads a stranger's file: it counts as a syntax error.
func readYAML(src *source) (body *yaml.Node, problem *Problem) {
	fail := func(line, column int, code reason.Code, message, remedy string) *Problem {
		p := src.problem(src.offset(line, column), "", "yaml", message, remedy, code)
		return &p
	}
	defer func() {
		if recover() != nil {
			body, problem = nil, fail(1, 1, reason.SchemaYAMLSyntax, "the document cannot be read as YAML", "simplify it, or write it as JSON")
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(src.text))
	var first, second yaml.Node
	switch err := dec.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, src.yamlProblem(err)
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, fail(second.Line, second.Column, reason.SchemaYAMLMultiDocument, "a second document begins here", "give each document a file of its own")
	case !errors.Is(err, io.EOF):
		return nil, src.yamlProblem(err)
	}
	if first.Kind != yaml.DocumentNode || len(first.Content) != 1 || first.Content[0] == nil {
		return nil, nil
	}
	return first.Content[0], nil
}

// yamlProblem takes the line, where one is told, and the words out of the reader's "yaml: line 3: words".
func (s *source) yamlProblem(err error) *Problem {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if name, ok := strings.CutPrefix(message, "unknown anchor '"); ok {
		// The reader resolves aliases before it shows them; the first of that name is where it stopped.
		name, _, _ = strings.Cut(name, "'")
		p := s.problem(max(bytes.Index(s.text, []byte("*"+name)), 0), "", "yaml", "an alias stands here",
			"write the value out; quote it if it is a string that begins with *", reason.SchemaYAMLAlias)
		return &p
	}
	line := 1
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if number, words, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				line, message = n, words
			}
		}
	}
	p := s.problem(s.offset(line, 1), "", "yaml", "this is not YAML: "+message, "", reason.SchemaYAMLSyntax)
	return &p
}
