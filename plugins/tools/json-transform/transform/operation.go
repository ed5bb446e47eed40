package transform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// DeclarationKind is the kind and version of a Declaration.
const DeclarationKind = "json-transform.v1"

// Declaration says what to do, in order.
type Declaration struct {
	Kind       string      `json:"kind"`
	Operations []Operation `json:"operations"`
}

// Operation is one step. Which fields it uses depends on Op.
type Operation struct {
	// Op is filter, set, rename, drop, pick or sort.
	Op string `json:"op"`
	// Field is what filter looks at, set writes and sort orders by.
	Field string `json:"field,omitempty"`
	// Of a filter, exactly one: keep items whose field equals the value, does not, is an integer within a bound, or
	// exists.
	Equals    json.RawMessage `json:"equals,omitempty"`
	NotEquals json.RawMessage `json:"not_equals,omitempty"`
	AtLeast   json.Number     `json:"at_least,omitempty"`
	AtMost    json.Number     `json:"at_most,omitempty"`
	Exists    *bool           `json:"exists,omitempty"`
	// Value is what set writes.
	Value json.RawMessage `json:"value,omitempty"`
	// From and To are what rename does.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Fields are what drop takes away and pick keeps.
	Fields []string `json:"fields,omitempty"`
	// Descending turns a sort round.
	Descending bool `json:"descending,omitempty"`
}

// ReadDeclaration reads and checks a declaration.
func ReadDeclaration(data []byte) (Declaration, error) {
	if _, err := readValue(data); err != nil { // duplicate keys and fractions, which the decoder below lets through
		return Declaration{}, err
	}
	var d Declaration
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return Declaration{}, err
	}
	if d.Kind != DeclarationKind {
		return Declaration{}, fmt.Errorf("kind is %q, not %s", d.Kind, DeclarationKind)
	}
	for i, o := range d.Operations {
		if err := o.check(); err != nil {
			return Declaration{}, fmt.Errorf("operation %d, %s: %w", i+1, o.Op, err)
		}
	}
	return d, nil
}

func (o Operation) check() error {
	switch o.Op {
	case "filter":
		if o.Field == "" || o.conditions() != 1 {
			return errors.New("needs a field and exactly one condition")
		}
	case "set":
		if o.Field == "" || o.Value == nil {
			return errors.New("needs a field and a value")
		}
	case "rename":
		if o.From == "" || o.To == "" || o.From == o.To {
			return errors.New("needs from and to, which differ")
		}
	case "drop", "pick":
		if len(o.Fields) == 0 {
			return errors.New("needs fields")
		}
	case "sort":
		if o.Field == "" {
			return errors.New("needs a field")
		}
	default:
		return errors.New("is none of filter, set, rename, drop, pick, sort")
	}
	return nil
}

func (o Operation) conditions() int {
	n := 0
	for _, there := range []bool{o.Equals != nil, o.NotEquals != nil, o.AtLeast != "", o.AtMost != "", o.Exists != nil} {
		if there {
			n++
		}
	}
	return n
}

// Change counts what one operation did.
type Change struct {
	Op     string `json:"op"`
	Before int64  `json:"before"` // items before it
	After  int64  `json:"after"`  // items after it
	// Changed is the number of items that it changed or, for a sort, moved.
	Changed int64 `json:"changed"`
}

// Apply applies the operations in order. It changes the items it is given.
func (d Declaration) Apply(items []Item) ([]Item, []Change, error) {
	changes := []Change{}
	for i, o := range d.Operations {
		c := Change{Op: o.Op, Before: int64(len(items))}
		var err error
		if items, c.Changed, err = o.apply(items); err != nil {
			return nil, nil, fmt.Errorf("operation %d, %s: %w", i+1, o.Op, err)
		}
		c.After = int64(len(items))
		changes = append(changes, c)
	}
	return items, changes, nil
}

func (o Operation) apply(items []Item) ([]Item, int64, error) {
	switch o.Op {
	case "filter":
		kept, err := o.filter(items)
		return kept, 0, err
	case "sort":
		return items, o.sort(items), nil
	}
	var changed int64
	for i, item := range items {
		did, err := o.edit(item)
		if err != nil {
			return nil, 0, fmt.Errorf("item %d: %w", i, err)
		}
		if did {
			changed++
		}
	}
	return items, changed, nil
}

// edit changes one item and reports whether that made a difference.
func (o Operation) edit(item Item) (bool, error) {
	switch o.Op {
	case "set":
		v, err := readValue(o.Value)
		if err != nil {
			return false, err
		}
		old, there := item[o.Field]
		item[o.Field] = v
		return !there || compare(old, v) != 0, nil
	case "rename":
		v, there := item[o.From]
		if !there {
			return false, nil
		}
		if _, taken := item[o.To]; taken {
			return false, fmt.Errorf("has %q already", o.To)
		}
		delete(item, o.From)
		item[o.To] = v
		return true, nil
	}
	before := len(item)
	for key := range item {
		if slices.Contains(o.Fields, key) == (o.Op == "drop") {
			delete(item, key)
		}
	}
	return len(item) != before, nil
}
