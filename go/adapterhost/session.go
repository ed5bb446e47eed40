package adapterhost

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Session is an adapter that is activated for one attempt: the executor.Adapter of its effects, and the
// executor.Witness of what was done for it.
type Session struct {
	host     *Host
	bundle   *attemptbundle.Compiled
	services Services
	// ended ends with the session, and with it every host service call that waits.
	ended context.Context
	end   context.CancelFunc

	// mu guards the rest.
	mu    sync.Mutex
	fence workorder.Fence
	// starts are the calls under which the adapter may launch.
	starts   map[operation.Key]bool
	launches map[operation.Key][]executor.Launch
	// answers holds the digest of what was answered under a key, so that another answer later is noticed.
	answers map[operation.Key]canonical.Digest
	logged  int
}

var (
	_ executor.Adapter = (*Session)(nil)
	_ executor.Witness = (*Session)(nil)
)

func newSession(h *Host, b *attemptbundle.Compiled, fence workorder.Fence, s Services) *Session {
	ended, end := context.WithCancel(context.Background())
	return &Session{
		host: h, bundle: b, services: s, ended: ended, end: end, fence: fence, starts: map[operation.Key]bool{},
		launches: map[operation.Key][]executor.Launch{}, answers: map[operation.Key]canonical.Digest{},
	}
}

// Fence makes a newer fence the only one under which calls are made and served. An older one is ignored.
func (s *Session) Fence(f workorder.Fence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Attempt == s.fence.Attempt && f.Generation >= s.fence.Generation {
		s.fence = f
	}
}

// Close ends the session: the adapter's calls for the attempt are refused from now on. The process lives on.
func (s *Session) Close() {
	s.end()
	s.host.forget(s.bundle.Bundle().Attempt.ID)
}

// Capabilities returns what the pinned manifest declares.
func (s *Session) Capabilities() executor.Capabilities { return s.host.config.Capabilities }

// Launches returns what the adapter had launched under a start, in order.
func (s *Session) Launches(parent operation.Key) []executor.Launch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.launches[parent])
}

// expect refuses a call that does not carry what the session was activated with (B14), in either direction.
func (s *Session) expect(c protocol.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := c.Expect(s.bundle.Digest(), s.fence); err != nil {
		return err
	}
	b := s.bundle.Bundle()
	if c.Operation.Namespace() != b.Operations.Namespace || c.Operation.Scope() != string(s.fence.Attempt) || c.Operation.Actor() != b.Pins.Adapter.Name {
		return foreign(c, "is not one of this adapter's for this attempt")
	}
	if s.ended.Err() != nil {
		return reason.New(reason.KernelWrongState, "the attempt is not active on this adapter any more", string(c.Operation), "stop")
	}
	return nil
}

// permit notes that the adapter may launch under a start.
func (s *Session) permit(start operation.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts[start] = true
}

// mayLaunch refuses a launch under anything but a start that the host asked for.
func (s *Session) mayLaunch(c protocol.Call, parent operation.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.starts[parent] {
		return foreign(c, "is launched under "+string(parent)+", which is no start of this attempt")
	}
	return nil
}

// saw notes a launch, and its record once it is settled.
func (s *Session) saw(parent operation.Key, c protocol.Call, record *operation.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, list := range s.launches {
		for i := range list {
			if list[i].Key != c.Operation {
				continue
			}
			if record != nil {
				s.launches[p][i].Record = record
			}
			return
		}
	}
	if parent != "" {
		s.launches[parent] = append(s.launches[parent], executor.Launch{Key: c.Operation, Digest: c.Digest, Record: record})
	}
}

// remember compares an answer with the one that was given under the same key before: an adapter keeps to its word.
func (s *Session) remember(c protocol.Call, a executor.Answer) error {
	said, err := canonical.DigestOf([]canonical.Digest{canonical.Sum(a.Result), canonical.Sum(a.Claim)})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.answers[c.Operation]
	if ok && before != said {
		return reason.New(reason.AdapterLied, "the adapter gave another answer to the same call than before", string(c.Operation),
			"do not run this adapter again before its vendor has explained it")
	}
	s.answers[c.Operation] = said
	return nil
}

// maxLogged bounds the log lines that an adapter has for one attempt.
const maxLogged = 1000

// mayLog reports whether a line is still within bounds; the last one that is says so.
func (s *Session) mayLog() (ok, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logged++
	return s.logged <= maxLogged, s.logged == maxLogged
}

func foreign(c protocol.Call, what string) error {
	return reason.New(reason.AdapterForeignCall, fmt.Sprintf("the operation %s", what), string(c.Operation), "an adapter acts under its own calls only")
}
