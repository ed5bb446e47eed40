package attestation_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/reason"
)

func TestAcceptedComesOnlyFromAComparison(t *testing.T) {
	if _, ok := (attestation.Accepted{}).Report(); ok {
		t.Error("the zero value accepts a report")
	}
	table := attestation.Table{Kind: attestation.TableKind, Providers: []attestation.ProviderTable{{
		Provider: "p", Facts: []attestation.Row{{Name: "f", Measured: true, Kind: attestation.KindFlag, Rule: attestation.RuleEqual, How: "x"}},
	}}}
	expected := attestation.NewExpectation("p", []attestation.Fact{attestation.Flag("f", true)})
	a, err := table.Accept(nil, expected, attestation.NewReport("p", []attestation.Fact{attestation.Flag("f", false)}), "here")
	if _, ok := a.Report(); ok || !reason.Is(err, reason.EnvironmentMismatch) {
		t.Errorf("a report that differs: %v", err)
	}
	good := attestation.NewReport("p", []attestation.Fact{attestation.Flag("f", true)})
	if a, err = table.Accept(nil, expected, good, "here"); err != nil {
		t.Fatal(err)
	}
	if r, ok := a.Report(); !ok || len(r.Facts) != 1 {
		t.Errorf("the accepted report is %+v", r)
	}
}
