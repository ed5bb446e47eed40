package way

import (
	"context"
	"sync"
	"time"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/supervisor"
)

// Account says what one attempt took.
type Account struct {
	State  kernel.State
	Bundle *attemptbundle.Compiled
	// Admit is from the document to an admitted order, the first commit included; Total
	// is the whole way.
	Admit, Total time.Duration
	// Steps holds how long each operation took, as the ledger measured it.
	Steps map[operation.Kind]time.Duration
	// Commits holds how long each turn took to be durable, the first one first.
	Commits []time.Duration
}

func newAccount(a *admission.Admitted, admit time.Duration) *Account {
	return &Account{Bundle: a.Bundle, Admit: admit, Steps: map[operation.Kind]time.Duration{}}
}

func (a *Account) observe(s supervisor.Step) {
	if s.Done {
		a.Steps[s.Operation] += time.Duration(s.Micros) * time.Microsecond
	}
}

// timedStore is a journal that remembers how long its appends took, attempt by attempt.
type timedStore struct {
	journal.Store

	// mu guards spent.
	mu    sync.Mutex
	spent map[string][]time.Duration
}

func newTimedStore(s journal.Store) *timedStore {
	return &timedStore{Store: s, spent: map[string][]time.Duration{}}
}

// Append implements journal.Appender.
func (s *timedStore) Append(ctx context.Context, batches ...journal.Batch) ([]journal.Result, error) {
	begun := time.Now()
	results, err := s.Store.Append(ctx, batches...)
	took := time.Since(begun)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range batches {
		attempt := b.Identity.Scope()
		s.spent[attempt] = append(s.spent[attempt], took)
	}
	return results, err
}

// take returns the durations of an attempt and forgets them.
func (s *timedStore) take(attempt string) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	spent := s.spent[attempt]
	delete(s.spent, attempt)
	return spent
}
