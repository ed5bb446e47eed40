package adapterhost

import (
	"strings"
	"sync"

	"github.com/writ-runtime/writ/go/api/wire"
)

// tailSize is how many of an adapter's last printed bytes are kept.
const tailSize = 4 << 10

// tail keeps the last bytes that were written to it. It is safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write keeps the last tailSize bytes.
func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(b) > tailSize {
		b = b[len(b)-tailSize:]
	}
	if over := len(t.buf) + len(b) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, b...)
	return n, nil
}

// last returns the last line that holds anything, at most 200 bytes of it, fit for a terminal.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.buf)), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	if len(line) > 200 {
		line = line[:200]
	}
	return wire.Printable(strings.ToValidUTF8(line, ""))
}
