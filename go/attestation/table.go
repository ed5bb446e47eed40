package attestation

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// RoundUp counts a part of a unit as a whole one.
const RoundUp = "up"

// TableKind is the kind and version of the registry of facts.
const TableKind = "writ.attestation_facts.v1"

// Rule says how a measured value is held against the expected one.
type Rule string

// The rules. A recorded fact must be measured, and may have any value: it tells a reader what kind of host it was.
const (
	RuleEqual    Rule = "equal"
	RuleAtLeast  Rule = "at_least"
	RuleAtMost   Rule = "at_most"
	RuleRecorded Rule = "recorded"
)

// Table is the registry of facts: for each provider, every fact that is measured and how, and every fact that
// another provider measures but that does not apply to this one, and why.
type Table struct {
	Kind      string          `json:"kind"`
	Providers []ProviderTable `json:"providers"`
}

// ProviderTable is the part of the registry that one provider has to satisfy.
type ProviderTable struct {
	Provider string `json:"provider"`
	Facts    []Row  `json:"facts"`
}

// Row registers one fact of one provider.
type Row struct {
	Name string `json:"name"`
	// Measured says that the provider's reports hold the fact. Where it is false, Why says what makes the fact
	// meaningless there, and a report that holds it all the same is refused.
	Measured bool `json:"measured"`
	Kind     Kind `json:"kind,omitempty"`
	Rule     Rule `json:"rule,omitempty"`
	// From names the part of the attempt bundle that fixes what is expected, or, of a fact that is not measured, the
	// part that Why accounts for. A number is Unit of the bundle's, Round says how the rest counts.
	From  string `json:"from,omitempty"`
	Unit  int64  `json:"unit,omitempty"`
	Round string `json:"round,omitempty"`
	How   string `json:"how,omitempty"`
	Why   string `json:"why,omitempty"`
}

// ParseTable reads a registry of facts and checks that it is complete in itself: known kinds and rules, unique
// names, a way of measuring for each measured fact and a reason for each other one.
func ParseTable(data []byte) (Table, error) {
	var t Table
	if err := canonical.Decode(data, &t); err != nil {
		return Table{}, fmt.Errorf("registry of attestation facts: %w", err)
	}
	if t.Kind != TableKind {
		return Table{}, malformed("the registry is of kind "+t.Kind, TableKind)
	}
	providers := map[string]bool{}
	for _, p := range t.Providers {
		if p.Provider == "" || providers[p.Provider] {
			return Table{}, malformed("a provider is unnamed or stands twice", p.Provider)
		}
		providers[p.Provider] = true
		if err := p.check(); err != nil {
			return Table{}, err
		}
	}
	return t, nil
}

// Provider returns the part of the registry for one provider.
func (t Table) Provider(name string) (ProviderTable, bool) {
	for _, p := range t.Providers {
		if p.Provider == name {
			return p, true
		}
	}
	return ProviderTable{}, false
}

func (p ProviderTable) check() error {
	seen := map[string]bool{}
	for _, r := range p.Facts {
		where := p.Provider + " " + r.Name
		if r.Name == "" || seen[r.Name] {
			return malformed("a fact is unnamed or stands twice", where)
		}
		seen[r.Name] = true
		if !r.Measured {
			if r.Why == "" || r.Kind != "" || r.Rule != "" || r.How != "" || r.Unit != 0 || r.Round != "" {
				return malformed("a fact that is not measured needs why, and nothing else but from", where)
			}
			continue
		}
		if r.How == "" || r.Why != "" {
			return malformed("a measured fact needs how, and no why", where)
		}
		if r.From != "" && (r.Rule == RuleRecorded || r.Kind != KindText && r.Kind != KindInteger) {
			return malformed("only a compared text or number follows from the bundle", where)
		}
		if r.Unit != 0 && (r.From == "" || r.Kind != KindInteger || r.Unit < 2) || r.Round != "" && (r.Unit == 0 || r.Round != RoundUp) {
			return malformed("a unit is for numbers that follow from the bundle", where)
		}
		switch r.Kind {
		case KindText, KindInteger, KindFlag, KindList:
		default:
			return malformed("unknown kind of value "+string(r.Kind), where)
		}
		switch r.Rule {
		case RuleEqual, RuleRecorded:
		case RuleAtLeast, RuleAtMost:
			if r.Kind != KindInteger {
				return malformed("only integers have an order", where)
			}
		default:
			return malformed("unknown rule "+string(r.Rule), where)
		}
	}
	return nil
}

func (p ProviderTable) row(name string) (Row, bool) {
	for _, r := range p.Facts {
		if r.Name == name {
			return r, true
		}
	}
	return Row{}, false
}

func malformed(what, where string) error {
	return reason.New(reason.SchemaRegistry, "the registry of attestation facts is malformed: "+what, where, "mend schemas/attestation-facts.v1.json")
}
