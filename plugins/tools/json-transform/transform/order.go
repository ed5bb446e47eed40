package transform

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

func (o Operation) filter(items []Item) ([]Item, error) {
	want, err := readIf(o.Equals, o.NotEquals)
	if err != nil {
		return nil, err
	}
	kept := []Item{}
	for _, item := range items {
		v, there := item[o.Field]
		number, isNumber := v.(json.Number)
		var keep bool
		switch {
		case o.Equals != nil:
			keep = there && compare(v, want) == 0
		case o.NotEquals != nil:
			keep = !there || compare(v, want) != 0
		case o.AtLeast != "":
			keep = isNumber && compare(number, o.AtLeast) >= 0
		case o.AtMost != "":
			keep = isNumber && compare(number, o.AtMost) <= 0
		default:
			keep = there == *o.Exists
		}
		if keep {
			kept = append(kept, item)
		}
	}
	return kept, nil
}

func readIf(raws ...json.RawMessage) (any, error) {
	for _, raw := range raws {
		if raw != nil {
			return readValue(raw)
		}
	}
	return nil, nil
}

// sort orders items by a field and returns how many of them moved. Items without the field come last, whichever
// way; equal ones keep their order.
func (o Operation) sort(items []Item) int64 {
	type placed struct {
		item Item
		at   int
	}
	list := make([]placed, len(items))
	for i, item := range items {
		list[i] = placed{item, i}
	}
	slices.SortStableFunc(list, func(x, y placed) int {
		a, hasA := x.item[o.Field]
		b, hasB := y.item[o.Field]
		switch {
		case !hasA && !hasB:
			return 0
		case !hasA:
			return 1
		case !hasB:
			return -1
		case o.Descending:
			return compare(b, a)
		default:
			return compare(a, b)
		}
	})
	var moved int64
	for i, p := range list {
		items[i] = p.item
		if p.at != i {
			moved++
		}
	}
	return moved
}

// compare orders any two values: null, then false, true, integers, texts (by bytes), lists and objects (both by
// their JSON, in which keys are sorted).
func compare(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch a := a.(type) {
	case json.Number:
		n, _ := b.(json.Number)
		return compareIntegers(a.String(), n.String())
	case string:
		s, _ := b.(string)
		return strings.Compare(a, s)
	case nil, bool:
		return 0
	default:
		return strings.Compare(text(a), text(b))
	}
}

func rank(v any) int {
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 2
		}
		return 1
	case json.Number:
		return 3
	case string:
		return 4
	case []any:
		return 5
	default:
		return 6
	}
}

// compareIntegers compares decimal integers of any length exactly. JSON has no leading zeros.
func compareIntegers(a, b string) int {
	a, negA := strings.CutPrefix(a, "-")
	b, negB := strings.CutPrefix(b, "-")
	switch {
	case negA && !negB:
		return -1
	case !negA && negB:
		return 1
	}
	c := cmp.Compare(len(a), len(b))
	if c == 0 {
		c = strings.Compare(a, b)
	}
	if negA {
		return -c
	}
	return c
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "" // what was read from JSON can be written as JSON
	}
	return string(b)
}
