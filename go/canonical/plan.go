package canonical

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/writ-runtime/writ/go/reason"
)

// Texter is a type whose canonical form is a string. To be decoded too, its pointer must have a method
// ParseCanonicalText(string) error.
type Texter interface{ CanonicalText() string }

type textParser interface{ ParseCanonicalText(string) error }

// Raw is a value that is already in RFC 8785 bytes; Marshal inserts it as it is. Make one with NewRaw or by
// decoding into it, both of which verify. Converting unverified bytes makes Marshal write what was given.
type Raw []byte

// NewRaw returns the canonical form of one strict JSON document. The error is a *SyntaxError.
func NewRaw(b []byte) (Raw, error) { return Canonicalize(b) }

// MarshalJSON lets encoding/json, which prints reports for people, insert it too; an empty one is null there.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

type op uint8

const (
	opBool op = iota
	opInt
	opUint
	opString
	opBytes
	opRaw
	opText
	opPointer
	opAny
	opSlice
	opArray
	opMap
	opStruct
)

// plan says how values of one type are written and read. It is immutable once published by planFor.
type plan struct {
	op     op
	typ    reflect.Type
	elem   *plan
	fields []field
	// size is the length of the last output of this type, a guess for the next buffer.
	size atomic.Int64
}

// field is one member of a struct; fields of a plan are sorted by name as RFC 8785 wants them.
type field struct {
	name      string
	key       string // `"name":`, escaped
	index     []int
	omitEmpty bool
	omitZero  bool
	plan      *plan
}

// planner holds plans by type. Its one instance is the only state of this package: a cache that grows by the
// types of the program and whose content depends on nothing but them.
type planner struct{ plans sync.Map }

//writ:cache a plan is a function of its type alone
var plans planner

// planFor returns the plan of a type, or a *ValueError with code canonical.unsupported_type.
func planFor(t reflect.Type) (*plan, *ValueError) {
	if p, ok := plans.plans.Load(t); ok {
		return p.(*plan), nil
	}
	b := planning{open: map[reflect.Type]*plan{}}
	if _, err := b.plan(t); err != nil {
		return nil, err
	}
	// Published only when the whole closure is sound: a plan never refers to one that failed.
	for typ, p := range b.open {
		plans.plans.LoadOrStore(typ, p)
	}
	p, _ := plans.plans.Load(t)
	return p.(*plan), nil
}

// planning is one traversal of a type; open breaks the circle of a type that contains itself.
type planning struct{ open map[reflect.Type]*plan }

func (b planning) plan(t reflect.Type) (*plan, *ValueError) {
	if p, ok := plans.plans.Load(t); ok {
		return p.(*plan), nil
	}
	if p, ok := b.open[t]; ok {
		return p, nil
	}
	p := &plan{typ: t}
	b.open[t] = p
	return p, b.fill(p, t)
}

func (b planning) fill(p *plan, t reflect.Type) *ValueError {
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		if t.Implements(reflect.TypeFor[Texter]()) {
			p.op = opText
			return nil
		}
		if hasMethod(t, "CanonicalText") {
			return unsupported(t, "its CanonicalText needs a value receiver, or values that are no pointers would not use it")
		}
		if t == reflect.TypeFor[Raw]() {
			p.op = opRaw
			return nil
		}
		for _, m := range []string{"MarshalJSON", "MarshalText"} {
			if hasMethod(t, m) {
				return unsupported(t, "it has "+m+", which canonical would not call; give it CanonicalText")
			}
		}
	}
	var err *ValueError
	switch t.Kind() {
	case reflect.Bool:
		p.op = opBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.op = opInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.op = opUint
	case reflect.String:
		p.op = opString
	case reflect.Interface:
		p.op = opAny
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Pointer {
			return unsupported(t, "it points to a pointer")
		}
		p.op = opPointer
		p.elem, err = b.plan(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			p.op = opBytes
			return nil
		}
		p.op = opSlice
		p.elem, err = b.plan(t.Elem())
	case reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return unsupported(t, "arrays of bytes have no agreed form; use []byte or a Digest")
		}
		p.op = opArray
		p.elem, err = b.plan(t.Elem())
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return unsupported(t, "its keys are not strings")
		}
		if t.Key().Implements(reflect.TypeFor[Texter]()) || hasMethod(t.Key(), "MarshalText") {
			return unsupported(t, "its keys write themselves; only plain string kinds are keys")
		}
		p.op = opMap
		p.elem, err = b.plan(t.Elem())
	case reflect.Struct:
		p.op = opStruct
		return b.fillStruct(p, t)
	case reflect.Float32, reflect.Float64:
		return unsupported(t, "floats have no canonical form here; use an integer and a scale")
	default:
		return unsupported(t, "values of its kind have no JSON form")
	}
	return err
}

func (b planning) fillStruct(p *plan, t reflect.Type) *ValueError {
	if err := b.collect(p, t, nil); err != nil {
		return err
	}
	if t.NumField() > 0 && len(p.fields) == 0 {
		return unsupported(t, "none of its fields has a json name, so every value would look the same")
	}
	slices.SortFunc(p.fields, func(x, y field) int { return compareUTF16(x.name, y.name) })
	for i := 1; i < len(p.fields); i++ {
		if p.fields[i].name == p.fields[i-1].name {
			return unsupported(t, fmt.Sprintf("two fields are named %q", p.fields[i].name))
		}
	}
	return nil
}

// collect adds the fields of t at the given index path; embedded structs without a name lend theirs.
func (b planning) collect(p *plan, t reflect.Type, at []int) *ValueError {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("json")
		index := append(slices.Clone(at), i)
		if tag == "-" || (!f.IsExported() && !f.Anonymous) {
			continue
		}
		if f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct {
			if err := b.collect(p, f.Type, index); err != nil {
				return err
			}
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if !f.IsExported() || name == "" {
			// A digest must not change because somebody renamed a Go field.
			return unsupported(t, fmt.Sprintf("field %s needs a json name, or json:\"-\"", f.Name))
		}
		if !validText(name) {
			return unsupported(t, fmt.Sprintf("the name of field %s is not valid UTF-8", f.Name))
		}
		fld := field{name: name, key: string(appendQuoted(nil, name)) + ":", index: index}
		for _, o := range strings.FieldsFunc(options, func(r rune) bool { return r == ',' }) {
			switch o {
			case "omitempty":
				fld.omitEmpty = true
			case "omitzero":
				fld.omitZero = true
			default:
				return unsupported(t, fmt.Sprintf("field %s has the unknown json option %q", f.Name, o))
			}
		}
		var err *ValueError
		if fld.plan, err = b.plan(f.Type); err != nil {
			return err.under(name)
		}
		p.fields = append(p.fields, fld)
	}
	return nil
}

func hasMethod(t reflect.Type, name string) bool {
	if _, ok := t.MethodByName(name); ok {
		return true
	}
	_, ok := reflect.PointerTo(t).MethodByName(name)
	return ok
}

func unsupported(t reflect.Type, why string) *ValueError {
	return &ValueError{Code: reason.CanonicalUnsupportedType, Offset: -1, Detail: fmt.Sprintf("type %s: %s", t, why)}
}
