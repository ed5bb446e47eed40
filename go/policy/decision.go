package policy

import (
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
)

// Decision is what the policy layers answered to one input. It is not yet what is allowed: other layers have to
// agree. It may be shared between callers; do not write to its slices.
type Decision struct {
	Policies []LayerDigest
	// Input is the digest of the input's canonical JSON.
	Input   canonical.Digest
	Answers []capability.Answer
}

// Answer returns the answer of one policy layer; ok is false when there is none.
func (d Decision) Answer(l capability.Layer) (a capability.Answer, ok bool) {
	for _, a := range d.Answers {
		if a.Layer == l {
			return a, true
		}
	}
	return capability.Answer{}, false
}
