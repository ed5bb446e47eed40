package sqlite

import (
	"context"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/reason"
)

// request is one call of Append, or a halt, on its way through the writer.
type request struct {
	batches []*journal.Encoded // nil where the batch was refused before it got here
	results []journal.Result
	halt    *journal.Damage
	err     error
	done    chan struct{}
}

// Append appends the batches in order, in one commit that others may share; see
// journal.Appender.
func (s *Store) Append(ctx context.Context, batches ...journal.Batch) ([]journal.Result, error) {
	if err := s.Health(); err != nil {
		return nil, err
	}
	if len(batches) == 0 {
		return nil, nil
	}
	req := &request{
		batches: make([]*journal.Encoded, len(batches)),
		results: make([]journal.Result, len(batches)),
		done:    make(chan struct{}),
	}
	for i, b := range batches {
		e, err := journal.Encode(b)
		if err != nil {
			req.results[i].Err = err
			continue
		}
		req.batches[i] = e
	}
	if err := s.submit(ctx, req); err != nil {
		return nil, err
	}
	if req.err != nil {
		return nil, req.err
	}
	return req.results, nil
}

// submit hands a request to the writer and waits for its answer.
func (s *Store) submit(ctx context.Context, req *request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	if s.closed || s.writer == nil {
		s.mu.RUnlock()
		return reason.New(reason.InternalBug, "the journal is closed", s.path, "this is a fault of the caller: report it")
	}
	select {
	case s.writer.queue <- req:
		s.mu.RUnlock()
	case <-ctx.Done():
		s.mu.RUnlock()
		return ctx.Err()
	}
	// From here on the commit is under way, and only its outcome is the truth.
	<-req.done
	return nil
}

// weight is the number of batches and of bytes that a request adds to a group.
func (r *request) weight() (batches, bytes int) {
	for _, e := range r.batches {
		if e != nil {
			batches++
			bytes += len(e.Body)
			for _, b := range e.Blobs {
				bytes += len(b.Bytes)
			}
		}
	}
	return batches, bytes
}
