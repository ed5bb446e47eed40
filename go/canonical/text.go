package canonical

import (
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

func validText(s string) bool { return utf8.ValidString(s) }

// compareUTF16 orders names by their UTF-16 code units (RFC 8785, 3.2.3). Both must be valid UTF-8. Bytes of
// UTF-8 already sort by code point, and the two orders differ in one case only: a character beyond U+FFFF (first
// byte 0xf0 and up) begins with a surrogate, U+D800 to U+DBFF, and so sorts before U+E000 to U+FFFF (first byte
// 0xee or 0xef). Continuation bytes are below 0xc0, so bytes from 0xee up are always first bytes.
func compareUTF16(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i == n {
		return len(a) - len(b)
	}
	x, y := int(a[i]), int(b[i])
	if x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0) {
		return y - x
	}
	return x - y
}

func sortedMembers(members []Member) []Member {
	byName := func(a, b Member) int { return compareUTF16(a.Name, b.Name) }
	if slices.IsSortedFunc(members, byName) {
		return members
	}
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, byName)
	return sorted
}

// mustEscape reports whether RFC 8785 (3.2.2.2) writes the byte as an escape. Everything else, U+007F and all
// of non-ASCII included, is written as it is.
func mustEscape(c byte) bool { return c < 0x20 || c == '"' || c == '\\' }

// plainRun is how many bytes at the start of s are ASCII that stands in a string as it is. It looks at eight bytes
// at a time, since strings are most of every document: whether any of them is below a bound, or zero after a
// subtraction, shows in their highest bits, of which the lowest that is set is right.
func plainRun[T string | []byte](s T) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; len(s)-i >= 8; i += 8 {
		x := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		quote, backslash := x^ones*'"', x^ones*'\\'
		if special := (x | (x-ones*0x20)&^x | (quote-ones)&^quote | (backslash-ones)&^backslash) & high; special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for i < len(s) && s[i] < utf8.RuneSelf && !mustEscape(s[i]) {
		i++
	}
	return i
}

// appendQuoted appends s, which must be valid UTF-8, as a JSON string in the form of RFC 8785.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := plainRun(s); i < len(s); i++ {
		if !mustEscape(s[i]) {
			continue
		}
		dst = append(dst, s[from:i]...)
		dst = appendEscape(dst, s[i])
		from = i + 1
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	if i := strings.IndexByte("\b\t\n\f\r\"\\", c); i >= 0 {
		return append(dst, '\\', "btnfr\"\\"[i])
	}
	const hexDigits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}
