package attestation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/schemas"
)

func table(t testing.TB) attestation.Table {
	t.Helper()
	data, err := schemas.FS.ReadFile("attestation-facts.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	tab, err := attestation.ParseTable(data)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// sample returns a value for a row.
func sample(r attestation.Row) attestation.Fact {
	switch r.Kind {
	case attestation.KindInteger:
		return attestation.Integer(r.Name, 5)
	case attestation.KindFlag:
		return attestation.Flag(r.Name, true)
	case attestation.KindList:
		return attestation.List(r.Name, "a", "b")
	default:
		return attestation.Text(r.Name, "text")
	}
}

// other returns a value that the row's rule refuses where sample's is expected.
func other(r attestation.Row) attestation.Fact {
	f := sample(r)
	switch {
	case r.Rule == attestation.RuleAtMost:
		f.Integer++
	case r.Kind == attestation.KindInteger:
		f.Integer--
	case r.Kind == attestation.KindFlag:
		f.Flag = false
	case r.Kind == attestation.KindList:
		f.List = []string{"b", "a"}
	default:
		f.Text = "another text"
	}
	return f
}

// complete returns an expectation and a report of a provider that agree in every fact.
func complete(p attestation.ProviderTable) (e, r []attestation.Fact) {
	for _, row := range p.Facts {
		if !row.Measured {
			continue
		}
		r = append(r, sample(row))
		if row.Rule != attestation.RuleRecorded {
			e = append(e, sample(row))
		}
	}
	return e, r
}

func TestEveryFactFailsClosed(t *testing.T) {
	tab := table(t)
	for _, p := range tab.Providers {
		expected, reported := complete(p)
		compare := func(e, r []attestation.Fact) []attestation.Difference {
			return tab.Compare(attestation.NewExpectation(p.Provider, e), attestation.NewReport(p.Provider, r))
		}
		if d := compare(expected, reported); len(d) != 0 {
			t.Fatalf("%s: equal facts differ: %+v", p.Provider, d)
		}
		without := func(facts []attestation.Fact, name string) []attestation.Fact {
			return slices.DeleteFunc(slices.Clone(facts), func(f attestation.Fact) bool { return f.Name == name })
		}
		for _, row := range p.Facts {
			one := func(what string, e, r []attestation.Fact, want attestation.Problem) {
				t.Helper()
				d := compare(e, r)
				if len(d) != 1 || d[0].Fact != row.Name || d[0].Problem != want {
					t.Errorf("%s, %s %s: %+v, want %s", p.Provider, row.Name, what, d, want)
				}
			}
			if !row.Measured {
				one("reported", expected, append(slices.Clone(reported), attestation.Text(row.Name, "x")), attestation.ProblemForeign)
				one("expected", append(slices.Clone(expected), attestation.Text(row.Name, "x")), reported, attestation.ProblemUnknown)
				continue
			}
			lacking := without(reported, row.Name)
			one("missing", expected, lacking, attestation.ProblemMissing)
			one("twice", expected, append(slices.Clone(reported), sample(row)), attestation.ProblemTwice)
			one("of another kind", expected, append(slices.Clone(lacking), attestation.Fact{Name: row.Name, Kind: "number"}), attestation.ProblemKind)
			stray := sample(row)
			stray.Text += "x"
			stray.Integer++
			one("with two values", expected, append(slices.Clone(lacking), stray), attestation.ProblemKind)
			if row.Rule == attestation.RuleRecorded {
				continue
			}
			one("changed", expected, append(slices.Clone(lacking), other(row)), attestation.ProblemValue)
			one("not expected", without(expected, row.Name), reported, attestation.ProblemUnexpected)
			one("expected twice", append(slices.Clone(expected), sample(row)), reported, attestation.ProblemTwice)
		}
		if d := compare(expected, append(slices.Clone(reported), attestation.Flag("aa.unheard_of", true))); len(d) != 1 || d[0].Problem != attestation.ProblemUnknown {
			t.Errorf("%s: an unknown fact: %+v", p.Provider, d)
		}
	}
}

func TestOrderedFactsMayBeStricter(t *testing.T) {
	tab := table(t)
	p := tab.Providers[0]
	expected, _ := complete(p)
	var reported []attestation.Fact
	for _, row := range p.Facts {
		if !row.Measured {
			continue
		}
		f := sample(row)
		switch row.Rule {
		case attestation.RuleAtLeast:
			f.Integer += 100
		case attestation.RuleAtMost:
			f.Integer -= 100
		case attestation.RuleRecorded:
			f = other(row)
		}
		reported = append(reported, f)
	}
	if d := tab.Compare(attestation.NewExpectation(p.Provider, expected), attestation.NewReport(p.Provider, reported)); len(d) != 0 {
		t.Errorf("%+v", d)
	}
}

func TestReportsOfAnotherProviderOrKind(t *testing.T) {
	tab := table(t)
	p := tab.Providers[0]
	e, r := complete(p)
	expectation, report := attestation.NewExpectation(p.Provider, e), attestation.NewReport(p.Provider, r)
	for name, change := range map[string]func(*attestation.Expectation, *attestation.Report){
		"expectation of an unknown provider": func(e *attestation.Expectation, r *attestation.Report) { e.Provider, r.Provider = "moon", "moon" },
		"report of another provider":         func(_ *attestation.Expectation, r *attestation.Report) { r.Provider = "moon" },
		"report of another kind":             func(_ *attestation.Expectation, r *attestation.Report) { r.Kind = "writ.attestation_report.v2" },
		"nothing": func(e *attestation.Expectation, r *attestation.Report) {
			*e, *r = attestation.Expectation{}, attestation.Report{}
		},
	} {
		e, r := expectation, report
		change(&e, &r)
		if d := tab.Compare(e, r); len(d) != 1 || d[0].Problem != attestation.ProblemProvider {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if d := (attestation.Table{}).Compare(expectation, report); len(d) == 0 {
		t.Error("an empty table lets everything through")
	}
}

func TestRefuse(t *testing.T) {
	if err := attestation.Refuse(nil, "wasm"); err != nil {
		t.Error(err)
	}
	err := attestation.Refuse([]attestation.Difference{{Fact: "seccomp.mode", Problem: attestation.ProblemValue, Expected: "2", Measured: "0"}}, "wasm")
	if !reason.Is(err, reason.EnvironmentMismatch) || !strings.Contains(err.Error(), "seccomp.mode value, expected 2, measured 0") {
		t.Error(err)
	}
}

func TestMalformedTablesAreRefused(t *testing.T) {
	row := func(s string) string {
		return `{"kind":"writ.attestation_facts.v1","providers":[{"provider":"p","facts":[` + s + `]}]}`
	}
	good := `{"name":"n","measured":true,"kind":"text","rule":"equal","how":"h"}`
	if _, err := attestation.ParseTable([]byte(row(good))); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`[]`, `{"kind":"other","providers":[]}`, row(good + "," + good), row(strings.Replace(good, `"n"`, `""`, 1)),
		row(strings.Replace(good, "text", "number", 1)), row(strings.Replace(good, "equal", "like", 1)), row(strings.Replace(good, "equal", "at_most", 1)),
		row(strings.Replace(good, `,"how":"h"`, "", 1)), row(`{"name":"n","measured":false}`), row(`{"name":"n","measured":false,"why":"w","rule":"equal"}`),
		row(strings.Replace(good, `"how"`, `"where"`, 1)),
		`{"kind":"writ.attestation_facts.v1","providers":[{"provider":"p","facts":[]},{"provider":"p","facts":[]}]}`,
	} {
		if _, err := attestation.ParseTable([]byte(text)); err == nil {
			t.Errorf("took %s", text)
		}
	}
}
