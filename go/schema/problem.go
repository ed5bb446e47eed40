package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/reason"
)

// MaxProblems is how many problems one InvalidError carries; a document with more is usually of another kind.
const MaxProblems = 20

// Problem is one thing that is wrong with a document.
type Problem struct {
	// File is the name the document was loaded under.
	File string
	// Line and Column count from 1; Column counts characters. A member of an object stands where its key does.
	Line, Column int
	// Path is the JSON Pointer (RFC 6901) of what is wrong; "" is the whole document.
	Path string
	// Rule is the schema keyword that failed, for example "required", or "syntax" or "kind".
	Rule string
	// Message says in plain words what is wrong.
	Message string
	// Remedy says what to write instead; may be empty.
	Remedy string
	// Code is the registered reason.
	Code reason.Code

	excerpt string
}

// String renders "file:line:column: /path: message: remedy (rule: keyword)".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.where())
	b.WriteString(": ")
	b.WriteString(p.Message)
	if p.Remedy != "" {
		b.WriteString(": ")
		b.WriteString(p.Remedy)
	}
	fmt.Fprintf(&b, " (rule: %s)", p.Rule)
	return b.String()
}

func (p Problem) where() string {
	at := fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	if p.Path != "" {
		at += ": " + p.Path
	}
	return at
}

// Excerpt returns the line of the problem with a caret under its column, or "" when there is no text to show.
func (p Problem) Excerpt() string { return p.excerpt }

// InvalidError is everything found wrong with one document. It unwraps to a *reason.Refusal made of the first
// problem.
type InvalidError struct {
	// Problems are sorted by position and at most MaxProblems; there is at least one.
	Problems []Problem
	// Omitted counts the problems beyond those.
	Omitted int
}

// newInvalid sorts and caps problems, of which there must be at least one.
func newInvalid(problems []Problem) *InvalidError {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	problems = slices.Compact(problems)
	e := &InvalidError{Problems: problems}
	if len(problems) > MaxProblems {
		e.Problems, e.Omitted = problems[:MaxProblems:MaxProblems], len(problems)-MaxProblems
	}
	return e
}

// Error renders the first problem with its line and a caret, then one line for each of the others.
func (e *InvalidError) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
		if i == 0 && p.excerpt != "" {
			b.WriteByte('\n')
			b.WriteString(p.excerpt)
		}
	}
	if e.Omitted > 0 {
		fmt.Fprintf(&b, "\nand %d more", e.Omitted)
	}
	return b.String()
}

// Unwrap returns the first problem as a Refusal.
func (e *InvalidError) Unwrap() error {
	if len(e.Problems) == 0 {
		return nil
	}
	p := e.Problems[0]
	what := p.Message
	if more := len(e.Problems) - 1 + e.Omitted; more == 1 {
		what += ", and 1 more problem"
	} else if more > 1 {
		what += fmt.Sprintf(", and %d more problems", more)
	}
	return reason.New(p.Code, what, p.where(), p.Remedy)
}
