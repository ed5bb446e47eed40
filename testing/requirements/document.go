// Package requirements holds what the product promises, requirement by requirement, and
// which tests prove it. A requirement is proven only by a test that fails once the guard
// that it names is gone; what is not proven says why it is open.
package requirements

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
)

//go:embed ids.json
var idsJSON string

//go:embed requirements.json
var requirementsJSON string

//go:embed proven.txt
var provenText string

// ID is one promise. Its meaning never changes; Summary is a reminder of it.
type ID struct {
	ID      string `json:"id"`
	Summary string `json:"summary"`
}

// Requirement says of one id either how it is proven or why it is open.
type Requirement struct {
	// Guard names what keeps the promise: the code whose removal turns Tests red.
	Guard string `json:"guard,omitempty"`
	// Tests are proofs, see ParseProof.
	Tests []string `json:"tests,omitempty"`
	// Mutations disable the guard, each in one place; see tools/mutate. Of an open one they
	// disable what is there of it.
	Mutations []Mutation `json:"mutations,omitempty"`
	// Open says what is there and what is missing.
	Open string `json:"open,omitempty"`
}

// Set is everything that is committed about requirements.
type Set struct {
	IDs          []ID
	Requirements map[string]Requirement
	// Proven are the ids that must never be open again.
	Proven []string
}

// Committed is the set of this tree.
func Committed() (Set, error) {
	return Parse([]byte(idsJSON), []byte(requirementsJSON), []byte(provenText))
}

// Parse reads the three files strictly: an unknown field or a key that stands twice is an
// error. Proven has one id a line; a line that begins with # says something to its reader.
func Parse(ids, requirements, proven []byte) (Set, error) {
	var list struct {
		IDs []ID `json:"ids"`
	}
	if err := canonical.Decode(ids, &list); err != nil {
		return Set{}, fmt.Errorf("ids.json: %w", err)
	}
	var document struct {
		Requirements map[string]Requirement `json:"requirements"`
	}
	if err := canonical.Decode(requirements, &document); err != nil {
		return Set{}, fmt.Errorf("requirements.json: %w", err)
	}
	s := Set{IDs: list.IDs, Requirements: document.Requirements}
	for lines := bufio.NewScanner(bytes.NewReader(proven)); lines.Scan(); {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
			s.Proven = append(s.Proven, line)
		}
	}
	return s, nil
}

// Problems returns what is wrong with the set itself, whatever has run: an id that is
// absent, foreign or given twice, one that neither names a test nor says why it is open,
// and a disagreement with the list of proven ids.
func (s Set) Problems() []string {
	var problems []string
	known := map[string]bool{}
	for _, id := range s.IDs {
		if known[id.ID] {
			problems = append(problems, id.ID+": stands twice in ids.json")
		}
		known[id.ID] = true
		r, ok := s.Requirements[id.ID]
		if !ok {
			problems = append(problems, id.ID+": absent from requirements.json: name its tests, or say why it is open")
			continue
		}
		problems = append(problems, r.problems(id.ID)...)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Requirements)) {
		if !known[id] {
			problems = append(problems, id+": no such requirement: enter it in ids.json first")
		}
	}
	return append(problems, s.provenProblems(known)...)
}

func (s Set) provenProblems(known map[string]bool) []string {
	var problems []string
	listed := map[string]bool{}
	for _, id := range s.Proven {
		r, ok := s.Requirements[id]
		switch {
		case !known[id]:
			problems = append(problems, id+": proven.txt lists it, ids.json does not")
		case listed[id]:
			problems = append(problems, id+": stands twice in proven.txt")
		case ok && r.Open != "":
			problems = append(problems, id+": was proven and is open again: "+r.Open)
		}
		listed[id] = true
	}
	for _, id := range s.IDs {
		if r, ok := s.Requirements[id.ID]; ok && r.Open == "" && !listed[id.ID] {
			problems = append(problems, id.ID+": is not open, and proven.txt does not list it: add it, so that it stays proven")
		}
	}
	return problems
}

func (r Requirement) problems(id string) []string {
	if r.Open != "" {
		if r.Guard != "" || len(r.Tests) > 0 {
			return []string{id + ": is open and names a guard or tests: it is the one or the other"}
		}
		return r.mutationProblems(id)
	}
	if len(r.Tests) == 0 {
		return []string{id + ": is not open and names no test"}
	}
	problems := r.mutationProblems(id)
	for _, text := range r.Tests {
		p, err := ParseProof(text)
		switch {
		case err != nil:
			problems = append(problems, id+": "+err.Error())
		case p.Step == "" && r.Guard == "":
			problems = append(problems, id+": names a test and no guard: nobody could tell what the test proves")
		}
	}
	return problems
}
