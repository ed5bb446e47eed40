// Package worker is the host's side of a confined worker: it starts one from sealed bytes, hands it a tool and
// inputs, lets the tool run once, and takes the outputs, all as bytes over a socket pair.
//
// A worker is a resource with a name. Its directory holds a lock that the worker itself keeps, so the kernel
// frees it exactly when the worker is dead, whoever killed it; Resolve finds and removes by name alone what a
// crash of the host left behind.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/reason"
)

// Limits bound a worker and its guest; see the fields.
type Limits = wire.Limits

// Order says for which order a worker works.
type Order = wire.Order

// Provision says what a worker is provisioned with.
type Provision = wire.Provision

// Left is what a reset has left.
type Left = wire.Left

// Limit names one limit.
type Limit = wire.Limit

// Entry is one file or directory of the workspace.
type Entry = wire.Entry

// Worker is one living or dead worker. Its calls are made one at a time; concurrent ones wait for each other.
// Kill, Alive, Wait and Stderr may be called at any time. When the context of a call ends before its answer, the
// worker is killed: half a conversation cannot be taken up again.
type Worker struct {
	dir    string
	name   string
	order  Order
	child  *confine.Child
	stderr *capture

	// mu guards socket and lastID: one request and its answer at a time.
	mu     sync.Mutex
	socket *os.File
	lastID uint64
}

// Name returns the name of the resource.
func (w *Worker) Name() string { return w.name }

// Order returns the order that the worker was started with and serves.
func (w *Worker) Order() Order { return w.order }

// PID returns the number of the worker's process.
func (w *Worker) PID() int { return w.child.PID() }

// Alive reports whether the worker has not ended yet.
func (w *Worker) Alive() bool { return w.child.Alive() }

// Kill kills the worker. What its guest did is gone with its memory. It is no error when it is dead already.
func (w *Worker) Kill() error { return w.child.Kill() }

// Wait waits until the worker has ended.
func (w *Worker) Wait(ctx context.Context) error {
	_, err := w.child.Wait(ctx)
	return err
}

// Stderr returns the first bytes that the worker itself (not its guest) wrote to standard error: a crash report
// or nothing.
func (w *Worker) Stderr() string { return w.stderr.String() }

