package admission_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/reason"
)

// A layer that did not answer in time has decided nothing, whatever others denied; what was
// denied by all that answered is decided.
func TestWhatIsNoDecision(t *testing.T) {
	denied := func(codes ...reason.Code) (r policy.Record) {
		for _, code := range codes {
			r.Denials = append(r.Denials, capability.Denial{Action: "tool.run", Code: code})
		}
		return r
	}
	for _, r := range []policy.Record{denied(), denied(reason.PolicyDenied), denied(reason.PolicyLayerFailed)} {
		if err := admission.Undecided(r); err != nil {
			t.Errorf("%+v: %v", r.Denials, err)
		}
	}
	for _, r := range []policy.Record{denied(reason.PolicyTimeout), denied(reason.PolicyDenied, reason.PolicyTimeout)} {
		if err := admission.Undecided(r); !reason.Is(err, reason.PolicyTimeout) {
			t.Errorf("%+v: %v", r.Denials, err)
		}
	}
}
