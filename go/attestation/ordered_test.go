package attestation_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/attestation"
)

func TestWhatIsExpectedFollowsFromWhatWasOrdered(t *testing.T) {
	table := attestation.Table{Kind: attestation.TableKind, Providers: []attestation.ProviderTable{{
		Provider: "p", Facts: []attestation.Row{
			{Name: "a.pages", Measured: true, Kind: attestation.KindInteger, Rule: attestation.RuleEqual, From: "memory", Unit: 10, How: "x"},
			{Name: "a.seconds", Measured: true, Kind: attestation.KindInteger, Rule: attestation.RuleAtMost, From: "millis", Unit: 1000, Round: attestation.RoundUp, How: "x"},
			{Name: "a.name", Measured: true, Kind: attestation.KindText, Rule: attestation.RuleEqual, From: "name", How: "x"},
			{Name: "a.own", Measured: true, Kind: attestation.KindFlag, Rule: attestation.RuleEqual, How: "x"},
			{Name: "a.wall", From: "wall", Why: "x"},
		},
	}}}
	for _, test := range []struct {
		name     string
		change   func(attestation.Ordered)
		expected []attestation.Fact
		want     []string
	}{
		{"as ordered", nil, []attestation.Fact{attestation.Integer("a.pages", 2), attestation.Integer("a.seconds", 2), attestation.Text("a.name", "n"), attestation.Flag("a.own", true)}, nil},
		{"more", nil, []attestation.Fact{attestation.Integer("a.pages", 3), attestation.Integer("a.seconds", 2), attestation.Text("a.name", "n")}, []string{"a.pages"}},
		{"less than a unit more", nil, []attestation.Fact{attestation.Integer("a.pages", 2), attestation.Integer("a.seconds", 1), attestation.Text("a.name", "n")}, []string{"a.seconds"}},
		{"another name", nil, []attestation.Fact{attestation.Integer("a.pages", 2), attestation.Integer("a.seconds", 2), attestation.Text("a.name", "m")}, []string{"a.name"}},
		{"nothing", nil, nil, []string{"a.pages", "a.seconds", "a.name"}},
		{"twice", nil, []attestation.Fact{attestation.Integer("a.pages", 2), attestation.Integer("a.pages", 2), attestation.Integer("a.seconds", 2), attestation.Text("a.name", "n")}, []string{"a.pages"}},
		{"an order that nothing accounts for", func(o attestation.Ordered) { o.OrderInteger("disk", 1) },
			[]attestation.Fact{attestation.Integer("a.pages", 2), attestation.Integer("a.seconds", 2), attestation.Text("a.name", "n")}, []string{"disk"}},
		{"no order", func(o attestation.Ordered) { delete(o, "memory") },
			[]attestation.Fact{attestation.Integer("a.pages", 2), attestation.Integer("a.seconds", 2), attestation.Text("a.name", "n")}, []string{"a.pages"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := attestation.Ordered{}
			o.OrderInteger("memory", 29)
			o.OrderInteger("millis", 1001)
			o.OrderText("name", "n")
			o.OrderInteger("wall", 5)
			if test.change != nil {
				test.change(o)
			}
			d := table.Follow(o, attestation.NewExpectation("p", test.expected))
			if len(d) != len(test.want) {
				t.Fatalf("%+v, want %v", d, test.want)
			}
			for i, name := range test.want {
				if d[i].Fact != name || d[i].Problem != attestation.ProblemOrder {
					t.Errorf("%+v, want %s", d[i], name)
				}
			}
		})
	}
}