// Close kills the worker, waits for its end, and removes its directory. It is idempotent.
func (w *Worker) Close(ctx context.Context) error {
	if err := w.Kill(); err != nil {
		return err
	}
	if err := w.Wait(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	err := w.socket.Close()
	w.mu.Unlock()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	_, resolveErr := Resolve(ctx, w.dir, w.name)
	return errors.Join(err, resolveErr)
}

// Provision hands the tool over and returns what the worker measured of itself once it had compiled the tool and
// confined itself. Nothing of the tool has run then. p.CacheDir is a private directory of compiled code, or "":
// whoever may write there may choose what runs inside the confinement. The report is for the caller to compare.
func (w *Worker) Provision(ctx context.Context, module []byte, p Provision) (attestation.Report, error) {
	resp, _, err := w.call(ctx, wire.Request{Verb: wire.VerbProvision, Provision: &p}, module)
	if err != nil {
		return attestation.Report{}, fmt.Errorf("provision worker %s: %w", w.name, err)
	}
	if resp.Report == nil {
		return attestation.Report{}, w.broken("it answered provision without a report")
	}
	return *resp.Report, nil
}

// Reset has the worker forget its inputs, its workspace and its tool, and returns what it then measured of itself and
// what it counted that is left. It serves nothing afterwards. Only a worker that was provisioned for it can be reset.
func (w *Worker) Reset(ctx context.Context) (attestation.Report, Left, error) {
	resp, _, err := w.call(ctx, wire.Request{Verb: wire.VerbReset}, nil)
	if err != nil {
		return attestation.Report{}, Left{}, fmt.Errorf("reset worker %s: %w", w.name, err)
	}
	if resp.Report == nil || resp.Left == nil {
		return attestation.Report{}, Left{}, w.broken("it answered reset without a report and a count")
	}
	return *resp.Report, *resp.Left, nil
}

// call sends one request and takes its answer. A refusal of the worker is returned as reason.Refusal.
func (w *Worker) call(ctx context.Context, req wire.Request, body []byte) (wire.Response, []byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.exchange(ctx, req, body, true, nil)
}

// exchange is call for a caller that holds mu. Without answer it only sends. What is offered before the answer goes to
// offered, which must not wait; where that is nil, nothing may be offered.
func (w *Worker) exchange(ctx context.Context, req wire.Request, body []byte, answer bool, offered func([]byte)) (wire.Response, []byte, error) {
	if err := ctx.Err(); err != nil {
		return wire.Response{}, nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		_ = w.Kill() // its end closes the socket, which wakes the call
		_ = w.socket.SetDeadline(time.Unix(1, 0))
	})
	defer stop()
	w.lastID++
	req.Order, req.ID = w.order, w.lastID
	if err := wire.WriteFrame(w.socket, &req, body); err != nil {
		if _, ours := reason.As(err); ours {
			return wire.Response{}, nil, err // Refused here, before anything was sent.
		}
		// A worker that refuses says so before it ends, and then the pipe breaks.
		var last wire.Response
		if _, read := wire.ReadFrame(w.socket, &last, func() int64 { return wire.MaxAnswer }); read == nil && last.Refusal != nil {
			return wire.Response{}, nil, last.Refusal.Err()
		}
		return wire.Response{}, nil, w.lost(ctx, err)
	}
	if !answer {
		return wire.Response{}, nil, nil
	}
	for {
		resp, out, err := w.receive(ctx, req.Run)
		if err != nil || resp.Offered == nil {
			return resp, out, err
		}
		if offered == nil || resp.Offered.Bytes != int64(len(out)) {
			return wire.Response{}, nil, w.broken("it offered a checkpoint that nobody may take")
		}
		offered(out)
	}
}

// receive takes one answer to the last request. run is that request's member, if it was a run: nothing else has offers,
// and the bound of theirs is the host's own.
func (w *Worker) receive(ctx context.Context, run *wire.Run) (wire.Response, []byte, error) {
	var resp wire.Response
	out, err := wire.ReadFrame(w.socket, &resp, func() int64 {
		switch {
		case resp.Offered == nil:
			return wire.MaxAnswer
		case run == nil:
			return 0
		}
		return run.MaxOffer
	})
	if err != nil {
		return wire.Response{}, nil, w.lost(ctx, err)
	}
	if resp.Order != w.order || resp.ID != w.lastID {
		return wire.Response{}, nil, w.broken(fmt.Sprintf("it answered request %d of %+v, asked was %d of %+v", resp.ID, resp.Order, w.lastID, w.order))
	}
	if resp.Refusal != nil {
		return wire.Response{}, nil, resp.Refusal.Err()
	}
	return resp, out, nil
}

// broken ends a worker that does not keep to the protocol.
func (w *Worker) broken(what string) error {
	return reason.New(reason.EnvironmentProtocol, "the worker broke the protocol: "+what, w.name, "the worker was killed; make a new attempt").Because(w.Kill())
}

// lost says why the conversation broke off: the context ended, the worker broke the protocol, or it died.
func (w *Worker) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("worker %s was killed: %w", w.name, context.Cause(ctx))
	}
	if _, ok := reason.As(err); ok {
		return errors.Join(err, w.Kill())
	}
	// The socket closes when the process ends, a moment before it can be reaped; a worker that closed it and
	// lives is of no more use.
	_ = w.Kill()
	waitCtx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	state, waitErr := w.child.Wait(waitCtx)
	if waitErr != nil {
		return errors.Join(err, waitErr)
	}
	if !errors.Is(err, io.EOF) {
		err = fmt.Errorf("socket: %w", err)
	}
	return died(w.name, state, w.stderr.String()).Because(err)
}
