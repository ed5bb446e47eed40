package canonical

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/writ-runtime/writ/go/reason"
)

// SyntaxError says where bytes stop being strict JSON. It unwraps to a *reason.Refusal.
type SyntaxError struct {
	// Code is the reason, one of the canonical.* codes.
	Code reason.Code
	// Offset counts bytes from 0.
	Offset int
	// Line and Column count from 1; Column counts characters, not bytes.
	Line, Column int
	// Path is the JSON Pointer (RFC 6901) of the value being read; "" is the whole document.
	Path string
	// Detail says what was found, in plain words.
	Detail string
}

// Error renders "line L, column C, at /path: detail [code]".
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s: %s [%s]", e.where(), e.Detail, e.Code)
}

// Unwrap returns the same error as a Refusal.
func (e *SyntaxError) Unwrap() error { return reason.New(e.Code, e.Detail, e.where(), e.remedy()) }

func (e *SyntaxError) where() string {
	at := fmt.Sprintf("line %d, column %d", e.Line, e.Column)
	if e.Path != "" {
		at += ", at " + e.Path
	}
	return at
}

func (e *SyntaxError) remedy() string {
	switch e.Code {
	case reason.CanonicalDuplicateKey:
		return "keep one of the two"
	case reason.CanonicalNotInteger, reason.CanonicalIntegerRange:
		return "write a whole number between -(2^53-1) and 2^53-1, or a string"
	case reason.CanonicalByteOrderMark:
		return "save the file as UTF-8 without a byte order mark"
	case reason.CanonicalInvalidUTF8, reason.CanonicalLoneSurrogate:
		return "save the file as UTF-8"
	case reason.CanonicalTooDeep, reason.CanonicalTooLarge, reason.CanonicalTooManyValues:
		return "make the document smaller"
	default:
		return ""
	}
}

// newSyntaxError computes line and column, which the scanner does not count while all goes well.
func newSyntaxError(code reason.Code, b []byte, offset int, path, detail string) *SyntaxError {
	line, column := LineColumn(b, offset)
	return &SyntaxError{Code: code, Offset: offset, Line: line, Column: column, Path: path, Detail: detail}
}

// LineColumn returns the position of a byte offset in b, both counted from 1 and the column in characters. A
// byte that is not valid UTF-8 counts as one character. An offset behind the end is the end.
func LineColumn(b []byte, offset int) (line, column int) {
	offset = min(max(offset, 0), len(b))
	line, start := 1, 0
	for i, c := range b[:offset] {
		if c == '\n' {
			line, start = line+1, i+1
		}
	}
	return line, 1 + utf8.RuneCount(b[start:offset])
}

// ValueError says which part of a Go value has no canonical form, or which part of a document does not fit the
// Go type it was decoded into. It unwraps to a *reason.Refusal.
type ValueError struct {
	// Code is the reason, one of the canonical.* codes.
	Code reason.Code
	// Path is the JSON Pointer (RFC 6901) of the value; "" is the whole value.
	Path string
	// Offset is the byte offset of the value in the decoded document, or -1 when marshalling.
	Offset int
	// Detail says what is wrong, in plain words.
	Detail string
}

// Error renders "at /path: detail [code]".
func (e *ValueError) Error() string { return fmt.Sprintf("%s: %s [%s]", e.where(), e.Detail, e.Code) }

// Unwrap returns the same error as a Refusal.
func (e *ValueError) Unwrap() error { return reason.New(e.Code, e.Detail, e.where(), "") }

func (e *ValueError) where() string {
	if e.Path == "" {
		return "at the top"
	}
	return "at " + e.Path
}

// under prepends one step to the path; paths are built on the way out, so success costs nothing.
func (e *ValueError) under(step string) *ValueError {
	e.Path = "/" + EscapePointer(step) + e.Path
	return e
}

func (e *ValueError) underIndex(i int) *ValueError {
	e.Path = "/" + strconv.Itoa(i) + e.Path
	return e
}

// EscapePointer returns one reference token of a JSON Pointer (RFC 6901) for a member name.
func EscapePointer(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// QuoteShort quotes text from outside for a message, at most about 60 bytes of it and nothing that could
// move a terminal's cursor.
func QuoteShort(s string) string {
	const most = 60
	if len(s) <= most {
		return strconv.Quote(s)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}
