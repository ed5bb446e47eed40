package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	driver "modernc.org/sqlite"
)

// checkHeader holds the first 100 bytes of the file against what every journal has
// there (https://www.sqlite.org/fileformat2.html, 1.3). SQLite takes some values of
// these fields for a wish, such as never to write, and not for damage.
//
// What stays unchecked are counters that change with every write or with the schema,
// and that nothing is decided by in a file with a write-ahead log.
func checkHeader(path string) (finding string, err error) {
	// Without locks by open file description, closing the file would take away the
	// locks that SQLite holds on it in this process.
	if !driver.OFDLockingEnabled() {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var h [100]byte
	switch _, err := io.ReadFull(f, h[:]); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "", nil // all of it is still in the write-ahead log
	case err != nil:
		return "", err
	}
	field := func(at int) uint32 { return binary.BigEndian.Uint32(h[at:]) }
	for _, c := range []struct {
		name  string
		sound bool
	}{
		{"magic", string(h[:16]) == "SQLite format 3\x00"},
		{"page size", binary.BigEndian.Uint16(h[16:]) == 4096},
		// 2 is with a write-ahead log; 1 without, as a recovery leaves it for a moment.
		{"write and read version", h[18] == h[19] && (h[18] == 2 || h[18] == 1)},
		{"reserved space and payload fractions", h[20] == 0 && h[21] == 64 && h[22] == 32 && h[23] == 32},
		// The page may be from before the first table was made.
		{"schema format", field(44) == 4 || field(44) == 0},
		{"cache size", field(48) == 0},
		{"vacuum mode", field(52) == 0 && field(64) == 0},
		{"text encoding", field(56) == 1 || field(56) == 0},
		{"user version", field(60) == userVersion || field(60) == 0},
		{"application", field(68) == applicationID || field(68) == 0},
		{"reserved bytes", string(h[72:92]) == string(make([]byte, 20))},
	} {
		if !c.sound {
			return fmt.Sprintf("the %s in the file's header is wrong", c.name), nil
		}
	}
	return "", nil
}
