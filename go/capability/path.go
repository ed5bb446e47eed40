package capability

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxSegments bounds the depth of a path in a scope.
const maxSegments = 64

// normalPath returns the normal form of a path body, or what is wrong with it. A path has one spelling only: what
// could be spelled otherwise is refused, so nothing needs to be rewritten.
func normalPath(body string, kind ScopeKind) (normal, wrong string) {
	if body == everything {
		return body, ""
	}
	path := strings.TrimSuffix(body, below)
	if wrong := badText(path, kind != InputScope && kind != OutputScope); wrong != "" {
		return "", wrong
	}
	segments := strings.Split(path, "/")
	if len(segments) > maxSegments {
		return "", "it is deeper than " + strconv.Itoa(maxSegments) + " segments"
	}
	for _, segment := range segments {
		switch {
		case segment == "":
			return "", "it has an empty segment"
		case strings.Trim(segment, ".") == "":
			return "", "it has a segment of dots"
		case strings.TrimSpace(segment) != segment:
			return "", "a segment begins or ends with a space"
		}
	}
	return body, ""
}

// badText refuses characters that other readers treat as separators, patterns, escapes or nothing at all.
func badText(s string, asciiOnly bool) string {
	if !utf8.ValidString(s) {
		return "it is not valid UTF-8"
	}
	if !norm.NFC.IsNormalString(s) {
		return "it is not in Unicode normal form C"
	}
	for _, r := range s {
		switch {
		case strings.ContainsRune(`\%*?[]{}:`, r):
			return "it holds the character " + strconv.QuoteRune(r)
		case r == utf8.RuneError, unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
			return "it holds an invisible character"
		case r != ' ' && unicode.IsSpace(r):
			return "it holds a space other than U+0020"
		case asciiOnly && (r > unicode.MaxASCII || r == ' '):
			return "it holds a character other than the visible ones of ASCII"
		}
	}
	// U+FF0E and its like become dots and slashes for a reader that folds compatibility characters.
	for _, r := range s {
		if r > unicode.MaxASCII && strings.ContainsAny(norm.NFKC.String(string(r)), `./\%*?[]{}:`) {
			return "it holds a character that others read as " + strconv.Quote(norm.NFKC.String(string(r)))
		}
	}
	return ""
}

func pathContains(outer, inner string) bool {
	if outer == everything {
		return true
	}
	root, subtree := strings.CutSuffix(outer, below)
	if !subtree {
		return outer == inner
	}
	path := strings.TrimSuffix(inner, below)
	return path == root || strings.HasPrefix(path, root+"/")
}

// quoted quotes text from outside for a message, at most about 80 bytes of it and in ASCII only, so that what
// looks like something else is shown as what it is.
func quoted(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.QuoteToASCII(strings.ToValidUTF8(s[:most], "")) + "…"
	}
	return strconv.QuoteToASCII(s)
}
