package worker

import (
	"context"
	"fmt"
	"io"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
)

// List returns every entry of the workspace, by path. The guest has ended, so nothing changes any more.
func (w *Worker) List(ctx context.Context) ([]Entry, error) {
	resp, body, err := w.call(ctx, wire.Request{Verb: wire.VerbList}, nil)
	if err != nil {
		return nil, fmt.Errorf("list workspace of %s: %w", w.name, err)
	}
	v, err := canonical.Parse(body, canonical.Limits{Bytes: wire.MaxAnswer, Depth: 8, Values: 8_000_000})
	if err != nil {
		return nil, w.broken("its listing is malformed: " + err.Error())
	}
	var l wire.Listing
	if err := v.Decode(&l); err != nil {
		return nil, w.broken("its listing is malformed: " + err.Error())
	}
	if resp.Listed == nil || resp.Listed.Entries != int64(len(l.Entries)) {
		return nil, w.broken("its listing has another length than it said")
	}
	return l.Entries, nil
}

// Open returns a reader over a file of the workspace. Each Read asks the worker for at most one piece; the
// context bounds all of them. That there is no such file shows at the first Read.
func (w *Worker) Open(ctx context.Context, path string) io.Reader {
	return &outputReader{ctx: ctx, worker: w, path: path}
}

type outputReader struct {
	ctx    context.Context
	worker *Worker
	path   string
	offset int64
}

// Read implements io.Reader.
func (r *outputReader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	req := wire.Request{Verb: wire.VerbRead, Read: &wire.Read{Path: r.path, Offset: r.offset, Length: int64(min(len(b), wire.MaxPiece))}}
	_, body, err := r.worker.call(r.ctx, req, nil)
	if err != nil {
		return 0, fmt.Errorf("read %s in workspace of %s: %w", r.path, r.worker.name, err)
	}
	if len(body) > len(b) {
		return 0, r.worker.broken("it answered a read with more bytes than were asked for")
	}
	if len(body) == 0 {
		return 0, io.EOF
	}
	r.offset += int64(len(body))
	return copy(b, body), nil
}
