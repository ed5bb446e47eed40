package evidence

import (
	"context"
	"fmt"
	"slices"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
)

// maxRecoveries bounds how many recoveries one journal is read with.
const maxRecoveries = 100_000

// Recovery is one recovery that a journal records.
type Recovery struct {
	kernel.Recovered
	// Turn is the turn that records it, Cause the delivery that asked for it.
	Turn  uint64
	Cause string
}

// Recoveries returns every recovery that a journal records, the oldest first.
func Recoveries(ctx context.Context, j journal.Reader) ([]Recovery, error) {
	subjects, err := j.Subjects(ctx, string(lifecycle.Of(kernel.JournalMachine, kernel.RecoveryPrefix)), maxRecoveries)
	if err != nil {
		return nil, err
	}
	var all []Recovery
	for _, subject := range subjects {
		events, err := j.Events(ctx, subject)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			r := Recovery{Turn: e.Sequence, Cause: e.Cause}
			if err := canonical.Decode(e.Body, &r.Recovered); err != nil {
				return nil, fmt.Errorf("%s: %w", subject, err)
			}
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Recovery) int { return int(a.Turn) - int(b.Turn) })
	return all, nil
}

// Lost returns every artifact that the recoveries gave up.
func Lost(recoveries []Recovery) map[canonical.Digest]bool {
	lost := map[canonical.Digest]bool{}
	for _, r := range recoveries {
		for _, d := range r.Recovered.Lost {
			lost[d] = true
		}
	}
	return lost
}
