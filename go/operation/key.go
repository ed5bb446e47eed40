// Package operation names what Writ does to the world: the key that identifies
// an operation over restarts, the intent that is recorded before its effect, and
// the outcome that is recorded after it. It is pure: nothing here performs anything.
package operation

import (
	"strconv"
	"strings"

	"github.com/writ-runtime/writ/go/reason"
)

// Key identifies one operation over restarts (O1). It is also the idempotency
// identity under which the journal stores the operation's facts.
//
// Shape: NAMESPACE/SCOPE/ACTOR/KIND/PURPOSE, for example
// "writ/att_0193…/reference-local/start/main". Scope is the attempt's id for the
// operations of an attempt.
type Key string

// keyParts is the number of slash-separated parts of every key.
const keyParts = 5

// maxPart bounds one part of a key, in bytes.
const maxPart = 128

// NewKey joins the five parts of a key. Each part is 1 to 128 characters of
// a-z, A-Z, 0-9, '.', '_', ':' and '-'; anything else is refused, so that no two
// different lists of parts share a key.
func NewKey(namespace, scope, actor string, kind Kind, purpose string) (Key, error) {
	parts := []string{namespace, scope, actor, string(kind), purpose}
	for i, part := range parts {
		if !validPart(part) {
			return "", reason.New(reason.OperationKeyMalformed,
				"part "+strconv.Itoa(i+1)+" of an operation key is "+strconv.Quote(part),
				strings.Join(parts, "/"),
				"use 1 to 128 characters of a-z, A-Z, 0-9, '.', '_', ':' and '-'")
		}
	}
	return Key(strings.Join(parts, "/")), nil
}

// ParseKey checks that s has the shape of a key.
func ParseKey(s string) (Key, error) {
	parts := strings.Split(s, "/")
	if len(parts) != keyParts {
		return "", reason.New(reason.OperationKeyMalformed,
			"an operation key has five parts, this one has "+strconv.Itoa(len(parts)), strconv.Quote(s),
			"copy the key from `writ receipts ATTEMPT`")
	}
	return NewKey(parts[0], parts[1], parts[2], Kind(parts[3]), parts[4])
}

// Namespace returns the part of k that the attempt bundle fixed.
func (k Key) Namespace() string { return k.part(0) }

// Scope returns the id of the attempt, or of the subject, that k belongs to.
func (k Key) Scope() string { return k.part(1) }

// Actor returns the adapter or provider that performs the operation.
func (k Key) Actor() string { return k.part(2) }

// Kind returns the operation's kind.
func (k Key) Kind() Kind { return Kind(k.part(3)) }

// Purpose returns the declared ordinal or purpose.
func (k Key) Purpose() string { return k.part(4) }

// part cuts the i-th part out of k. It makes no list of all: a key is asked for its parts with
// every event of an operation.
func (k Key) part(i int) string {
	if strings.Count(string(k), "/") != keyParts-1 {
		return ""
	}
	rest := string(k)
	for range i {
		_, rest, _ = strings.Cut(rest, "/")
	}
	part, _, _ := strings.Cut(rest, "/")
	return part
}

func validPart(s string) bool {
	if s == "" || len(s) > maxPart {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == ':', c == '-':
		default:
			return false
		}
	}
	return true
}
