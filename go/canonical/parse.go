package canonical

import (
	"fmt"

	"github.com/writ-runtime/writ/go/reason"
)

// Limits bound what the parser accepts. A zero field means its default.
type Limits struct {
	// Bytes is the largest document; default 8 MiB.
	Bytes int
	// Depth is how many arrays and objects may lie within each other; default 64.
	Depth int
	// Values is how many values the document may hold; default 1,000,000. It bounds memory: a parsed value
	// takes about a hundred bytes even where its text takes two.
	Values int
}

// DefaultLimits returns the limits that a zero Limits stands for.
func DefaultLimits() Limits { return Limits{Bytes: 8 << 20, Depth: 64, Values: 1_000_000} }

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	if l.Bytes <= 0 {
		l.Bytes = d.Bytes
	}
	if l.Depth <= 0 {
		l.Depth = d.Depth
	}
	if l.Values <= 0 {
		l.Values = d.Values
	}
	return l
}

// Parse reads one strict JSON document. The error is a *SyntaxError. The value does not refer to b.
func Parse(b []byte, limits Limits) (Value, error) {
	p := parser{src: b, limits: limits.orDefault()}
	if len(b) > p.limits.Bytes {
		return Value{}, newSyntaxError(reason.CanonicalTooLarge, b, p.limits.Bytes, "",
			fmt.Sprintf("the document has %d bytes; %d are allowed", len(b), p.limits.Bytes))
	}
	if len(b) >= 3 && b[0] == 0xef && b[1] == 0xbb && b[2] == 0xbf {
		return Value{}, newSyntaxError(reason.CanonicalByteOrderMark, b, 0, "", "the document begins with a byte order mark")
	}
	v, err := p.document()
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

// Canonicalize reads one strict JSON document within the default limits and returns its RFC 8785 bytes. The
// error is a *SyntaxError.
func Canonicalize(b []byte) ([]byte, error) {
	v, err := Parse(b, Limits{})
	if err != nil {
		return nil, err
	}
	return v.AppendCanonical(make([]byte, 0, len(b))), nil
}

// parser is a recursive descent parser; Limits.Depth bounds the recursion.
type parser struct {
	src    []byte
	at     int
	depth  int
	values int
	limits Limits
	path   []step
}

// step is one step of the path to the value being read; rendering it is left to the error.
type step struct {
	name  string
	index int // -1 when name is meant
}

func (p *parser) document() (Value, *SyntaxError) {
	p.space()
	v, err := p.value()
	if err != nil {
		return Value{}, err
	}
	p.space()
	if p.at < len(p.src) {
		return Value{}, p.fail(reason.CanonicalTrailing, p.at, "more bytes follow the end of the document")
	}
	return v, nil
}

func (p *parser) value() (Value, *SyntaxError) {
	if p.values++; p.values > p.limits.Values {
		return Value{}, p.fail(reason.CanonicalTooManyValues, p.at, fmt.Sprintf("the document holds more than %d values", p.limits.Values))
	}
	if p.at >= len(p.src) {
		return Value{}, p.fail(reason.CanonicalSyntax, p.at, "the document ends where a value should stand")
	}
	from := p.at
	switch c := p.src[p.at]; {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		s, err := p.text()
		return Value{kind: KindString, str: s, offset: from}, err
	case c == '-' || (c >= '0' && c <= '9'):
		return p.integer()
	case p.word("true"):
		return Value{kind: KindBool, num: 1, offset: from}, nil
	case p.word("false"):
		return Value{kind: KindBool, offset: from}, nil
	case p.word("null"):
		return Value{offset: from}, nil
	default:
		return Value{}, p.unexpected("a value")
	}
}

func (p *parser) object() (Value, *SyntaxError) {
	v := Value{kind: KindObject, offset: p.at}
	if err := p.enter(); err != nil {
		return v, err
	}
	if p.next('}') {
		return v, p.leave()
	}
	for {
		if p.at >= len(p.src) || p.src[p.at] != '"' {
			return v, p.unexpected("a key in double quotes")
		}
		m := Member{KeyOffset: p.at}
		var err *SyntaxError
		if m.Name, err = p.text(); err != nil {
			return v, err
		}
		p.path = append(p.path, step{name: m.Name, index: -1})
		if !p.next(':') {
			return v, p.unexpected("a colon after the key")
		}
		if m.Value, err = p.value(); err != nil {
			return v, err
		}
		p.path = p.path[:len(p.path)-1]
		v.members = append(v.members, m)
		if p.next('}') {
			break
		}
		if !p.next(',') {
			return v, p.unexpected("a comma or the end of the object")
		}
	}
	if i := duplicate(v.members); i >= 0 {
		p.path = append(p.path, step{name: v.members[i].Name, index: -1})
		return v, p.fail(reason.CanonicalDuplicateKey, v.members[i].KeyOffset, fmt.Sprintf("key %s appears twice", QuoteShort(v.members[i].Name)))
	}
	return v, p.leave()
}

func (p *parser) array() (Value, *SyntaxError) {
	v := Value{kind: KindArray, offset: p.at}
	if err := p.enter(); err != nil {
		return v, err
	}
	if p.next(']') {
		return v, p.leave()
	}
	for {
		p.path = append(p.path, step{index: len(v.items)})
		item, err := p.value()
		if err != nil {
			return v, err
		}
		p.path = p.path[:len(p.path)-1]
		v.items = append(v.items, item)
		if p.next(']') {
			return v, p.leave()
		}
		if !p.next(',') {
			return v, p.unexpected("a comma or the end of the array")
		}
	}
}

func (p *parser) enter() *SyntaxError {
	if p.depth++; p.depth > p.limits.Depth {
		return p.fail(reason.CanonicalTooDeep, p.at, fmt.Sprintf("more than %d arrays and objects lie within each other", p.limits.Depth))
	}
	p.at++
	p.space()
	return nil
}

func (p *parser) leave() *SyntaxError {
	p.depth--
	return nil
}

// next skips white space, then c with the white space behind it; it reports whether c was there.
func (p *parser) next(c byte) bool {
	p.space()
	if p.at >= len(p.src) || p.src[p.at] != c {
		return false
	}
	p.at++
	p.space()
	return true
}

func (p *parser) space() {
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) word(w string) bool {
	if len(p.src)-p.at < len(w) || string(p.src[p.at:p.at+len(w)]) != w {
		return false
	}
	p.at += len(w)
	return true
}
