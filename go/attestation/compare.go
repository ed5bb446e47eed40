package attestation

import (
	"strconv"
	"strings"

	"github.com/writ-runtime/writ/go/reason"
)

// Problem names what is wrong with one fact.
type Problem string

// The problems. Each of them is enough to refuse an environment.
const (
	ProblemMissing    Problem = "missing"        // the table says it is measured, the report does not hold it
	ProblemUnknown    Problem = "unknown"        // the table does not know it
	ProblemForeign    Problem = "does_not_apply" // the table says it does not apply to this provider
	ProblemTwice      Problem = "twice"          // it stands more than once, so no value of it can be relied on
	ProblemKind       Problem = "kind"           // its value is of another kind than the table says
	ProblemUnexpected Problem = "not_expected"   // the host did not say what it should be
	ProblemValue      Problem = "value"          // its value is not the expected one
	ProblemOrder      Problem = "not_as_ordered" // what the provider expects does not follow from the attempt bundle
	ProblemProvider   Problem = "provider"       // report, expectation and table are not of one provider
)

// Difference is one way in which a report is not what was expected. Expected and Measured are renderings for
// people and receipts.
type Difference struct {
	Fact     string  `json:"fact"`
	Problem  Problem `json:"problem"`
	Expected string  `json:"expected,omitempty"`
	Measured string  `json:"measured,omitempty"`
}

// Compare holds a report against an expectation and returns every difference, in the order of the table and then
// of the report. No difference is the only acceptable answer: a missing, unknown, doubled or unexpected fact
// counts like a wrong value.
func (t Table) Compare(e Expectation, r Report) []Difference {
	p, ok := t.Provider(e.Provider)
	if !ok || r.Kind != ReportKind || r.Provider != e.Provider {
		return []Difference{{Fact: "provider", Problem: ProblemProvider, Expected: ReportKind + " " + e.Provider, Measured: r.Kind + " " + r.Provider}}
	}
	var out []Difference
	for _, row := range p.Facts {
		out = append(out, row.compare(e.Facts, r.Facts)...)
	}
	for _, f := range r.Facts {
		if _, known := p.row(f.Name); !known {
			out = append(out, Difference{Fact: f.Name, Problem: ProblemUnknown, Measured: f.render()})
		}
	}
	for _, f := range e.Facts {
		if row, known := p.row(f.Name); !known || !row.Measured {
			out = append(out, Difference{Fact: f.Name, Problem: ProblemUnknown, Expected: f.render()})
		}
	}
	return out
}

func (row Row) compare(expected, measured []Fact) []Difference {
	got, n := count(measured, row.Name)
	if !row.Measured {
		if n > 0 {
			return []Difference{{Fact: row.Name, Problem: ProblemForeign, Measured: got.render()}}
		}
		return nil
	}
	want, m := count(expected, row.Name)
	d := Difference{Fact: row.Name}
	if m > 0 {
		d.Expected = want.render()
	}
	if n > 0 {
		d.Measured = got.render()
	}
	switch {
	case n == 0:
		d.Problem = ProblemMissing
	case n > 1 || m > 1:
		d.Problem = ProblemTwice
	case got.Kind != row.Kind || got.strays():
		d.Problem = ProblemKind
	case row.Rule == RuleRecorded && m == 0:
		return nil
	case m == 0:
		d.Problem = ProblemUnexpected
	case want.Kind != row.Kind || want.strays():
		d.Problem = ProblemKind
	case !row.Rule.holds(want, got):
		d.Problem = ProblemValue
	default:
		return nil
	}
	return []Difference{d}
}

func (r Rule) holds(want, got Fact) bool {
	switch r {
	case RuleEqual:
		return want.Equal(got)
	case RuleAtLeast:
		return got.Integer >= want.Integer
	case RuleAtMost:
		return got.Integer <= want.Integer
	case RuleRecorded:
		return true
	default:
		return false
	}
}

// Refuse renders differences as one refusal (environment.mismatch), or nil when there are none.
func Refuse(differences []Difference, where string) error {
	if len(differences) == 0 {
		return nil
	}
	parts := make([]string, 0, len(differences))
	for _, d := range differences {
		s := d.Fact + " " + string(d.Problem)
		if d.Expected != "" {
			s += ", expected " + d.Expected
		}
		if d.Measured != "" {
			s += ", measured " + d.Measured
		}
		parts = append(parts, s)
	}
	return reason.New(reason.EnvironmentMismatch, "the measured environment is not the expected one: "+strings.Join(parts, "; "),
		where, "nothing ran in it; mend the host or the manifest, and make a new attempt")
}

func count(facts []Fact, name string) (Fact, int) {
	var first Fact
	n := 0
	for _, f := range facts {
		if f.Name != name {
			continue
		}
		if n == 0 {
			first = f
		}
		n++
	}
	return first, n
}

// strays reports whether a field other than the one that Kind names is set: such a fact says two things.
func (f Fact) strays() bool {
	g := Fact{Name: f.Name, Kind: f.Kind}
	switch f.Kind {
	case KindText:
		g.Text = f.Text
	case KindInteger:
		g.Integer = f.Integer
	case KindFlag:
		g.Flag = f.Flag
	case KindList:
		g.List = f.List
	default:
		return true
	}
	return !f.Equal(g)
}

func (f Fact) render() string {
	switch f.Kind {
	case KindText:
		return strconv.Quote(f.Text)
	case KindInteger:
		return strconv.FormatInt(f.Integer, 10)
	case KindFlag:
		return strconv.FormatBool(f.Flag)
	case KindList:
		return "[" + strings.Join(f.List, ", ") + "]"
	default:
		return "a value of unknown kind " + strconv.Quote(string(f.Kind))
	}
}
