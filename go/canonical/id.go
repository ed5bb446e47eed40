package canonical

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/writ-runtime/writ/go/reason"
)

// Registered id prefixes. A prefix is lower-case letters and ends in an underscore.
const (
	PrefixWorkOrder   = "wo_"
	PrefixAttempt     = "att_"
	PrefixReservation = "res_"
	PrefixDecision    = "dec_"
	PrefixDelivery    = "dlv_"
	PrefixIntent      = "int_"
	PrefixReceipt     = "rcp_"
	PrefixEvent       = "evt_"
	PrefixLease       = "lse_"
	PrefixGrant       = "grt_"
)

// ID is a typed id: a prefix such as "wo_" and the text of a UUIDv7 (RFC 9562), lower case with hyphens. Ids of
// one prefix sort by the millisecond they were minted in.
type ID string

// uuidLen is the length of a UUID's text.
const uuidLen = 36

// maxUnixMilli is the largest time a UUIDv7 holds, 48 bits of milliseconds.
const maxUnixMilli = 1<<48 - 1

// MintID returns a new id of that prefix. unixMilli is the time in milliseconds since 1970 UTC; random supplies
// ten bytes. Errors: a malformed prefix or time (internal.bug), and what random returns.
func MintID(prefix string, unixMilli int64, random io.Reader) (ID, error) {
	var entropy [10]byte
	if _, err := io.ReadFull(random, entropy[:]); err != nil {
		return "", fmt.Errorf("mint %s id: read random bytes: %w", prefix, err)
	}
	return mint(prefix, unixMilli, binary.BigEndian.Uint16(entropy[:2])&0xfff, entropy[2:])
}

// mint lays out a UUIDv7: 48 bits of time, the version, 12 bits rand_a, the variant, 62 bits rand_b.
func mint(prefix string, unixMilli int64, randA uint16, randB []byte) (ID, error) {
	if !validPrefix(prefix) {
		return "", reason.New(reason.InternalBug, fmt.Sprintf("%s is not an id prefix", QuoteShort(prefix)), "", "use lower-case letters and an underscore")
	}
	if unixMilli < 0 || unixMilli > maxUnixMilli {
		return "", reason.New(reason.InternalBug, fmt.Sprintf("time %d ms does not fit an id", unixMilli), "", "check the clock")
	}
	var u [16]byte
	binary.BigEndian.PutUint64(u[:8], uint64(unixMilli)<<16|0x7000|uint64(randA))
	copy(u[8:], randB)
	u[8] = u[8]&0x3f | 0x80
	text := make([]byte, 0, len(prefix)+uuidLen)
	text = append(text, prefix...)
	for i, part := range [][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return ID(text), nil
}

// ParseID returns s as an ID of that prefix, or a Refusal with code id.malformed.
func ParseID(prefix, s string) (ID, error) {
	got, ok := MatchPrefix(s)
	if !ok || got != prefix || len(s) != len(prefix)+uuidLen {
		return "", reason.New(reason.IDMalformed, fmt.Sprintf("%s is not an id of type %s", QuoteShort(s), strings.TrimSuffix(prefix, "_")), "",
			fmt.Sprintf("write the whole id, %s and a UUID in lower case", prefix))
	}
	return ID(s), nil
}

// MatchPrefix reports whether s is an id or could be the beginning of one, and of which prefix. At least one
// hexadecimal digit must follow the prefix. Use it before a look-up by unique prefix.
func MatchPrefix(s string) (prefix string, ok bool) {
	cut := strings.IndexByte(s, '_') + 1
	prefix, rest := s[:cut], s[cut:]
	if !validPrefix(prefix) || rest == "" || len(rest) > uuidLen {
		return "", false
	}
	for i := range len(rest) {
		if !uuidByte(i, rest[i]) {
			return "", false
		}
	}
	return prefix, true
}

// uuidByte reports whether c may stand at place i of a UUIDv7's text.
func uuidByte(i int, c byte) bool {
	switch i {
	case 8, 13, 18, 23:
		return c == '-'
	case 14:
		return c == '7'
	case 19:
		return c == '8' || c == '9' || c == 'a' || c == 'b'
	default:
		return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')
	}
}

func validPrefix(p string) bool {
	if len(p) < 2 || len(p) > 8 || p[len(p)-1] != '_' {
		return false
	}
	for _, c := range []byte(p[:len(p)-1]) {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// Valid reports whether the id is whole and well formed, of whatever prefix.
func (id ID) Valid() bool {
	prefix, ok := MatchPrefix(string(id))
	return ok && len(id) == len(prefix)+uuidLen
}

// Prefix returns the type prefix with its underscore, or "" when the id is not Valid.
func (id ID) Prefix() string {
	if !id.Valid() {
		return ""
	}
	return string(id[:len(id)-uuidLen])
}

// UnixMilli returns the millisecond the id was minted in, or -1 when the id is not Valid. An IDSource may have
// run ahead of its clock, so this is for people and not for decisions.
func (id ID) UnixMilli() int64 {
	prefix := id.Prefix()
	if prefix == "" {
		return -1
	}
	text := string(id[len(prefix):])
	raw, err := hex.DecodeString(text[:8] + text[9:13])
	if err != nil {
		return -1
	}
	return int64(binary.BigEndian.Uint32(raw[:4]))<<16 | int64(binary.BigEndian.Uint16(raw[4:]))
}
