package canonical

import (
	"bytes"

	"github.com/writ-runtime/writ/go/reason"
)

// Check reports whether b is one document in its canonical form, and is Parse and
// AppendCanonical without building anything. The error is a *SyntaxError, of which
// canonical.not_canonical says that the document is well formed and spelled otherwise.
func Check(b []byte, limits Limits) error {
	c := checker{src: b, limits: limits.orDefault()}
	if len(b) <= c.limits.Bytes && c.value(0) && c.at == len(b) {
		return nil
	}
	// Plain is what nearly every document is. For the rest, and to say what is wrong, the
	// parser itself is asked.
	v, err := Parse(b, limits)
	if err != nil {
		return err
	}
	if !bytes.Equal(v.AppendCanonical(make([]byte, 0, len(b))), b) {
		return newSyntaxError(reason.CanonicalNotCanonical, b, 0, "", "the document is not in canonical form")
	}
	return nil
}

// checker accepts documents in canonical form whose texts are ASCII without an escape. It
// accepts nothing that Parse would refuse, or AppendCanonical write otherwise.
type checker struct {
	src    []byte
	at     int
	values int
	limits Limits
}

func (c *checker) value(depth int) bool {
	if c.values++; c.values > c.limits.Values || c.at >= len(c.src) {
		return false
	}
	switch ch := c.src[c.at]; {
	case ch == '{':
		return c.object(depth + 1)
	case ch == '[':
		return c.array(depth + 1)
	case ch == '"':
		_, ok := c.text()
		return ok
	case ch == '-' || '0' <= ch && ch <= '9':
		return c.integer()
	}
	return c.word("true") || c.word("false") || c.word("null")
}

func (c *checker) object(depth int) bool {
	if depth > c.limits.Depth {
		return false
	}
	c.at++
	if c.byte('}') {
		return true
	}
	var last []byte
	for first := true; ; first = false {
		name, ok := c.text()
		// Of ASCII, the order of UTF-16 code units is that of bytes.
		if !ok || !first && bytes.Compare(last, name) >= 0 || !c.byte(':') || !c.value(depth) {
			return false
		}
		last = name
		if c.byte('}') {
			return true
		}
		if !c.byte(',') {
			return false
		}
	}
}

func (c *checker) array(depth int) bool {
	if depth > c.limits.Depth {
		return false
	}
	c.at++
	if c.byte(']') {
		return true
	}
	for {
		if !c.value(depth) {
			return false
		}
		if c.byte(']') {
			return true
		}
		if !c.byte(',') {
			return false
		}
	}
}

// text returns what stands between two quotes.
func (c *checker) text() ([]byte, bool) {
	if !c.byte('"') {
		return nil, false
	}
	text := c.src[c.at : c.at+plainRun(c.src[c.at:])]
	c.at += len(text)
	return text, c.byte('"')
}

// integer accepts up to fifteen digits: all of those are safe.
func (c *checker) integer() bool {
	negative := c.byte('-')
	from := c.at
	for c.at < len(c.src) && '0' <= c.src[c.at] && c.src[c.at] <= '9' {
		c.at++
	}
	digits := c.src[from:c.at]
	switch {
	case len(digits) == 0 || len(digits) > 15:
		return false
	case digits[0] == '0':
		return len(digits) == 1 && !negative
	}
	return true
}

func (c *checker) byte(b byte) bool {
	if c.at < len(c.src) && c.src[c.at] == b {
		c.at++
		return true
	}
	return false
}

func (c *checker) word(w string) bool {
	if len(c.src)-c.at < len(w) || string(c.src[c.at:c.at+len(w)]) != w {
		return false
	}
	c.at += len(w)
	return true
}
