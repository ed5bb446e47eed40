// Package serve is the conversation of a worker with its host: one request at a time, in the order that the
// protocol allows, until the host closes the socket or dies, upon which the worker ends at once.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/cmd/writ-wasm/internal/guest"
	"github.com/writ-runtime/writ/go/cmd/writ-wasm/internal/measure"
	"github.com/writ-runtime/writ/go/cmd/writ-wasm/internal/memfs"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/reason"
)

// phase is how far a worker is. It only advances.
type phase int

const (
	started phase = iota
	greeted
	provisioned
	ran
	emptied
)

// Server serves one host.
type Server struct {
	socket io.ReadWriter
	self   *measure.Self
	// cpu is closed when the kernel says that the processor time is over.
	cpu <-chan os.Signal

	phase phase
	order wire.Order
	hello wire.Hello
	tree  *memfs.FS
	tool  *guest.Tool
	put   *input

	// resets says that a reset may be asked for; subject and early are what the next report needs.
	resets  bool
	subject measure.Subject
	early   []attestation.Fact
}

// New returns a server that has not been greeted. cpu delivers SIGXCPU.
func New(socket io.ReadWriter, self *measure.Self, cpu <-chan os.Signal) *Server {
	return &Server{socket: socket, self: self, cpu: cpu}
}

// frame is a request with its body, or why there is none.
type frame struct {
	req  wire.Request
	body []byte
	err  error
}

// Serve answers requests until the host is gone, which is no error. Frames are read beside the work: the host's
// end must end a worker whose guest is running, and end is called for that.
func (s *Server) Serve(ctx context.Context, end func()) error {
	frames := make(chan frame)
	var once sync.Once
	go func() {
		for {
			var f frame
			f.body, f.err = wire.ReadFrame(s.socket, &f.req, f.req.MaxBody)
			if errors.Is(f.err, io.EOF) {
				once.Do(end)
			}
			frames <- f
			if f.err != nil {
				return
			}
		}
	}()
	for f := range frames {
		if f.err != nil {
			return f.err
		}
		resp, body, err := s.answer(ctx, &f.req, f.body)
		fatal := err != nil && s.ends(&f.req)
		if err != nil {
			resp, body = &wire.Response{Refusal: wire.Wrap(err)}, nil
		}
		if resp == nil {
			continue
		}
		resp.Order, resp.ID = f.req.Order, f.req.ID
		if err := wire.WriteFrame(s.socket, resp, body); err != nil {
			return err
		}
		if fatal {
			return err
		}
	}
	return nil
}

// ends reports whether the worker is of no more use after it refused the request. Only reading the workspace may
// be tried again.
func (s *Server) ends(req *wire.Request) bool {
	return req.Verb != wire.VerbList && req.Verb != wire.VerbRead
}

// answer returns the response, its body, and no response at all for a piece that is not the last.
func (s *Server) answer(ctx context.Context, req *wire.Request, body []byte) (*wire.Response, []byte, error) {
	if err := req.Check(); err != nil {
		return nil, nil, err
	}
	if err := req.Order.Check(); err != nil {
		return nil, nil, err
	}
	if s.phase != started && req.Order != s.order {
		return nil, nil, reason.New(reason.KernelStaleFence, fmt.Sprintf("the worker serves %+v, the request is of %+v", s.order, req.Order), s.hello.Name, "stop: another owner has the attempt")
	}
	allowed := map[wire.Verb]phase{wire.VerbHello: started, wire.VerbProvision: greeted, wire.VerbPut: provisioned, wire.VerbRun: provisioned, wire.VerbList: ran, wire.VerbRead: ran, wire.VerbReset: ran}
	if s.phase != allowed[req.Verb] || s.put != nil && req.Verb != wire.VerbPut || req.Verb == wire.VerbReset && !s.resets {
		return nil, nil, reason.New(reason.EnvironmentProtocol, "the worker is not ready for "+string(req.Verb), s.hello.Name, "")
	}
	switch req.Verb {
	case wire.VerbHello:
		return s.greet(req)
	case wire.VerbProvision:
		return s.provision(ctx, *req.Provision, body)
	case wire.VerbPut:
		return s.piece(*req.Put, body)
	case wire.VerbRun:
		return s.run(ctx, req)
	case wire.VerbList:
		return s.list()
	case wire.VerbReset:
		return s.reset()
	default:
		data, err := s.tree.ReadAt(req.Read.Path, req.Read.Offset, min(req.Read.Length, wire.MaxPiece))
		return &wire.Response{}, data, err
	}
}

func (s *Server) greet(req *wire.Request) (*wire.Response, []byte, error) {
	if err := req.Hello.Limits.Check(); err != nil {
		return nil, nil, err
	}
	s.order, s.hello, s.phase = req.Order, *req.Hello, greeted
	s.tree = memfs.New(s.hello.Limits)
	return &wire.Response{}, nil, nil
}

func (s *Server) run(ctx context.Context, req *wire.Request) (*wire.Response, []byte, error) {
	r := *req.Run
	if len(r.Args) == 0 || len(r.Seed) > 256 || r.WallMillis <= 0 || r.MaxOffer < 0 || r.MaxOffer > wire.MaxOffer {
		return nil, nil, reason.New(reason.EnvironmentProtocol, "a run needs arguments, a short seed, a wall time and small offers", s.hello.Name, "")
	}
	if r.MaxOffer > 0 {
		s.tree.Offers(r.MaxOffer, func(payload []byte) {
			// Nothing else is written while a guest runs. Where this fails nobody reads any more, and the worker ends.
			_ = wire.WriteFrame(s.socket, &wire.Response{Order: req.Order, ID: req.ID, Offered: &wire.Offered{Bytes: int64(len(payload))}}, payload)
		})
	}
	// Whatever happens to the guest, it does not run twice.
	s.phase = ran
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-s.cpu:
			cancel(guest.ErrCPU)
		case <-ended:
		}
	}()
	res := s.tool.Run(ctx, s.tree, r)
	return &wire.Response{Exit: &res.Exit}, append(res.Stdout, res.Stderr...), nil
}

// reset forgets what the guest was given and what it made, and measures what is left. Nothing is served afterwards.
func (s *Server) reset() (*wire.Response, []byte, error) {
	s.phase = emptied
	s.tool = nil
	s.tree.Wipe()
	var left wire.Left
	left.Files, left.Bytes = s.tree.Left()
	report, err := s.measure()
	if err != nil {
		return nil, nil, err
	}
	s.self.Release()
	return &wire.Response{Report: &report, Left: &left}, nil, nil
}

func (s *Server) list() (*wire.Response, []byte, error) {
	entries := s.tree.List()
	body, err := canonical.Marshal(wire.Listing{Entries: entries})
	if err != nil {
		return nil, nil, fmt.Errorf("encode listing: %w", err)
	}
	if len(body) > wire.MaxAnswer {
		return nil, nil, reason.New(reason.EnvironmentLimitFiles, "the listing of the workspace is larger than an answer may be", s.hello.Name, "have the tool write fewer files, or shorter names")
	}
	return &wire.Response{Listed: &wire.Listed{Entries: int64(len(entries))}}, body, nil
}
