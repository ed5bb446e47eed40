package operation_test

import (
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// No part of a key can hold what parts are joined by, so that two lists of parts never
// make one key (O1). Random parts meet too seldom to show that.
func TestPartsHoldNoSeparator(t *testing.T) {
	good := []string{"writ", "att_1", "adapter", "start", "main"}
	for place := range good {
		for _, bad := range []string{"", "/", "a/b", "/a", "a/", "a b", "a\n", "é", "a\x00", strings.Repeat("x", 129)} {
			p := append([]string(nil), good...)
			p[place] = bad
			if k, err := operation.NewKey(p[0], p[1], p[2], operation.Kind(p[3]), p[4]); !reason.Is(err, reason.OperationKeyMalformed) {
				t.Errorf("part %d is %q: %q, %v", place+1, bad, k, err)
			}
		}
		other := append([]string(nil), good...)
		other[place] = "other"
		a, erra := operation.NewKey(good[0], good[1], good[2], operation.Kind(good[3]), good[4])
		b, errb := operation.NewKey(other[0], other[1], other[2], operation.Kind(other[3]), other[4])
		if erra != nil || errb != nil || a == b {
			t.Errorf("part %d makes no difference: %q, %q, %v, %v", place+1, a, b, erra, errb)
		}
	}
}
