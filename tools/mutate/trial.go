package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/writ-runtime/writ/testing/requirements"
)

// Trial is one mutation of one requirement.
type Trial struct {
	// Name is REQUIREMENT/MUTATION.
	Name string
	requirements.Mutation
}

// Ending is what disabling a guard came to.
type Ending string

// The endings. Only Red shows that somebody would notice.
const (
	Red       Ending = "red"
	Green     Ending = "STAYED GREEN"
	Unfound   Ending = "NOT FOUND"
	Unbuilt   Ending = "DOES NOT COMPILE"
	NeverRan  Ending = "DID NOT RUN"
	NotSound  Ending = "NOT GREEN BEFORE"
	Unbounded Ending = "OUT OF BOUNDS"
)

// Verdict is what became of one trial.
type Verdict struct {
	Trial
	Ending Ending
	// Why is one line that names what was seen, or several of a compiler.
	Why  string
	Took time.Duration
}

// Choose returns the trials that are asked for, in the order of the requirements: all of
// them, those of the short form, or those that only names. It refuses a name of nothing.
func Choose(s requirements.Set, only string, short bool) ([]Trial, error) {
	var names []string
	if only != "" {
		names = strings.Split(only, ",")
	}
	used := map[string]bool{}
	var trials []Trial
	for _, id := range s.IDs {
		for _, m := range s.Requirements[id.ID].Mutations {
			t := Trial{Name: id.ID + "/" + m.ID, Mutation: m}
			asked := names == nil
			for _, n := range names {
				if n == id.ID || n == t.Name {
					asked, used[n] = true, true
				}
			}
			if asked && (m.Short || !short) {
				trials = append(trials, t)
			}
		}
	}
	for _, n := range names {
		if !used[n] {
			return nil, fmt.Errorf("no mutation is called %q: see -list", n)
		}
	}
	if len(trials) == 0 {
		return nil, fmt.Errorf("no mutation is left to run: see -list")
	}
	return trials, nil
}

// Table writes one row for each verdict, and returns how many are not Red.
func Table(out io.Writer, verdicts []Verdict) (survived int) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MUTATION\tENDING\tTOOK\tFILE\tSEEN BY")
	var details []string
	for _, v := range verdicts {
		seen := strings.Join(v.Trial.Red, ", ")
		fmt.Fprintf(w, "%s\t%s\t%.1fs\t%s\t%s\n", v.Name, v.Ending, v.Took.Seconds(), v.File, seen)
		if v.Ending != Red {
			survived++
			details = append(details, fmt.Sprintf("\n%s: %s\n%s", v.Name, v.Ending, indent(v.Why)))
		}
	}
	_ = w.Flush()
	for _, d := range details {
		fmt.Fprintln(out, d)
	}
	return survived
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
}

// proof is one test that must fail, and where it stands.
type proof struct {
	requirements.Proof
	// folder is that of its package, below the root.
	folder string
}

// proofs returns what must go red, grouped by package, each in the order of the mutation.
// Preconditions: the mutation belongs to a set without problems.
func (t Trial) proofs() (map[string][]proof, error) {
	by := map[string][]proof{}
	for _, text := range t.Red {
		p, err := requirements.ParseProof(text)
		if err != nil {
			return nil, err
		}
		folder, _ := p.Package()
		by[folder] = append(by[folder], proof{p, folder})
	}
	return by, nil
}

// pattern is the -run of the go command that runs the tests of proofs, and as little else
// as it can.
func pattern(proofs []proof) string {
	var all []string
	for _, p := range proofs {
		parts := strings.Split(p.Test, "/")
		for i, part := range parts {
			parts[i] = "^" + regexp.QuoteMeta(part) + "$"
		}
		if one := strings.Join(parts, "/"); !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return strings.Join(all, "|")
}
