package attestation

// Ordered is what the attempt bundle fixes of an environment: for each of its parts that
// the table may name under "from", the value as the bundle has it.
type Ordered map[string]Fact

// OrderText adds a text.
func (o Ordered) OrderText(from, value string) { o[from] = Text("", value) }

// OrderInteger adds a number.
func (o Ordered) OrderInteger(from string, value int64) { o[from] = Integer("", value) }

// Of returns the fact that a row expects of what was ordered; ok is false for a row that
// is the provider's own.
func (o Ordered) Of(row Row) (Fact, bool) {
	f, ok := o[row.From]
	f.Name = row.Name
	if row.Unit > 0 {
		if row.Round == RoundUp {
			f.Integer += row.Unit - 1
		}
		f.Integer /= row.Unit
	}
	return f, ok
}

// Follow holds an expectation against what was ordered, and returns every fact whose
// expected value does not follow from it: a provider cannot expect less than the bundle
// orders. A part of the order that no fact of the provider accounts for counts like one.
func (t Table) Follow(o Ordered, e Expectation) []Difference {
	p, _ := t.Provider(e.Provider)
	var out []Difference
	named := map[string]bool{}
	for _, row := range p.Facts {
		named[row.From] = true
		if row.From == "" || !row.Measured {
			continue
		}
		d := Difference{Fact: row.Name, Problem: ProblemOrder}
		want, ordered := o.Of(row)
		if ordered {
			d.Expected = want.render()
		}
		got, n := count(e.Facts, row.Name)
		if n > 0 {
			d.Measured = got.render()
		}
		if !ordered || n != 1 || !want.Equal(got) {
			out = append(out, d)
		}
	}
	for from, f := range o {
		if !named[from] {
			out = append(out, Difference{Fact: from, Problem: ProblemOrder, Expected: f.render()})
		}
	}
	return out
}
