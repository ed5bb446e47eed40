package canonical

import (
	"bytes"
	"encoding/base64"
	"reflect"
	"strings"
	"unicode/utf8"
)

// decodeStream decodes a document that is in RFC 8785 form straight into *v, without a tree of values between
// them, and reports whether it did. It gives up at the first thing that is not canonical, does not fit, or is
// rare (an escaped control character, a key that is not plain ASCII, an interface): then the tree decides anew
// what the document says or what is wrong with it, and *v gets what it would have got.
//
// Whatever it takes, the tree takes with the same result; FuzzStream holds it to that.
func decodeStream(b []byte, v any, share bool) bool {
	limits := DefaultLimits()
	if len(b) > limits.Bytes {
		return false
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return false
	}
	p, err := planFor(rv.Type().Elem())
	if err != nil {
		return false
	}
	s := stream{src: b, share: share, depth: limits.Depth, values: limits.Values}
	return s.decode(p, rv.Elem()) && s.at == len(b)
}

// stream reads canonical bytes. Each method reads one thing at s.at and reports whether it was there.
type stream struct {
	src []byte
	at  int
	// share says that a Raw may be a part of src.
	share bool
	// depth and values are how many more arrays and objects may be within each other, and values in all.
	depth, values int
}

func (s *stream) decode(p *plan, to reflect.Value) bool {
	switch p.op {
	case opPointer:
		if s.word("null") {
			to.SetZero()
			return s.count()
		}
		to.Set(reflect.New(p.typ.Elem()))
		return s.decode(p.elem, to.Elem())
	case opRaw:
		from := s.at
		if !s.skip() {
			return false
		}
		raw := s.src[from:s.at:s.at]
		if !s.share {
			raw = bytes.Clone(raw)
		}
		to.SetBytes(raw)
		return true
	case opStruct:
		return s.structure(p, to)
	case opMap:
		return s.dictionary(p, to)
	case opSlice, opArray:
		return s.list(p, to)
	case opAny:
		return false
	}
	if !s.count() {
		return false
	}
	switch p.op {
	case opBool:
		is := s.word("true")
		to.SetBool(is)
		return is || s.word("false")
	case opInt:
		n, ok := s.integer()
		if !ok || to.OverflowInt(n) {
			return false
		}
		to.SetInt(n)
		return true
	case opUint:
		n, ok := s.integer()
		if !ok || n < 0 || to.OverflowUint(uint64(n)) {
			return false
		}
		to.SetUint(uint64(n))
		return true
	case opString:
		text, ok := s.text()
		to.SetString(text)
		return ok
	case opText:
		text, ok := s.text()
		if !ok {
			return false
		}
		t, ok := to.Addr().Interface().(textParser)
		return ok && t.ParseCanonicalText(text) == nil
	case opBytes:
		text, ok := s.span()
		if !ok {
			return false
		}
		b := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
		n, err := base64.StdEncoding.Strict().Decode(b, text)
		// The decoder skips line breaks, but a span holds no control characters.
		if err != nil {
			return false
		}
		to.SetBytes(b[:n:n])
		return true
	}
	return false
}

// structure reads an object into a struct. Its members are in the order of the plan's fields.
func (s *stream) structure(p *plan, to reflect.Value) bool {
	next := 0
	return s.members(func(key []byte) bool {
		for ; next < len(p.fields); next++ {
			if f := &p.fields[next]; f.name == string(key) {
				next++
				return s.decode(f.plan, fieldByIndex(to, f.index))
			}
		}
		return false
	})
}

// fieldByIndex is reflect's, without its loop where a field is not of an embedded struct.
func fieldByIndex(v reflect.Value, index []int) reflect.Value {
	if len(index) == 1 {
		return v.Field(index[0])
	}
	return v.FieldByIndex(index)
}

func (s *stream) dictionary(p *plan, to reflect.Value) bool {
	m := reflect.MakeMap(p.typ)
	to.Set(m)
	return s.members(func(key []byte) bool {
		elem := reflect.New(p.typ.Elem()).Elem()
		if !s.decode(p.elem, elem) {
			return false
		}
		m.SetMapIndex(reflect.ValueOf(string(key)).Convert(p.typ.Key()), elem)
		return true
	})
}

