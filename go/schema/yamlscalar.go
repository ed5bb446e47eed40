package schema

import (
	"regexp"
	"strings"
)

// plainClass is what an unquoted scalar is.
type plainClass uint8

const (
	plainString plainClass = iota
	plainNull
	plainTrue
	plainFalse
	plainInteger    // decimal digits with an optional minus
	plainOddInteger // what some reader takes for an integer: 0x1f, 0o17, 017, 0b1, 1_000, +1, -0
	plainFloat      // what some reader takes for a float: 1.5, .5, 1e3, .inf, .nan
	plainTime       // what YAML 1.1 takes for a timestamp or a base-60 number
)

// The forms of an unquoted scalar that begins with a digit, a sign or a point, underscores left out: YAML 1.1 allows
// them anywhere in a number. The odd integers, the times and the base-60 numbers are those of yaml.org/type (YAML
// 1.1) and of readers that go further.
var (
	integerForm    = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	oddIntegerForm = regexp.MustCompile(`^[-+]?(0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|[0-9]+)$`)
	floatForm      = regexp.MustCompile(`^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
	timeForm       = regexp.MustCompile(`^([0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?|[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?)$`)
)

// classify reads an unquoted scalar by the core schema of YAML 1.2 (10.3.2), and sets apart what YAML 1.1
// readers take for a number or a time. yes, no, on and off are strings.
func classify(s string) plainClass {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return plainNull
	case "true", "True", "TRUE":
		return plainTrue
	case "false", "False", "FALSE":
		return plainFalse
	}
	// Every other special form begins with a digit, a sign or a point; most scalars end here.
	if c := s[0]; (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' {
		return plainString
	}
	const longest = 400 // longer than any number that means something, far below what costs time
	if len(s) > longest {
		return classifyLong(s)
	}
	switch bare := strings.ReplaceAll(s, "_", ""); {
	case integerForm.MatchString(s) && s != "-0":
		return plainInteger
	case oddIntegerForm.MatchString(bare):
		return plainOddInteger
	case floatForm.MatchString(bare):
		return plainFloat
	case timeForm.MatchString(bare):
		return plainTime
	default:
		return plainString
	}
}

// classifyLong decides for scalars too long to be any number: digits only would still be one.
func classifyLong(s string) plainClass {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != '_' && c != ':' && c != 'e' && c != 'E' {
			return plainString
		}
	}
	return plainOddInteger
}
