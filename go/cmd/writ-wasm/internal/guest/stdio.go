package guest

import (
	"errors"
	"sync"
)

// stdio keeps what a guest prints, both streams within one limit. Beyond it, nothing is kept and over is called.
type stdio struct {
	over func()

	// mu guards left and what the streams hold.
	mu       sync.Mutex
	left     int64
	exceeded bool
	out, err stream
}

func newStdio(limit int64, over func()) *stdio {
	s := &stdio{left: limit, over: over}
	s.out.owner, s.err.owner = s, s
	return s
}

type stream struct {
	owner *stdio
	data  []byte
}

var errPrinted = errors.New("the guest printed more than its limit")

// Write implements io.Writer.
func (w *stream) Write(b []byte) (int, error) {
	s := w.owner
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(int64(len(b)), s.left)
	w.data = append(w.data, b[:n]...)
	s.left -= n
	if n < int64(len(b)) {
		s.exceeded = true
		s.over()
		return int(n), errPrinted
	}
	return int(n), nil
}
