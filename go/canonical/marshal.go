package canonical

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/writ-runtime/writ/go/reason"
)

// maxMarshalDepth is the deepest nesting Marshal writes: what Parse reads back by default. It also ends a value
// that contains itself.
const maxMarshalDepth = 64

// Marshal returns the RFC 8785 bytes of a Go value. The error is a *ValueError.
//
// Struct fields need a json tag with a name; the options omitempty and omitzero mean what they mean to
// encoding/json, and untagged embedded structs lend their fields. Integers beyond ±(2^53-1), floats, and strings
// that are not valid UTF-8 are refused. []byte is a string in standard base64 with padding. A nil slice is [], a
// nil map {}, a nil pointer or interface null; a nil []byte is "". A type with CanonicalText is that string, a
// Raw is inserted as it is. Types with their own MarshalJSON or MarshalText are refused rather than overruled.
func Marshal(v any) ([]byte, error) {
	rv := reflect.ValueOf(v)
	if !rv.IsValid() {
		return []byte("null"), nil
	}
	p, verr := planFor(rv.Type())
	if verr != nil {
		return nil, verr
	}
	size := p.size.Load()
	out, verr := p.append(make([]byte, 0, size), rv, 0)
	if verr != nil {
		return nil, verr
	}
	if n := int64(len(out)); n != size {
		p.size.Store(n)
	}
	// A large value of the same type before this one must not leave its buffer behind a small one.
	if cap(out) > 2*len(out)+1024 {
		return bytes.Clone(out), nil
	}
	return out, nil
}

// Append appends the RFC 8785 bytes of v to dst, as Marshal returns them. On an error dst comes back unchanged.
func Append(dst []byte, v any) ([]byte, error) {
	rv := reflect.ValueOf(v)
	if !rv.IsValid() {
		return append(dst, "null"...), nil
	}
	p, verr := planFor(rv.Type())
	if verr != nil {
		return dst, verr
	}
	out, verr := p.append(dst, rv, 0)
	if verr != nil {
		return dst, verr
	}
	return out, nil
}

// DigestOf returns the digest of Marshal(v).
func DigestOf(v any) (Digest, error) {
	b, err := Marshal(v)
	if err != nil {
		return "", err
	}
	return digestOf(sha256.Sum256(b)), nil
}

func (p *plan) append(dst []byte, v reflect.Value, depth int) ([]byte, *ValueError) {
	switch p.op {
	case opBool:
		return strconv.AppendBool(dst, v.Bool()), nil
	case opInt:
		n := v.Int()
		if n > MaxInteger || n < -MaxInteger {
			return dst, outOfRange(strconv.FormatInt(n, 10))
		}
		return strconv.AppendInt(dst, n, 10), nil
	case opUint:
		n := v.Uint()
		if n > MaxInteger {
			return dst, outOfRange(strconv.FormatUint(n, 10))
		}
		return strconv.AppendUint(dst, n, 10), nil
	case opString:
		return appendText(dst, v.String())
	case opText:
		t, ok := v.Interface().(Texter)
		if !ok {
			return dst, unsupported(p.typ, "it lost its CanonicalText")
		}
		return appendText(dst, t.CanonicalText())
	case opBytes:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v.Bytes())
		return append(dst, '"'), nil
	case opRaw:
		if v.Len() == 0 {
			return dst, &ValueError{Code: reason.CanonicalNotCanonical, Offset: -1, Detail: "a Raw value is empty"}
		}
		return append(dst, v.Bytes()...), nil
	case opPointer:
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return p.elem.append(dst, v.Elem(), depth)
	case opAny:
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		inner, err := planFor(v.Elem().Type())
		if err != nil {
			return dst, err
		}
		return inner.append(dst, v.Elem(), depth)
	}
	if depth++; depth > maxMarshalDepth {
		return dst, &ValueError{Code: reason.CanonicalTooDeep, Offset: -1,
			Detail: fmt.Sprintf("more than %d arrays and objects lie within each other", maxMarshalDepth)}
	}
	switch p.op {
	case opStruct:
		return p.appendStruct(dst, v, depth)
	case opMap:
		return p.appendMap(dst, v, depth)
	default:
		return p.appendList(dst, v, depth)
	}
}

func (p *plan) appendStruct(dst []byte, v reflect.Value, depth int) ([]byte, *ValueError) {
	dst = append(dst, '{')
	first := true
	for i := range p.fields {
		f := &p.fields[i]
		var fv reflect.Value
		if len(f.index) == 1 {
			fv = v.Field(f.index[0])
		} else {
			fv = v.FieldByIndex(f.index)
		}
		if (f.omitEmpty && isEmpty(fv)) || (f.omitZero && fv.IsZero()) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, f.key...)
		var err *ValueError
		if dst, err = f.plan.append(dst, fv, depth); err != nil {
			return dst, err.under(f.name)
		}
	}
	return append(dst, '}'), nil
}

func (p *plan) appendList(dst []byte, v reflect.Value, depth int) ([]byte, *ValueError) {
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err *ValueError
		if dst, err = p.elem.append(dst, v.Index(i), depth); err != nil {
			return dst, err.underIndex(i)
		}
	}
	return append(dst, ']'), nil
}

func (p *plan) appendMap(dst []byte, v reflect.Value, depth int) ([]byte, *ValueError) {
	names := make([]string, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		names = append(names, it.Key().String())
	}
	slices.SortFunc(names, compareUTF16)
	key := reflect.New(p.typ.Key()).Elem()
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err *ValueError
		if dst, err = appendText(dst, name); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		key.SetString(name)
		if dst, err = p.elem.append(dst, v.MapIndex(key), depth); err != nil {
			return dst, err.under(name)
		}
	}
	return append(dst, '}'), nil
}

// isEmpty is encoding/json's notion of empty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

func appendText(dst []byte, s string) ([]byte, *ValueError) {
	if !validText(s) {
		return dst, &ValueError{Code: reason.CanonicalInvalidUTF8, Offset: -1, Detail: "the string is not valid UTF-8"}
	}
	return appendQuoted(dst, s), nil
}

func outOfRange(n string) *ValueError {
	return &ValueError{Code: reason.CanonicalIntegerRange, Offset: -1, Detail: n + " lies outside ±(2^53-1)"}
}
