// Package attestation is the contract between what runs inside an environment and what stands outside it: a
// Report of facts measured inside, an Expectation of what they should be, and the comparison that fails closed.
//
// The package is pure. Which facts exist, which of them a provider measures, and how each is held against its
// expectation, stands in a Table (schemas/attestation-facts.v1.json).
package attestation

import "slices"

// Kind names the type of a fact's value.
type Kind string

// The kinds of value. A list is ordered: its order is part of the fact.
const (
	KindText    Kind = "text"
	KindInteger Kind = "integer"
	KindFlag    Kind = "flag"
	KindList    Kind = "list"
)

// ReportKind is the kind and version that a Report carries.
const ReportKind = "writ.attestation_report.v1"

// Report is what was measured inside an environment, after its confinement and before anything ran in it.
type Report struct {
	Kind     string `json:"kind"`
	Provider string `json:"provider"`
	// Facts in the order of their names, each name once.
	Facts []Fact `json:"facts"`
}

// Fact is one named value. Only the field that Kind names is meaningful; the others are zero.
type Fact struct {
	Name    string   `json:"name"`
	Kind    Kind     `json:"kind"`
	Text    string   `json:"text,omitempty"`
	Integer int64    `json:"integer,omitempty"`
	Flag    bool     `json:"flag,omitempty"`
	List    []string `json:"list,omitempty"`
}

// Text returns a fact with a text value.
func Text(name, value string) Fact { return Fact{Name: name, Kind: KindText, Text: value} }

// Integer returns a fact with an integer value.
func Integer(name string, value int64) Fact {
	return Fact{Name: name, Kind: KindInteger, Integer: value}
}

// Flag returns a fact with a true or false value.
func Flag(name string, value bool) Fact { return Fact{Name: name, Kind: KindFlag, Flag: value} }

// List returns a fact with an ordered list of texts. The list is copied.
func List(name string, values ...string) Fact {
	return Fact{Name: name, Kind: KindList, List: slices.Clone(values)}
}

// Equal reports whether two facts have the same name, kind and value.
func (f Fact) Equal(o Fact) bool {
	return f.Name == o.Name && f.Kind == o.Kind && f.Text == o.Text && f.Integer == o.Integer && f.Flag == o.Flag && slices.Equal(f.List, o.List)
}

// NewReport returns a report of the provider with the facts sorted by name.
func NewReport(provider string, facts []Fact) Report {
	return Report{Kind: ReportKind, Provider: provider, Facts: sorted(facts)}
}

// Fact returns the first fact of that name.
func (r Report) Fact(name string) (Fact, bool) { return find(r.Facts, name) }

// Expectation is what the host expects a Report to say: one fact for each that the table says is measured,
// except those that are only recorded. How the value is held against the measured one is the table's rule.
type Expectation struct {
	Provider string `json:"provider"`
	Facts    []Fact `json:"facts"`
}

// NewExpectation returns an expectation of the provider with the facts sorted by name.
func NewExpectation(provider string, facts []Fact) Expectation {
	return Expectation{Provider: provider, Facts: sorted(facts)}
}

func sorted(facts []Fact) []Fact {
	out := slices.Clone(facts)
	slices.SortStableFunc(out, func(a, b Fact) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		default:
			return 0
		}
	})
	return out
}

func find(facts []Fact, name string) (Fact, bool) {
	for _, f := range facts {
		if f.Name == name {
			return f, true
		}
	}
	return Fact{}, false
}
