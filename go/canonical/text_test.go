package canonical_test

import (
	"bytes"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
)

// Every byte is found wherever it stands among plain ones, and the first of two.
func TestPlainRunEndsAtTheFirstByteThatIsNotPlain(t *testing.T) {
	plain := func(c byte) bool { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\' }
	for length := 1; length <= 24; length++ {
		for at := range length {
			for c := range 256 {
				b := bytes.Repeat([]byte{'!'}, length) // '!' is '"' but for one bit
				b[at] = byte(c)
				want := length
				if !plain(byte(c)) {
					want = at
				}
				if got, text := canonical.PlainRun(b), canonical.PlainRun(string(b)); got != want || text != want {
					t.Fatalf("byte %#02x at %d of %d: a run of %d bytes, of text %d, want %d", c, at, length, got, text, want)
				}
				if at+1 < length {
					b[length-1] = 0
					if got := canonical.PlainRun(b); got != min(want, length-1) {
						t.Fatalf("byte %#02x at %d of %d before a zero: a run of %d bytes", c, at, length, got)
					}
				}
			}
		}
	}
}
