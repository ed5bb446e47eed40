package requirements

import (
	"fmt"
	"slices"
)

// Report is the outcome of a check.
type Report struct {
	// Problems is empty when everything that is claimed was shown.
	Problems []string
	// Proven and Open are ids, in the order of ids.json.
	Proven, Open []string
}

// Check holds what the set claims against what ran. An id counts as proven only when
// each of its proofs ran and passed.
func Check(s Set, e *Evidence) Report {
	r := Report{Problems: s.Problems()}
	for _, id := range s.IDs {
		q, ok := s.Requirements[id.ID]
		if !ok {
			continue
		}
		if q.Open != "" {
			r.Open = append(r.Open, id.ID)
			continue
		}
		shown := len(q.Tests) > 0
		for _, text := range q.Tests {
			p, err := ParseProof(text)
			if err != nil {
				shown = false // Problems says so already.
				continue
			}
			if o := e.Of(p); o != Passed {
				shown = false
				r.Problems = append(r.Problems, fmt.Sprintf("%s: %s: %s%s", id.ID, text, o, e.hint(p, o)))
			}
		}
		if shown {
			r.Proven = append(r.Proven, id.ID)
		}
	}
	slices.Sort(r.Problems)
	return r
}

// hint says why the log of a target that passed may not name a test.
func (e *Evidence) hint(p Proof, o Outcome) string {
	if o != NotRun || p.Test == "" || e.targets[p.Target] != Passed {
		return ""
	}
	return " (the target passed: was the test renamed, or did Bazel run without --test_env=GO_TEST_WRAP_TESTV=1, which has logs name the tests?)"
}
