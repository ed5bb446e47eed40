package protocol_test

import (
	"slices"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
)

// A request holds its semantic inputs and nothing else: a field for a clock, a trace or a
// fence would make two digests of one request (O2).
func TestARequestHoldsNothingElse(t *testing.T) {
	r, err := protocol.NewRequest(operation.Start, canonical.Sum([]byte("bundle")), "att_1", "adapter", "main", protocol.StartParameters{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := canonical.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	v, err := canonical.Parse(raw, canonical.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range v.Members() {
		names = append(names, m.Name)
	}
	if want := []string{"actor", "attempt", "bundle", "kind", "operation", "parameters", "purpose"}; !slices.Equal(names, want) {
		t.Errorf("a request holds %v, want %v", names, want)
	}
	// How the host files an operation is no part of what is asked for.
	one, err := r.Intent("writ", "", operation.Reconcilable, "resource")
	if err != nil {
		t.Fatal(err)
	}
	other, err := r.Intent("elsewhere", "a/b/c/d/e", operation.ProviderIdempotent, "another")
	if err != nil {
		t.Fatal(err)
	}
	if one.Digest != canonical.Sum(raw) || other.Digest != one.Digest {
		t.Errorf("digests %s and %s of the request %s", one.Digest, other.Digest, canonical.Sum(raw))
	}
}
