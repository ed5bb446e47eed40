package requirements

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Mutation disables a guard once, so that it can be seen which tests notice. A test that
// stays green without the guard proves nothing of it.
type Mutation struct {
	// ID names the mutation within its requirement.
	ID string `json:"id"`
	// File holds the guard. It is a path below the root of the tree, with slashes.
	File string `json:"file"`
	// Source is the guard as it stands in File, exactly once.
	Source string `json:"source"`
	// Disabled stands in its place while the guard is disabled.
	Disabled string `json:"disabled"`
	// Red are the Go tests, or subtests, that must fail then, every one of them. They are
	// among the requirement's own, unless it is open and has none.
	Red []string `json:"red"`
	// Short says that the mutation belongs to the short form of the run.
	Short bool `json:"short,omitempty"`
}

//writ:immutable a compiled pattern, never reassigned
var mutationShape = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Disable returns the text of a file with the guard disabled. It refuses a text in which
// the guard does not stand exactly once: then nobody could say what was disabled.
func (m Mutation) Disable(text string) (string, error) {
	if n := strings.Count(text, m.Source); n != 1 {
		return "", fmt.Errorf("%s holds the guard's source %d times, not once: %q", m.File, n, m.Source)
	}
	return strings.Replace(text, m.Source, m.Disabled, 1), nil
}

// mutationProblems says what is wrong with the mutations of a requirement. One that is not
// open has at least one, and each is noticed by tests that it claims.
func (r Requirement) mutationProblems(id string) []string {
	if len(r.Mutations) == 0 && r.Open == "" {
		return []string{id + ": is not open and no mutation disables its guard: nobody could tell that its tests would notice"}
	}
	var problems []string
	seen := map[string]bool{}
	for _, m := range r.Mutations {
		name := id + "/" + m.ID
		bad := func(what string) { problems = append(problems, name+": "+what) }
		if !mutationShape.MatchString(m.ID) || seen[m.ID] {
			bad("the mutation's id is no word of its own: use a-z, 0-9 and dashes, each id once")
		}
		seen[m.ID] = true
		if m.File == "" || path.IsAbs(m.File) || path.Clean(m.File) != m.File || strings.HasPrefix(m.File, "..") {
			bad(fmt.Sprintf("%q is no path below the root of the tree", m.File))
		}
		if m.Source == "" || m.Source == m.Disabled {
			bad("it changes nothing")
		}
		if len(m.Red) == 0 {
			bad("it names no test that must fail")
		}
		for _, text := range m.Red {
			if p, err := ParseProof(text); err != nil {
				bad(err.Error())
			} else if p.Test == "" || r.Open == "" && !r.claims(p) {
				bad(fmt.Sprintf("%q is none of the requirement's Go tests", text))
			}
		}
	}
	return problems
}

// claims reports whether a proof is one of the requirement's, or a subtest of one.
func (r Requirement) claims(p Proof) bool {
	for _, text := range r.Tests {
		q, err := ParseProof(text)
		if err == nil && q.Target == p.Target && q.Test != "" && (p.Test == q.Test || strings.HasPrefix(p.Test, q.Test+"/")) {
			return true
		}
	}
	return false
}
