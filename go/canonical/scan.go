package canonical

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/writ-runtime/writ/go/reason"
)

// text reads a string; p.at is its opening quote.
func (p *parser) text() (string, *SyntaxError) {
	p.at++
	from := p.at
	for p.at < len(p.src) {
		c := p.src[p.at]
		switch {
		case c == '"':
			s := string(p.src[from:p.at])
			p.at++
			return s, nil
		case c == '\\':
			return p.escapedText(from)
		default:
			if err := p.character(c); err != nil {
				return "", err
			}
		}
	}
	return "", p.fail(reason.CanonicalSyntax, p.at, "the document ends inside a string")
}

// escapedText goes on with a string at its first backslash; from is the offset of its first character.
func (p *parser) escapedText(from int) (string, *SyntaxError) {
	out := append([]byte(nil), p.src[from:p.at]...)
	for p.at < len(p.src) {
		c := p.src[p.at]
		switch {
		case c == '"':
			p.at++
			return string(out), nil
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		default:
			start := p.at
			if err := p.character(c); err != nil {
				return "", err
			}
			out = append(out, p.src[start:p.at]...)
		}
	}
	return "", p.fail(reason.CanonicalSyntax, p.at, "the document ends inside a string")
}

// character steps over one unescaped character of a string.
func (p *parser) character(c byte) *SyntaxError {
	if c < utf8.RuneSelf {
		if c < 0x20 {
			return p.fail(reason.CanonicalSyntax, p.at, fmt.Sprintf("control character U+%04X stands unescaped in a string", c))
		}
		p.at++
		return nil
	}
	r, size := utf8.DecodeRune(p.src[p.at:])
	if r == utf8.RuneError && size <= 1 {
		return p.fail(reason.CanonicalInvalidUTF8, p.at, fmt.Sprintf("byte 0x%02x is not valid UTF-8 here", c))
	}
	p.at += size
	return nil
}

// escape reads one escape; p.at is its backslash.
func (p *parser) escape() (rune, *SyntaxError) {
	from := p.at
	if p.at+1 >= len(p.src) {
		return 0, p.fail(reason.CanonicalSyntax, p.at, "the document ends inside a string")
	}
	c := p.src[p.at+1]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		p.at += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	if c != 'u' {
		return 0, p.fail(reason.CanonicalSyntax, from, `a backslash is followed by none of " \ / b f n r t u`)
	}
	r, ok := p.unit()
	if !ok {
		return 0, p.fail(reason.CanonicalSyntax, from, `\u is not followed by four hexadecimal digits`)
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	// A low surrogate first, or a high one without its partner, has no character: two readers would replace
	// it differently.
	if p.at+1 < len(p.src) && p.src[p.at] == '\\' && p.src[p.at+1] == 'u' {
		if low, ok := p.unit(); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, nil
			}
		}
	}
	return 0, p.fail(reason.CanonicalLoneSurrogate, from, fmt.Sprintf(`\u%04x is half of a surrogate pair`, r))
}

// unit reads \uXXXX at p.at and steps over it.
func (p *parser) unit() (rune, bool) {
	if len(p.src)-p.at < 6 {
		return 0, false
	}
	var r rune
	for _, c := range p.src[p.at+2 : p.at+6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	p.at += 6
	return r, true
}

// integer reads a number; p.at is its sign or first digit.
func (p *parser) integer() (Value, *SyntaxError) {
	from := p.at
	negative := p.src[p.at] == '-'
	if negative {
		p.at++
	}
	first := p.at
	var n int64
	for ; p.at < len(p.src) && p.src[p.at] >= '0' && p.src[p.at] <= '9'; p.at++ {
		// Saturates just above the range, so that no length of digits overflows.
		n = min(n*10+int64(p.src[p.at]-'0'), MaxInteger+1)
	}
	digits := p.at - first
	switch {
	case digits == 0:
		return Value{}, p.unexpected("a digit after the minus sign")
	case digits > 1 && p.src[first] == '0':
		return Value{}, p.fail(reason.CanonicalSyntax, from, "a number begins with a needless zero")
	case p.at < len(p.src) && strings.IndexByte(".eE", p.src[p.at]) >= 0:
		return Value{}, p.fail(reason.CanonicalNotInteger, from, "the number has a fraction or an exponent; only whole numbers are accepted")
	case negative && n == 0:
		return Value{}, p.fail(reason.CanonicalNotInteger, from, "negative zero is not an integer")
	case n > MaxInteger:
		return Value{}, p.fail(reason.CanonicalIntegerRange, from, "the integer lies outside ±(2^53-1), where readers begin to round")
	case negative:
		n = -n
	}
	return Value{kind: KindInteger, num: n, offset: from}, nil
}

func (p *parser) unexpected(wanted string) *SyntaxError {
	if p.at >= len(p.src) {
		return p.fail(reason.CanonicalSyntax, p.at, "the document ends where "+wanted+" should stand")
	}
	r, size := utf8.DecodeRune(p.src[p.at:])
	if r == utf8.RuneError && size <= 1 {
		return p.fail(reason.CanonicalInvalidUTF8, p.at, fmt.Sprintf("byte 0x%02x is not valid UTF-8 here", p.src[p.at]))
	}
	return p.fail(reason.CanonicalSyntax, p.at, fmt.Sprintf("found %s where %s should stand", strconv.QuoteRune(r), wanted))
}

func (p *parser) fail(code reason.Code, offset int, detail string) *SyntaxError {
	var path strings.Builder
	for _, s := range p.path {
		path.WriteByte('/')
		if s.index >= 0 {
			path.WriteString(strconv.Itoa(s.index))
		} else {
			path.WriteString(EscapePointer(s.name))
		}
	}
	return newSyntaxError(code, p.src, offset, path.String(), detail)
}
