package operation

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
)

// Classes is the effect-class registry, read from schemas/effect-classes.v1.json. It
// is immutable.
type Classes struct {
	classes map[Kind]EffectClass
	// leave are the kinds whose effect is not contained.
	leave  map[Kind]bool
	digest canonical.Digest
}

// ParseClasses reads the registry and refuses one that leaves out a registered kind,
// or names a foreign kind or class.
func ParseClasses(b []byte) (*Classes, error) {
	var doc struct {
		Kind    string `json:"kind"`
		Summary string `json:"summary"`
		Classes []struct {
			Operation Kind        `json:"operation"`
			Class     EffectClass `json:"effect_class"`
			Contained bool        `json:"contained"`
		} `json:"classes"`
	}
	if err := canonical.Decode(b, &doc); err != nil {
		return nil, fmt.Errorf("effect class registry: %w", err)
	}
	canon, err := canonical.Canonicalize(b)
	if err != nil {
		return nil, fmt.Errorf("effect class registry: %w", err)
	}
	c := &Classes{classes: map[Kind]EffectClass{}, leave: map[Kind]bool{}, digest: canonical.Sum(canon)}
	for _, row := range doc.Classes {
		if !row.Operation.Known() || !row.Class.Valid() {
			return nil, fmt.Errorf("effect class registry: %q has class %q", row.Operation, row.Class)
		}
		c.classes[row.Operation], c.leave[row.Operation] = row.Class, !row.Contained
	}
	for _, kind := range Kinds() {
		if c.classes[kind] == "" {
			return nil, fmt.Errorf("effect class registry: %q has no class", kind)
		}
	}
	return c, nil
}

// Of returns the class of a registered kind.
func (c *Classes) Of(kind Kind) EffectClass { return c.classes[kind] }

// Contained reports whether what a kind does dies with the resource that its intent names.
func (c *Classes) Contained(kind Kind) bool { return !c.leave[kind] }

// Digest is the digest of the registry's canonical JSON.
func (c *Classes) Digest() canonical.Digest { return c.digest }
