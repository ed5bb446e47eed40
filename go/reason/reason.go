// Package reason holds the registered reason codes and exit codes of Writ, and the one error type that
// carries them to a person.
//
// The codes are data: schemas/reasons.v1.json. The constants and tables in codes.go are generated from it by
// `go run ./tools/reasongen`, and a test fails when they are stale.
package reason

import (
	"errors"
	"strings"
)

// Code names why something was refused or ended, for example "canonical.duplicate_key". It is stable: people
// and programs match on it. Registered codes are the constants of this package.
type Code string

// Registered reports whether schemas/reasons.v1.json holds the code.
func (c Code) Registered() bool {
	_, _, ok := c.row()
	return ok
}

// Exit returns the exit that a command ends with for this code. An unregistered code counts as internal: a
// code nobody registered is a fault of Writ, not of its caller.
func (c Code) Exit() Exit {
	if exit, _, ok := c.row(); ok {
		return exit
	}
	return ExitInternal
}

// Summary returns the registered one-sentence meaning, or "" for an unregistered code.
func (c Code) Summary() string {
	_, summary, _ := c.row()
	return summary
}

// Exit names a class of endings of a command, for example "denied". Its process status is Status.
type Exit string

// Status returns the process exit status, 0 to 255. An unregistered exit has the status of internal.
func (e Exit) Status() int {
	if status, _, ok := e.row(); ok {
		return status
	}
	return statusInternal
}

// Summary returns the registered one-sentence meaning, or "" for an unregistered exit.
func (e Exit) Summary() string {
	_, summary, _ := e.row()
	return summary
}

// Refusal is an error that says what was refused, where, and how to mend it.
type Refusal struct {
	// Code is the registered reason.
	Code Code
	// What went wrong, in plain words and without a full stop.
	What string
	// Where it went wrong: a file with line, a JSON Pointer, an id. May be empty.
	Where string
	// Remedy says what the reader can do. May be empty when there is nothing to do.
	Remedy string
	// Cause is the error underneath, if any. It is reachable with errors.Is and errors.As, and shown by
	// Detail; the one-sentence rendering leaves it out.
	Cause error
}

// New returns a Refusal without a cause.
func New(code Code, what, where, remedy string) *Refusal {
	return &Refusal{Code: code, What: what, Where: where, Remedy: remedy}
}

// Because returns a copy of the refusal with the cause set.
func (r *Refusal) Because(cause error) *Refusal {
	c := *r
	c.Cause = cause
	return &c
}

// Error renders one sentence: "what (where): remedy [code]". Empty parts are left out with their punctuation.
func (r *Refusal) Error() string {
	var b strings.Builder
	b.WriteString(r.What)
	if r.Where != "" {
		b.WriteString(" (")
		b.WriteString(r.Where)
		b.WriteString(")")
	}
	if r.Remedy != "" {
		b.WriteString(": ")
		b.WriteString(r.Remedy)
	}
	b.WriteString(" [")
	b.WriteString(string(r.Code))
	b.WriteString("]")
	return b.String()
}

// Detail renders the sentence of Error followed by the cause on a line of its own, when there is one.
func (r *Refusal) Detail() string {
	if r.Cause == nil {
		return r.Error()
	}
	return r.Error() + "\n  because: " + r.Cause.Error()
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Cause }

// As returns the first Refusal in err's chain.
func As(err error) (*Refusal, bool) {
	var r *Refusal
	if errors.As(err, &r) && r != nil {
		return r, true
	}
	return nil, false
}

// CodeOf returns the code of the first Refusal in err's chain, or "" when there is none.
func CodeOf(err error) Code {
	if r, ok := As(err); ok {
		return r.Code
	}
	return ""
}

// Is reports whether err's chain begins its refusals with the given code.
func Is(err error, code Code) bool { return code != "" && CodeOf(err) == code }

// ExitOf returns the process status for err: 0 for nil, the status of the code's exit for a Refusal, and 1
// (internal) for anything else, because an error without a reason is a fault of Writ.
func ExitOf(err error) int {
	if err == nil {
		return ExitOK.Status()
	}
	if r, ok := As(err); ok {
		return r.Code.Exit().Status()
	}
	return ExitInternal.Status()
}
