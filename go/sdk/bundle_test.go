package sdk_test

import (
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/sdk"
	"github.com/writ-runtime/writ/testing/fixture"
)

func TestParseBundle(t *testing.T) {
	k := fixture.Kernel(t)
	c := fixture.Bundle(t, k, fixture.Reserved(t, k), nil)
	want := c.Bundle()
	b, err := sdk.ParseBundle(c.Bytes(), c.Digest())
	if err != nil {
		t.Fatal(err)
	}
	if b.Attempt != want.Attempt.ID || b.Namespace != want.Operations.Namespace || b.Tool != want.Execution.Tool || b.Seed != want.Execution.Seed ||
		b.Prompt != want.Prompt || b.Result != want.Outputs.Result || b.Schema != want.Outputs.Schema || b.Adapter.Digest != want.Pins.Adapter.Digest ||
		b.Isolation != want.Environment.Isolation || b.Provider.Name != want.Environment.Provider.Name || b.Model || b.Harness {
		t.Errorf("read %+v", b)
	}
	if l := b.Launch(); l.Purpose != "main" || l.Parameters.Tool != want.Pins.Tools[0].Digest || len(l.Parameters.Arguments) != len(want.Execution.Arguments) {
		t.Errorf("orders %+v", l)
	}
}

func TestParseBundleRefuses(t *testing.T) {
	k := fixture.Kernel(t)
	c := fixture.Bundle(t, k, fixture.Reserved(t, k), nil)
	if _, err := sdk.ParseBundle(append([]byte(" "), c.Bytes()...), c.Digest()); !reason.Is(err, reason.BundleDigestMismatch) {
		t.Errorf("other bytes: %v", err)
	}
	for name, tt := range map[string]struct {
		old, new string
		code     reason.Code
	}{
		"another version": {"writ.attempt_bundle.v1", "writ.attempt_bundle.v2", reason.AdapterUnsupported},
		"a missing part":  {`"namespace"`, `"namespaces"`, reason.BundleUnknownField},
	} {
		raw := []byte(strings.Replace(string(c.Bytes()), tt.old, tt.new, 1))
		if _, err := sdk.ParseBundle(raw, canonical.Sum(raw)); !reason.Is(err, tt.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sdk.ParseBundle([]byte("{"), canonical.Sum([]byte("{"))); err == nil {
		t.Error("half a document is read")
	}
}
