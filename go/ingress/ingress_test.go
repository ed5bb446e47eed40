package ingress_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
)

func TestGate(t *testing.T) {
	gate := ingress.NewGate(ingress.Person(1000))
	delivery := ingress.Delivery{ID: fixture.Delivery(1), Channel: "cli", Verb: ingress.Run, Content: []byte("order")}
	accepted, err := gate.Accept("uid:1000", delivery)
	if err != nil {
		t.Fatal(err)
	}
	if accepted.Blob.Digest != accepted.Digest || canonical.Sum(accepted.Blob.Bytes) != accepted.Digest {
		t.Error("the blob does not carry the receipt")
	}
	var r ingress.Receipt
	if err := canonical.DecodeCanonical(accepted.Blob.Bytes, &r); err != nil || r != accepted.Receipt {
		t.Errorf("%+v, %v", r, err)
	}
	if r.Principal != "uid:1000" || r.Content != canonical.Sum([]byte("order")) {
		t.Errorf("the receipt is %+v", r)
	}
	for name, tc := range map[string]struct {
		code      reason.Code
		principal string
		verb      ingress.Verb
	}{
		"another user": {reason.IngressPrincipalUnknown, "uid:0", ingress.Run},
		"nobody":       {reason.IngressPrincipalUnknown, "", ingress.Run},
		"another verb": {reason.UsageInvalid, "uid:1000", "merge"},
	} {
		d := delivery
		d.Verb = tc.verb
		if _, err := gate.Accept(tc.principal, d); !reason.Is(err, tc.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ingress.NewGate().Accept("uid:0", delivery); !reason.Is(err, reason.IngressPrincipalUnknown) {
		t.Errorf("a gate for nobody: %v", err)
	}
}
