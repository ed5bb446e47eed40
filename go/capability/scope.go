package capability

import (
	"strings"

	"github.com/writ-runtime/writ/go/reason"
)

// Scope is a normalised set of things of one kind, written KIND:BODY:
//
//	input:docs/**          the input docs and everything below it
//	output:report.json     exactly that output
//	tool:textstat          exactly that tool
//	host:api.example.com:443,8443
//	model:local/small      exactly that model
//	KIND:**                everything of the kind
//	none                   the scope of actions that have nothing to limit
//
// Two scopes that mean the same are the same text. The zero Scope covers nothing and intersects with nothing; a
// Scope that is not zero came out of ParseScope, also when it was decoded from a document.
type Scope struct{ text string }

const (
	everything = "**"
	below      = "/**"
	// maxScope bounds the text of a scope, in bytes.
	maxScope = 1024
)

// ParseScope normalises s. Refused with code capability.malformed_scope is whatever two readers could take for
// different things: dot segments, backslashes, percent-encoding, control and invisible characters, text that is
// not NFC, patterns other than a final "/**", numeric host names that are no plain IPv4 address.
func ParseScope(s string) (Scope, error) {
	if len(s) > maxScope {
		return Scope{}, malformed(s[:64]+"…", "it is longer than 1024 bytes")
	}
	if s == string(NoScope) {
		return Scope{text: s}, nil
	}
	kind, body, ok := strings.Cut(s, ":")
	if !ok {
		return Scope{}, malformed(s, "it is not written KIND:BODY")
	}
	var normal, wrong string
	switch ScopeKind(kind).shape() {
	case shapePath:
		normal, wrong = normalPath(body, ScopeKind(kind))
	case shapeName:
		normal, wrong = normalName(body)
	case shapeHost:
		normal, wrong = normalHostPorts(body)
	default:
		return Scope{}, malformed(s, "no kind of scope is called "+quoted(kind))
	}
	if wrong != "" {
		return Scope{}, malformed(s, wrong)
	}
	return Scope{text: kind + ":" + normal}, nil
}

func malformed(s, wrong string) error {
	return reason.New(reason.CapabilityMalformedScope, "the scope "+quoted(s)+" is not accepted: "+wrong, "",
		"write it like input:docs/**, output:report.json, tool:textstat or host:api.example.com:443")
}

// Kind returns the kind of s, or "" for the zero Scope.
func (s Scope) Kind() ScopeKind {
	kind, _ := s.split()
	return kind
}

func (s Scope) split() (ScopeKind, string) {
	kind, body, _ := strings.Cut(s.text, ":")
	return ScopeKind(kind), body
}

// IsZero reports whether s is the zero Scope.
func (s Scope) IsZero() bool { return s.text == "" }

// String returns the normalised text.
func (s Scope) String() string { return s.text }

// CanonicalText returns the normalised text.
func (s Scope) CanonicalText() string { return s.text }

// ParseCanonicalText sets s to a scope that is written in its normal form already; the empty text is the zero
// Scope. Anything else is refused: a document with another spelling would have another digest.
func (s *Scope) ParseCanonicalText(text string) error {
	if text == "" {
		*s = Scope{}
		return nil
	}
	parsed, err := ParseScope(text)
	if err != nil {
		return err
	}
	if parsed.text != text {
		return malformed(text, "its normal form is "+quoted(parsed.text))
	}
	*s = parsed
	return nil
}

// MarshalText serves encoding/json.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.text), nil }

// UnmarshalText serves encoding/json; it refuses what ParseCanonicalText refuses.
func (s *Scope) UnmarshalText(text []byte) error { return s.ParseCanonicalText(string(text)) }

// Contains reports whether s covers everything that t covers. The zero Scope contains nothing and is in nothing.
func (s Scope) Contains(t Scope) bool {
	if s.IsZero() || t.IsZero() {
		return false
	}
	kind, body := s.split()
	other, inner := t.split()
	if kind != other {
		return false
	}
	switch kind.shape() {
	case shapeNone:
		return true
	case shapePath:
		return pathContains(body, inner)
	case shapeName:
		return body == everything || body == inner
	case shapeHost:
		return parseHostPorts(body).contains(parseHostPorts(inner))
	default:
		return false
	}
}

// Intersect returns what s and t both cover; ok is false when that is nothing.
func (s Scope) Intersect(t Scope) (both Scope, ok bool) {
	// Paths and names form a tree: two of them are nested or have nothing in common.
	if s.Contains(t) {
		return t, true
	}
	if t.Contains(s) {
		return s, true
	}
	if s.Kind() != HostScope || t.Kind() != HostScope {
		return Scope{}, false
	}
	_, a := s.split()
	_, b := t.split()
	h, ok := parseHostPorts(a).intersect(parseHostPorts(b))
	if !ok {
		return Scope{}, false
	}
	return Scope{text: string(HostScope) + ":" + h.text()}, true
}

// parts splits a scope with a list of ports into one scope a port, so that sets have one form.
func (s Scope) parts() []Scope {
	kind, body := s.split()
	if kind != HostScope {
		return []Scope{s}
	}
	h := parseHostPorts(body)
	if len(h.ports) < 2 {
		return []Scope{s}
	}
	out := make([]Scope, len(h.ports))
	for i, p := range h.ports {
		out[i] = Scope{text: string(HostScope) + ":" + hostPorts{name: h.name, ports: []uint16{p}}.text()}
	}
	return out
}
