package canonical

import (
	"encoding/base64"
	"fmt"
	"reflect"

	"github.com/writ-runtime/writ/go/reason"
)

// Decode reads one strict JSON document within the default limits into *v. The error is a *SyntaxError or a
// *ValueError with the JSON Pointer of what does not fit.
//
// It takes the types Marshal takes. Members are matched by exact name; a member without a field is refused, a
// field without a member keeps its value. null is accepted for pointers, interfaces and Raw only. An interface
// must be the empty one and receives nil, bool, int64, string, []any or map[string]any.
func Decode(b []byte, v any) error {
	if decodeStream(b, v, false) {
		return nil
	}
	value, err := Parse(b, Limits{})
	if err != nil {
		return err
	}
	return value.Decode(v)
}

// DecodeCanonical is Decode for bytes that must already be their own RFC 8785 form, as stored and received
// records must be; otherwise the error has code canonical.not_canonical.
func DecodeCanonical(b []byte, v any) error { return decodeCanonical(b, v, false) }

// DecodeStored is DecodeCanonical for bytes that never change: a Raw of *v may be a part of them, and keeps all of
// them in memory. It saves the copies of who reads many records.
func DecodeStored(b []byte, v any) error { return decodeCanonical(b, v, true) }

func decodeCanonical(b []byte, v any, share bool) error {
	if decodeStream(b, v, share) {
		return nil
	}
	value, err := Parse(b, Limits{})
	if err != nil {
		return err
	}
	if string(value.AppendCanonical(make([]byte, 0, len(b)))) != string(b) {
		return &ValueError{Code: reason.CanonicalNotCanonical, Detail: "the bytes are not in canonical form"}
	}
	return value.Decode(v)
}

// Decode reads the value into *v as the function Decode does. The error is a *ValueError.
func (v Value) Decode(into any) error {
	rv := reflect.ValueOf(into)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return &ValueError{Code: reason.InternalBug, Offset: -1, Detail: fmt.Sprintf("cannot decode into %T; pass a pointer", into)}
	}
	p, err := planFor(rv.Type().Elem())
	if err != nil {
		return err
	}
	if err := p.decode(v, rv.Elem()); err != nil {
		return err
	}
	return nil
}

func (p *plan) decode(v Value, to reflect.Value) *ValueError {
	switch p.op {
	case opPointer:
		if v.kind == KindNull {
			to.SetZero()
			return nil
		}
		to.Set(reflect.New(p.typ.Elem()))
		return p.elem.decode(v, to.Elem())
	case opAny:
		return p.decodeAny(v, to)
	case opRaw:
		to.SetBytes(v.AppendCanonical(nil))
		return nil
	case opBool:
		if v.kind != KindBool {
			return wrongType(v, "a boolean")
		}
		to.SetBool(v.num != 0)
	case opInt:
		if v.kind != KindInteger {
			return wrongType(v, "an integer")
		}
		if to.OverflowInt(v.num) {
			return doesNotFit(v, p.typ)
		}
		to.SetInt(v.num)
	case opUint:
		if v.kind != KindInteger {
			return wrongType(v, "an integer")
		}
		if v.num < 0 || to.OverflowUint(uint64(v.num)) {
			return doesNotFit(v, p.typ)
		}
		to.SetUint(uint64(v.num))
	case opString:
		if v.kind != KindString {
			return wrongType(v, "a string")
		}
		to.SetString(v.str)
	case opText:
		return p.decodeText(v, to)
	case opBytes:
		if v.kind != KindString {
			return wrongType(v, "a string of base64")
		}
		b, err := base64.StdEncoding.Strict().DecodeString(v.str)
		// Re-encoding also refuses the line breaks that the decoder skips.
		if err != nil || base64.StdEncoding.EncodeToString(b) != v.str {
			return &ValueError{Code: reason.CanonicalWrongType, Offset: v.offset, Detail: "the string is not standard base64 with padding"}
		}
		to.SetBytes(b)
	case opStruct:
		return p.decodeStruct(v, to)
	case opMap:
		return p.decodeMap(v, to)
	case opSlice, opArray:
		return p.decodeList(v, to)
	}
	return nil
}

func (p *plan) decodeAny(v Value, to reflect.Value) *ValueError {
	if p.typ.NumMethod() != 0 {
		return unsupported(p.typ, "an interface with methods cannot be decoded into")
	}
	to.SetZero()
	if v.kind != KindNull {
		to.Set(reflect.ValueOf(v.Any()))
	}
	return nil
}

func (p *plan) decodeText(v Value, to reflect.Value) *ValueError {
	if v.kind != KindString {
		return wrongType(v, "a string")
	}
	t, ok := to.Addr().Interface().(textParser)
	if !ok {
		return unsupported(p.typ, "it has CanonicalText but not ParseCanonicalText")
	}
	if err := t.ParseCanonicalText(v.str); err != nil {
		return &ValueError{Code: reason.CanonicalWrongType, Offset: v.offset, Detail: err.Error()}
	}
	return nil
}

func (p *plan) decodeStruct(v Value, to reflect.Value) *ValueError {
	if v.kind != KindObject {
		return wrongType(v, "an object")
	}
	for i := range v.members {
		m := &v.members[i]
		f := p.field(m.Name)
		if f == nil {
			return (&ValueError{Code: reason.CanonicalUnknownField, Offset: m.KeyOffset,
				Detail: fmt.Sprintf("field %s is unknown here", QuoteShort(m.Name))}).under(m.Name)
		}
		if err := f.plan.decode(m.Value, to.FieldByIndex(f.index)); err != nil {
			return err.under(m.Name)
		}
	}
	return nil
}

// field finds a field by exact name; structs have few, so a scan beats a map.
func (p *plan) field(name string) *field {
	for i := range p.fields {
		if p.fields[i].name == name {
			return &p.fields[i]
		}
	}
	return nil
}

func (p *plan) decodeMap(v Value, to reflect.Value) *ValueError {
	if v.kind != KindObject {
		return wrongType(v, "an object")
	}
	m := reflect.MakeMapWithSize(p.typ, len(v.members))
	for i := range v.members {
		elem := reflect.New(p.typ.Elem()).Elem()
		if err := p.elem.decode(v.members[i].Value, elem); err != nil {
			return err.under(v.members[i].Name)
		}
		m.SetMapIndex(reflect.ValueOf(v.members[i].Name).Convert(p.typ.Key()), elem)
	}
	to.Set(m)
	return nil
}

func (p *plan) decodeList(v Value, to reflect.Value) *ValueError {
	if v.kind != KindArray {
		return wrongType(v, "an array")
	}
	if p.op == opArray && len(v.items) != p.typ.Len() {
		return &ValueError{Code: reason.CanonicalWrongType, Offset: v.offset,
			Detail: fmt.Sprintf("the array has %d items; %d are wanted", len(v.items), p.typ.Len())}
	}
	if p.op == opSlice {
		to.Set(reflect.MakeSlice(p.typ, len(v.items), len(v.items)))
	}
	for i := range v.items {
		if err := p.elem.decode(v.items[i], to.Index(i)); err != nil {
			return err.underIndex(i)
		}
	}
	return nil
}

func wrongType(v Value, want string) *ValueError {
	return &ValueError{Code: reason.CanonicalWrongType, Offset: v.offset, Detail: fmt.Sprintf("found %s where %s is wanted", v.kind, want)}
}

func doesNotFit(v Value, t reflect.Type) *ValueError {
	return &ValueError{Code: reason.CanonicalOutOfRange, Offset: v.offset, Detail: fmt.Sprintf("%d does not fit %s", v.num, t.Kind())}
}
