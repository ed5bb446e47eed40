package serve

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/reason"
)

// input is a file of which pieces have arrived.
type input struct {
	mount, path string
	digest      canonical.Digest
	data        []byte
}

// piece takes one piece of an input and, with the last, adds the file to the tree.
func (s *Server) piece(p wire.Put, body []byte) (*wire.Response, []byte, error) {
	if s.put == nil {
		s.put = &input{mount: p.Mount, path: p.Path, digest: p.Digest}
	}
	in := s.put
	where := in.mount + "/" + in.path
	if p.Mount != in.mount || p.Path != in.path || p.Digest != in.digest || p.Offset != int64(len(in.data)) {
		return nil, nil, reason.New(reason.EnvironmentProtocol, "a piece does not continue the file before it", where, "")
	}
	if int64(len(in.data)+len(body)) > s.hello.Limits.InputBytes {
		return nil, nil, reason.New(reason.MaterializeTooLarge, "an input exceeds the limit of all inputs", where, "give smaller inputs, or raise the limit")
	}
	if p.Last && p.Offset == 0 {
		in.data = body // the common case: a small file in one piece needs no copy
	} else {
		in.data = append(in.data, body...)
	}
	if !p.Last {
		return nil, nil, nil
	}
	s.put = nil
	if got := canonical.Sum(in.data); got != in.digest {
		return nil, nil, reason.New(reason.MaterializeChanged, fmt.Sprintf("an input is not what its digest says: expected %s, received %s", in.digest, got), where,
			"the input changed while it was read; submit the work order again")
	}
	if err := s.tree.AddInput(in.mount, in.path, in.data); err != nil {
		return nil, nil, err
	}
	return &wire.Response{}, nil, nil
}
