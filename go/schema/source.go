package schema

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-runtime/writ/go/canonical"
)

// source is the text of a document, for positions and excerpts.
type source struct {
	name  string
	text  []byte
	lines []int // byte offset at which each line begins
}

func newSource(name string, text []byte) *source {
	s := &source{name: name, text: text, lines: []int{0}}
	for i, c := range text {
		if c == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// line returns the text of a line counted from 1, without its end; "" for a line that is not there.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	end := len(s.text)
	if n < len(s.lines) {
		end = s.lines[n] - 1
	}
	return strings.TrimSuffix(string(s.text[s.lines[n-1]:end]), "\r")
}

// offset returns the byte offset of a line and a column in characters, both counted from 1. Positions outside
// the text, as a third-party lexer may give, are moved to the nearest one inside.
func (s *source) offset(line, column int) int {
	line = min(max(line, 1), len(s.lines))
	at := s.lines[line-1]
	for column > 1 && at < len(s.text) && s.text[at] != '\n' {
		_, size := utf8.DecodeRune(s.text[at:])
		at, column = at+size, column-1
	}
	return at
}

// position returns line and column of a byte offset.
func (s *source) position(offset int) (line, column int) { return canonical.LineColumn(s.text, offset) }

// excerpt renders a line with a caret under a column, cut to a window when it is long. Characters that could
// move a terminal's cursor are replaced.
func (s *source) excerpt(line, column int) string {
	const window = 100
	text := []rune(strings.Map(plain, s.line(line)))
	if len(text) == 0 {
		return ""
	}
	from := 0
	if column > window*3/4 {
		from = min(column-window/2, len(text))
	}
	to := min(from+window, len(text))
	gutter := fmt.Sprintf("%d", line)
	blank := strings.Repeat(" ", len(gutter))
	caret := strings.Repeat(" ", max(column-1-from, 0)) + "^"
	return fmt.Sprintf("%s | %s\n%s | %s", gutter, string(text[from:to]), blank, caret)
}

// plain keeps one column a character: tabs become spaces, unprintable characters a mark.
func plain(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case !unicode.IsPrint(r):
		return '\ufffd'
	default:
		return r
	}
}
