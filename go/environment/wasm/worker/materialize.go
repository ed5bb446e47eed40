package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
)

// File is one input of the guest, read-only for it as /inputs/Mount/Path.
type File struct {
	Mount string
	// Path is relative, with slashes, in clean form and valid UTF-8.
	Path string
	// Digest is over the whole content; the worker checks what arrived against it.
	Digest canonical.Digest
	// Bytes is the content, unless Reader is set.
	Bytes []byte
	// Reader gives the content; it is read to its end.
	Reader io.Reader
}

// Materialize copies the files into the worker. It fails with materialize.changed when a content is not what its
// digest says, with materialize.too_large or materialize.unsupported_entry for inputs that the worker does not
// take, and with environment.dead. After a failure the worker is of no more use.
func (w *Worker) Materialize(ctx context.Context, files []File) error {
	for _, f := range files {
		if err := w.put(ctx, f); err != nil {
			return fmt.Errorf("materialize %s/%s: %w", f.Mount, f.Path, err)
		}
	}
	return nil
}

func (w *Worker) put(ctx context.Context, f File) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := f.Reader
	if r == nil {
		r = bytes.NewReader(f.Bytes)
	}
	buf := make([]byte, wire.MaxPiece)
	for offset := int64(0); ; {
		n, err := io.ReadFull(r, buf)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return fmt.Errorf("read input: %w", err)
		}
		req := wire.Request{Verb: wire.VerbPut, Put: &wire.Put{Mount: f.Mount, Path: f.Path, Offset: offset, Last: last, Digest: f.Digest}}
		if _, _, err := w.exchange(ctx, req, buf[:n], last, nil); err != nil || last {
			return err
		}
		offset += int64(n)
	}
}
