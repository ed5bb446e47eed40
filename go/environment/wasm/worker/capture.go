package worker

import (
	"io"
	"os"
	"sync"
)

// capture keeps the first bytes of what a worker writes to its standard error and throws the rest away, so that
// a worker can never block on it.
type capture struct {
	done chan struct{}

	// mu guards kept.
	mu   sync.Mutex
	kept []byte
}

const captureLimit = 16 << 10

func newCapture(r *os.File) *capture {
	c := &capture{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer r.Close()
		_, _ = io.Copy(c, r)
	}()
	return c
}

// Write implements io.Writer and never fails.
func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, b[:min(len(b), captureLimit-len(c.kept))]...)
	return len(b), nil
}

func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.kept)
}
