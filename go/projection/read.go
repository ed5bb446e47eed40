package projection

import (
	"context"

	"github.com/writ-runtime/writ/go/journal"
)

// pageSize is how many turns are read at a time: enough that asking costs nothing, few
// enough that three pages are no memory.
const pageSize = 250

// Read calls f for every turn of a journal after one, up to and including another, or to its
// end for 0, in order. While f looks at a page the next is read.
func Read(ctx context.Context, j journal.Reader, after, until uint64, f func(journal.Entry) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type page struct {
		entries []journal.Entry
		err     error
	}
	pages := make(chan page, 1)
	go func() {
		defer close(pages)
		for {
			entries, err := j.Page(ctx, after, pageSize)
			select {
			case pages <- page{entries, err}:
			case <-ctx.Done():
				return
			}
			if err != nil || len(entries) < pageSize {
				return
			}
			after = entries[len(entries)-1].Sequence
		}
	}()
	for p := range pages {
		if p.err != nil {
			return p.err
		}
		for _, e := range p.entries {
			if until > 0 && e.Sequence > until {
				return nil
			}
			if err := f(e); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
