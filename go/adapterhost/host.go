// Package adapterhost starts pinned adapter binaries and contains them. An adapter is a go-plugin process that is
// executed from sealed memory, reaches the host over mutual TLS with keys made for that start, and has nothing of the
// host but the host services of the attempts that it was activated for. Whatever it does (crash, hang, flood, speak
// another protocol, contradict itself) ends in a refusal within a deadline; its workload lives in the environment and
// not in it, so it can be killed at any time and started again.
package adapterhost

import (
	"context"
	"fmt"
	"sync"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Host runs one adapter binary, as one process at a time. It is safe for concurrent use. Attempts that are activated
// on one host share the process: one that is killed for the sake of one attempt is a lost answer to the others. A host
// for each attempt keeps them apart.
type Host struct {
	config Config

	// starting holds a token while a process is being started.
	starting chan struct{}

	// mu guards the rest.
	mu       sync.Mutex
	current  *process
	sessions map[workorder.AttemptID]*Session
	// failures counts processes in a row that ended without an answer.
	failures int
	closed   bool
}

// Launch starts the adapter and holds what it says of itself against its pinned manifest. It fails with
// adapter.unavailable, adapter.protocol or adapter.lied.
func Launch(ctx context.Context, c Config) (*Host, error) {
	c.Timeouts = c.Timeouts.orDefault()
	h := &Host{config: c, starting: make(chan struct{}, 1), sessions: map[workorder.AttemptID]*Session{}}
	if _, err := h.process(ctx); err != nil {
		return nil, err
	}
	return h, nil
}

// PID returns the number of the adapter's process, 0 while there is none.
func (h *Host) PID() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == nil || !h.current.alive() {
		return 0
	}
	return h.current.runner.process().PID()
}

// Activate makes the adapter usable for one attempt, and the attempt's services reachable for it. The bundle must pin
// exactly this adapter. A session lasts until it is closed; an attempt has one at a time.
func (h *Host) Activate(b *attemptbundle.Compiled, fence workorder.Fence, s Services) (*Session, error) {
	bundle := b.Bundle()
	if pinned := bundle.Pins.Adapter; pinned.Name != h.config.Name || pinned.Digest != h.config.Sealed.Digest() {
		return nil, reason.New(reason.PinDigestMismatch,
			fmt.Sprintf("the attempt bundle pins adapter %s with %s, this one is %s with %s", pinned.Name, pinned.Digest, h.config.Name, h.config.Sealed.Digest()),
			string(fence.Attempt), "start the adapter that the bundle pins")
	}
	if bundle.Attempt.ID != fence.Attempt {
		return nil, reason.New(reason.BundleDigestMismatch, "the attempt bundle is for another attempt than the fence", string(fence.Attempt), "this is a fault of the caller: report it")
	}
	session := newSession(h, b, fence, s)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.sessions[fence.Attempt] != nil {
		return nil, reason.New(reason.KernelWrongState, "the adapter's host is closed, or the attempt is active on it already", string(fence.Attempt), "close the session first")
	}
	h.sessions[fence.Attempt] = session
	return session, nil
}

// session returns the session of an attempt, nil if there is none.
func (h *Host) session(id workorder.AttemptID) *Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[id]
}

func (h *Host) forget(id workorder.AttemptID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, id)
}

// process returns the living process, and starts one where there is none. An error means that no call was made.
func (h *Host) process(ctx context.Context) (*process, error) {
	select {
	case h.starting <- struct{}{}:
		defer func() { <-h.starting }()
	case <-ctx.Done():
		return nil, unavailable(h.config.Name, "the wait for its start was ended", ctx.Err())
	}
	h.mu.Lock()
	current, closed, failures := h.current, h.closed, h.failures
	h.mu.Unlock()
	switch {
	case closed:
		return nil, unavailable(h.config.Name, "its host is closed", nil)
	case current != nil && current.alive():
		return current, nil
	case failures >= maxFailures:
		return nil, unavailable(h.config.Name, fmt.Sprintf("%d starts in a row ended without an answer", failures), nil)
	}
	if current != nil {
		current.close()
	}
	p, err := newProcess(ctx, h.config, &services{host: h})
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.current = nil
		h.failures++
		return nil, err
	}
	h.current = p
	if h.closed {
		h.current = nil
		p.close()
		return nil, unavailable(h.config.Name, "its host is closed", nil)
	}
	return p, nil
}

// answered notes that a process works.
func (h *Host) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures = 0
}

// condemn kills a process that cannot be trusted any more, and returns when nothing can come of its calls.
func (h *Host) condemn(p *process) {
	p.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures++
}

// Close kills the adapter, waits for its end and removes its sockets. Sessions are refused from then on. It may be
// called several times.
func (h *Host) Close() error {
	h.mu.Lock()
	current, sessions := h.current, h.sessions
	h.closed, h.current, h.sessions = true, nil, map[workorder.AttemptID]*Session{}
	h.mu.Unlock()
	for _, s := range sessions {
		s.end()
	}
	if current != nil {
		current.close()
	}
	return nil
}
