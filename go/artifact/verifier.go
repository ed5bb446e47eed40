package artifact

import (
	"context"
	"errors"
	"io"

	"github.com/writ-runtime/writ/go/canonical"
)

// verifier passes bytes on and answers artifact.corrupt in place of io.EOF when their
// digest is another.
type verifier struct {
	ctx  context.Context
	body io.ReadCloser
	hash *canonical.Hasher
	want canonical.Digest
}

func (v *verifier) Read(p []byte) (int, error) {
	if err := v.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := v.body.Read(p)
	_, _ = v.hash.Write(p[:n])
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, refuse(err, "an artifact cannot be read", string(v.want))
	case v.hash.Digest() != v.want:
		return n, corrupt(v.want, "a stored artifact no longer has its digest")
	}
	return n, io.EOF
}

func (v *verifier) Close() error { return v.body.Close() }
