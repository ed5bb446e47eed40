package projection

import (
	"context"
	"sync"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/lifecycle"
)

// View is the index of a journal that grows, whoever writes to it: each time it is asked it
// takes up the turns that were recorded since. Its methods are safe for concurrent use.
type View struct {
	journal  journal.Reader
	registry *lifecycle.Registry

	mu sync.Mutex
	// builder is nil where nothing is taken up.
	builder *Builder
}

// NewView returns a view that has taken up nothing yet.
func NewView(j journal.Reader, registry *lifecycle.Registry) *View {
	return &View{journal: j, registry: registry}
}

// Index returns the index of the journal as it stands now. It is the caller's.
func (v *View) Index(ctx context.Context) (*Index, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	b := v.builder
	v.builder = nil // After an error it begins anew.
	if b != nil {
		if stands, err := b.stands(ctx); err != nil {
			return nil, err
		} else if !stands {
			b = nil
		}
	}
	if b == nil {
		b = NewBuilder(v.journal, v.registry)
	}
	if err := Read(ctx, v.journal, b.index.Sequence, 0, func(e journal.Entry) error { return b.Add(ctx, e) }); err != nil {
		return nil, err
	}
	v.builder = b
	return b.Index(), nil
}

// stands reports whether the journal still begins with the turns that were added: one that was
// recovered meanwhile may have gone on from an earlier one.
func (b *Builder) stands(ctx context.Context) (bool, error) {
	if b.index.Sequence == 0 {
		return true, nil
	}
	last, err := b.journal.Page(ctx, b.index.Sequence-1, 1)
	return len(last) == 1 && last[0].Sequence == b.index.Sequence && last[0].Chain == b.index.Chain, err
}

// Build reads the whole journal, page by page, and returns its index.
func Build(ctx context.Context, j journal.Reader, registry *lifecycle.Registry) (*Index, error) {
	return NewView(j, registry).Index(ctx)
}
