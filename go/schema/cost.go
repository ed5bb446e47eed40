package schema

import (
	"math"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
)

// costs bounds how often a schema looks at one value of a document. A validator takes every branch of anyOf and
// every $ref again each time, so a schema of a few hundred bytes can ask for 2^60 visits; jsonschema has no way to
// stop it, and this bound is taken before it starts.
//
// The bound of a schema at a depth is what it visits at this value, its own bounds through keywords that stay at
// the value (allOf, anyOf, $ref, …), and the bounds of its children one level deeper. Children that never meet
// (different names under properties) count by their maximum, others by their sum.
type costs struct {
	schema canonical.Value
	// known holds bounds by schema (its offset in the source) and remaining depth.
	known map[costKey]int64
	open  map[costKey]bool
}

// costGrain is how many bytes of text, or members of a list, count as one step.
const costGrain = 16

type costKey struct {
	offset, depth int
}

func newCosts(root canonical.Value) *costs {
	return &costs{schema: root, known: map[costKey]int64{}, open: map[costKey]bool{}}
}

// root returns the bound for a document whose values lie at most depth levels below its top; math.MaxInt64 is
// without bound.
func (c *costs) root(depth int) int64 { return c.of(c.schema, depth) }

func (c *costs) of(s canonical.Value, depth int) int64 {
	if s.Kind() != canonical.KindObject {
		return 1
	}
	key := costKey{s.Offset(), depth}
	if n, ok := c.known[key]; ok {
		return n
	}
	if c.open[key] {
		return math.MaxInt64 // it refers to itself without going deeper
	}
	c.open[key] = true
	total := int64(1)
	apart := int64(0) // children of which a value meets at most one
	for _, m := range s.Members() {
		switch m.Name {
		case "$ref":
			if target, ok := descend(c.schema, strings.TrimPrefix(m.Value.Str(), "#")); ok {
				total = plus(total, c.of(target, depth))
			}
		case "allOf", "anyOf", "oneOf":
			for _, sub := range m.Value.Items() {
				total = plus(total, c.of(sub, depth))
			}
		case "enum", "required":
			total = plus(total, int64(len(m.Value.Items())/costGrain))
		case "pattern":
			total = plus(total, int64(len(m.Value.Str())/costGrain))
		case "not", "if", "then", "else":
			total = plus(total, c.of(m.Value, depth))
		case "dependentSchemas":
			for _, sub := range m.Value.Members() {
				total = plus(total, c.of(sub.Value, depth))
			}
		}
		if depth == 0 {
			continue
		}
		switch m.Name {
		case "properties":
			for _, sub := range m.Value.Members() {
				apart = max(apart, c.of(sub.Value, depth-1))
			}
		case "prefixItems":
			for _, sub := range m.Value.Items() {
				apart = max(apart, c.of(sub, depth-1))
			}
		case "items", "additionalProperties":
			apart = max(apart, c.of(m.Value, depth-1))
		case "patternProperties":
			for _, sub := range m.Value.Members() {
				total = plus(total, c.of(sub.Value, depth-1))
			}
		case "contains", "unevaluatedItems", "unevaluatedProperties":
			total = plus(total, c.of(m.Value, depth-1))
		case "propertyNames":
			total = plus(total, c.of(m.Value, 0))
		}
	}
	delete(c.open, key)
	total = plus(total, apart)
	c.known[key] = total
	return total
}

// plus adds without overflow.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
