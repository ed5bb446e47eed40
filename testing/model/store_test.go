package model_test

import (
	"context"
	"errors"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
)

// store is the real journal, with an acknowledgement that may be lost: in the next append
// before anything is stored, or after it.
type store struct {
	*sqlite.Store
	next lossOf
	// stored says whether the last append stored something new.
	stored bool
}

type lossOf int

const (
	nothing lossOf = iota
	theTurn
	theAnswer
)

var errLost = errors.New("the connection to the disk was lost")

// Append implements journal.Appender.
func (s *store) Append(ctx context.Context, batches ...journal.Batch) ([]journal.Result, error) {
	loss := s.next
	s.next, s.stored = nothing, false
	if loss == theTurn {
		return nil, errLost
	}
	results, err := s.Store.Append(ctx, batches...)
	s.stored = err == nil && results[0].Err == nil && !results[0].Replayed
	if loss == theAnswer {
		return nil, errLost
	}
	return results, err
}