func (s *stream) list(p *plan, to reflect.Value) bool {
	if p.op == opSlice {
		to.Set(reflect.MakeSlice(p.typ, 0, 0))
	}
	n := 0
	ok := s.items(func() bool {
		if p.op == opSlice {
			if n == to.Cap() {
				to.Grow(max(n, 4))
			}
			to.SetLen(n + 1)
			to.Index(n).SetZero()
		} else if n == to.Len() {
			return false
		}
		n++
		return s.decode(p.elem, to.Index(n-1))
	})
	return ok && (p.op == opSlice || n == to.Len())
}

// skip reads any value.
func (s *stream) skip() bool {
	if s.at >= len(s.src) {
		return false
	}
	switch s.src[s.at] {
	case '{':
		return s.members(func([]byte) bool { return s.skip() })
	case '[':
		return s.items(s.skip)
	}
	if !s.count() {
		return false
	}
	switch s.src[s.at] {
	case '"':
		_, ok := s.quoted()
		return ok
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	_, ok := s.integer()
	return ok
}

// members reads an object whose keys are plain and ascend, and has each value read.
func (s *stream) members(value func(key []byte) bool) bool {
	if !s.enter('{') {
		return false
	}
	if s.byte('}') {
		s.depth++
		return true
	}
	var last []byte
	for first := true; ; first = false {
		key, ok := s.span()
		if !ok || !first && string(key) <= string(last) || !ascii(key) || !s.byte(':') || !value(key) {
			return false
		}
		last = key
		if s.byte('}') {
			s.depth++
			return true
		}
		if !s.byte(',') {
			return false
		}
	}
}

func (s *stream) items(item func() bool) bool {
	if !s.enter('[') {
		return false
	}
	if s.byte(']') {
		s.depth++
		return true
	}
	for {
		if !item() {
			return false
		}
		if s.byte(']') {
			s.depth++
			return true
		}
		if !s.byte(',') {
			return false
		}
	}
}

func (s *stream) enter(c byte) bool {
	s.depth--
	return s.depth >= 0 && s.count() && s.byte(c)
}

func (s *stream) count() bool { s.values--; return s.values >= 0 }

func (s *stream) byte(c byte) bool {
	if s.at < len(s.src) && s.src[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *stream) word(w string) bool {
	if len(s.src)-s.at < len(w) || string(s.src[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

func (s *stream) integer() (int64, bool) {
	negative := s.byte('-')
	first, n := s.at, int64(0)
	for ; s.at < len(s.src) && s.src[s.at]-'0' <= 9; s.at++ {
		n = min(n*10+int64(s.src[s.at]-'0'), MaxInteger+1)
	}
	digits := s.at - first
	if digits == 0 || digits > 1 && s.src[first] == '0' || n > MaxInteger || negative && n == 0 {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

// span reads a string without escapes and returns what is between its quotes.
func (s *stream) span() ([]byte, bool) {
	from := s.at
	if escaped, ok := s.quoted(); !ok || escaped {
		return nil, false
	}
	return s.src[from+1 : s.at-1], true
}

// text reads a string.
func (s *stream) text() (string, bool) {
	from := s.at
	escaped, ok := s.quoted()
	if !ok {
		return "", false
	}
	raw := s.src[from+1 : s.at-1]
	if !escaped {
		return string(raw), true
	}
	var out strings.Builder
	out.Grow(len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '\\' {
			i++
			c = "\b\t\n\f\r\"\\"[strings.IndexByte(shortEscapes, raw[i])]
		}
		out.WriteByte(c)
	}
	return out.String(), true
}

// shortEscapes are the letters of the escapes that RFC 8785 writes with two characters, in the order of
// appendEscape.
const shortEscapes = "btnfr\"\\"

// quoted reads a string in RFC 8785 form and reports whether it holds escapes.
func (s *stream) quoted() (escaped, ok bool) {
	if !s.byte('"') {
		return false, false
	}
	from, high := s.at, byte(0)
	for {
		if s.at += plainRun(s.src[s.at:]); s.at == len(s.src) {
			return false, false
		}
		c := s.src[s.at]
		high |= c
		switch {
		case c == '"':
			ok := high < utf8.RuneSelf || utf8.Valid(s.src[from:s.at])
			s.at++
			return escaped, ok
		case c == '\\':
			if s.at+1 >= len(s.src) || strings.IndexByte(shortEscapes, s.src[s.at+1]) < 0 {
				return false, false
			}
			escaped = true
			s.at += 2
		case c < 0x20:
			return false, false
		default:
			s.at++
		}
	}
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
