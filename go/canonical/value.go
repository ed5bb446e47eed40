package canonical

import (
	"fmt"
	"strconv"

	"github.com/writ-runtime/writ/go/reason"
)

// MaxInteger is the largest integer that every JSON reader holds exactly, 2^53-1; the smallest is -MaxInteger.
const MaxInteger = 1<<53 - 1

// Kind is one of the six types of JSON value, numbers being integers.
type Kind uint8

// The kinds. The zero Value is null.
const (
	KindNull Kind = iota
	KindBool
	KindInteger
	KindString
	KindArray
	KindObject
)

// String returns the name that JSON Schema uses for the kind.
func (k Kind) String() string {
	return [...]string{"null", "boolean", "integer", "string", "array", "object"}[min(k, KindObject)]
}

// Value is one parsed JSON value. Values are immutable: what the accessors return must not be written to.
type Value struct {
	str     string
	items   []Value
	members []Member
	num     int64
	offset  int
	kind    Kind
}

// Member is one member of an object, in the order of the document.
type Member struct {
	// Name is the unescaped key.
	Name string
	// KeyOffset is the byte offset of the key in the document.
	KeyOffset int
	// Value is what the key names.
	Value Value
}

// Kind returns the type of the value.
func (v Value) Kind() Kind { return v.kind }

// Offset returns the byte offset in the source at which the value begins.
func (v Value) Offset() int { return v.offset }

// Bool returns the boolean, or false for another kind.
func (v Value) Bool() bool { return v.kind == KindBool && v.num != 0 }

// Int returns the integer, or 0 for another kind.
func (v Value) Int() int64 {
	if v.kind != KindInteger {
		return 0
	}
	return v.num
}

// Str returns the unescaped string, or "" for another kind.
func (v Value) Str() string { return v.str }

// Items returns the elements of an array, or nil for another kind.
func (v Value) Items() []Value { return v.items }

// Members returns the members of an object in the order of the document, or nil for another kind.
func (v Value) Members() []Member { return v.members }

// Get returns the member of that name; ok is false when there is none or v is no object.
func (v Value) Get(name string) (Value, bool) {
	for i := range v.members {
		if v.members[i].Name == name {
			return v.members[i].Value, true
		}
	}
	return Value{}, false
}

// At returns the value with another source offset, for documents that were not read from JSON.
func (v Value) At(offset int) Value {
	v.offset = offset
	return v
}

// NewBool returns a boolean.
func NewBool(b bool) Value {
	v := Value{kind: KindBool}
	if b {
		v.num = 1
	}
	return v
}

// NewInteger returns an integer, or a *ValueError with code canonical.integer_range.
func NewInteger(n int64) (Value, error) {
	if n > MaxInteger || n < -MaxInteger {
		return Value{}, &ValueError{Code: reason.CanonicalIntegerRange, Offset: -1, Detail: fmt.Sprintf("%d lies outside ±(2^53-1)", n)}
	}
	return Value{kind: KindInteger, num: n}, nil
}

// NewString returns a string, or a *ValueError with code canonical.invalid_utf8.
func NewString(s string) (Value, error) {
	if !validText(s) {
		return Value{}, &ValueError{Code: reason.CanonicalInvalidUTF8, Offset: -1, Detail: "the string is not valid UTF-8"}
	}
	return Value{kind: KindString, str: s}, nil
}

// NewArray returns an array that keeps items; the caller must not write to them afterwards.
func NewArray(items []Value) Value { return Value{kind: KindArray, items: items} }

// NewObject returns an object that keeps members, or a *ValueError with code canonical.duplicate_key or
// canonical.invalid_utf8 for a bad name. The caller must not write to them afterwards.
func NewObject(members []Member) (Value, error) {
	for i := range members {
		if !validText(members[i].Name) {
			return Value{}, &ValueError{Code: reason.CanonicalInvalidUTF8, Offset: members[i].KeyOffset, Detail: "a key is not valid UTF-8"}
		}
	}
	if i := duplicate(members); i >= 0 {
		return Value{}, &ValueError{Code: reason.CanonicalDuplicateKey, Offset: members[i].KeyOffset,
			Detail: fmt.Sprintf("key %s appears twice", QuoteShort(members[i].Name))}
	}
	return Value{kind: KindObject, members: members}, nil
}

// duplicate returns the index of the first member whose name appeared before, or -1.
func duplicate(members []Member) int {
	// Few members are the rule, and comparing them all is faster than a map up to about this many.
	const few = 16
	if len(members) <= few {
		for i := 1; i < len(members); i++ {
			for j := range i {
				if members[i].Name == members[j].Name {
					return i
				}
			}
		}
		return -1
	}
	seen := make(map[string]struct{}, len(members))
	for i := range members {
		if _, twice := seen[members[i].Name]; twice {
			return i
		}
		seen[members[i].Name] = struct{}{}
	}
	return -1
}

// Any returns the value as nil, bool, int64, string, []any or map[string]any.
func (v Value) Any() any {
	switch v.kind {
	case KindBool:
		return v.num != 0
	case KindInteger:
		return v.num
	case KindString:
		return v.str
	case KindArray:
		out := make([]any, len(v.items))
		for i := range v.items {
			out[i] = v.items[i].Any()
		}
		return out
	case KindObject:
		out := make(map[string]any, len(v.members))
		for i := range v.members {
			out[v.members[i].Name] = v.members[i].Value.Any()
		}
		return out
	default:
		return nil
	}
}

// AppendCanonical appends the RFC 8785 bytes of the value to dst.
func (v Value) AppendCanonical(dst []byte) []byte {
	switch v.kind {
	case KindBool:
		return strconv.AppendBool(dst, v.num != 0)
	case KindInteger:
		return strconv.AppendInt(dst, v.num, 10)
	case KindString:
		return appendQuoted(dst, v.str)
	case KindArray:
		dst = append(dst, '[')
		for i := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.items[i].AppendCanonical(dst)
		}
		return append(dst, ']')
	case KindObject:
		dst = append(dst, '{')
		for n, m := range sortedMembers(v.members) {
			if n > 0 {
				dst = append(dst, ',')
			}
			dst = appendQuoted(dst, m.Name)
			dst = append(dst, ':')
			dst = m.Value.AppendCanonical(dst)
		}
		return append(dst, '}')
	default:
		return append(dst, "null"...)
	}
}
