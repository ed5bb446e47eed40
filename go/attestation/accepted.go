package attestation

// Accepted is a report that was compared with its expectation and found to hold every
// fact as ordered. Nothing but Accept makes one, and its zero value accepts nothing: a
// provider that demands one cannot be led to fill or use an environment that was not
// compared.
type Accepted struct {
	report *Report
}

// Accept compares the report with the expectation, and the expectation with what was
// ordered, and refuses with environment.mismatch whatever differs. where names the
// environment in the refusal.
func (t Table) Accept(o Ordered, e Expectation, r Report, where string) (Accepted, error) {
	if err := Refuse(append(t.Compare(e, r), t.Follow(o, e)...), where); err != nil {
		return Accepted{}, err
	}
	return Accepted{&r}, nil
}

// Report returns the accepted report; ok is false for the zero value.
func (a Accepted) Report() (r Report, ok bool) {
	if a.report == nil {
		return Report{}, false
	}
	return *a.report, true
}
