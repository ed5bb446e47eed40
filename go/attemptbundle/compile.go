package attemptbundle

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
)

// Compiled is a bundle with its canonical bytes and their digest. It exists only as
// Compile checked it, or as it stands recorded.
type Compiled struct {
	bundle Bundle
	bytes  []byte
	digest canonical.Digest
}

// Compile checks b and fixes its bytes. Same bundle, same bytes, on every machine.
// The error is a *reason.Refusal that names the field.
func Compile(b Bundle) (*Compiled, error) {
	b.Kind = Kind
	if err := check(&b); err != nil {
		return nil, err
	}
	c, err := fix(b)
	if err != nil {
		return nil, err
	}
	if err := checkSecrets(&c.bundle, c.bytes); err != nil {
		return nil, err
	}
	return c, nil
}

// Parse reads a bundle back from its canonical bytes, and refuses any that are not
// the bytes Compile would write: unknown fields, another order, another spelling.
//
// It judges the form alone. Whether a bundle may be activated was judged when it was
// compiled, by the rules of that day; rules that came since must not make a history
// unreadable.
func Parse(raw []byte) (*Compiled, error) {
	var b Bundle
	if err := canonical.Decode(raw, &b); err != nil {
		return nil, fmt.Errorf("attempt bundle: %w", err)
	}
	c, err := fix(b)
	if err != nil {
		return nil, err
	}
	if b.Kind != Kind || string(c.bytes) != string(raw) {
		return nil, notCanonical(b)
	}
	return c, nil
}

// fix gives a bundle its bytes.
func fix(b Bundle) (*Compiled, error) {
	b.normalize()
	raw, err := canonical.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("attempt bundle of %s: %w", b.Attempt.ID, err)
	}
	return &Compiled{bundle: b, bytes: raw, digest: canonical.Sum(raw)}, nil
}

// Bundle returns the bundle. The caller must not change what it points to.
func (c *Compiled) Bundle() *Bundle { return &c.bundle }

// Bytes returns the canonical bytes. The caller must not change them.
func (c *Compiled) Bytes() []byte { return c.bytes }

// Digest names the bundle.
func (c *Compiled) Digest() canonical.Digest { return c.digest }
