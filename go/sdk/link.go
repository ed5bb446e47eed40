package sdk

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	executorv1 "github.com/writ-runtime/writ/go/api/executor/v1"
	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// link is the Host of one call. It remembers the sub-operations for the claim.
type link struct {
	client executorv1.HostServicesClient
	call   protocol.Call
	bundle *Bundle
	// asking says that what is observed belongs into the claim: a reconciliation lists what it finds.
	asking bool

	// mu guards effects.
	mu      sync.Mutex
	effects []wire.Effect
}

func (h *link) Launch(ctx context.Context, l Launch) (Launched, error) {
	c, raw, err := h.bundle.call(h.call, l)
	if err != nil {
		return Launched{}, err
	}
	// The host answers a launch that it has already, so nothing is lost by asking twice.
	r, err := h.client.Launch(ctx, &executorv1.LaunchRequest{Call: wire.FromCall(c), ParentKey: string(h.call.Operation), Request: raw})
	if err != nil {
		return Launched{}, said(err)
	}
	h.effect(c)
	return launched(c, r.GetRecord())
}

func (h *link) Observe(ctx context.Context, l Launch, wait time.Duration) (Launched, error) {
	c, _, err := h.bundle.call(h.call, l)
	if err != nil {
		return Launched{}, err
	}
	r, err := h.client.Observe(ctx, &executorv1.ObserveRequest{Call: wire.FromCall(c), WaitMs: min(wait, wire.MaxWait).Milliseconds()})
	if err != nil {
		return Launched{}, said(err)
	}
	if h.asking {
		h.effect(c)
	}
	return launched(c, r.GetRecord())
}

func (h *link) ReadArtifact(ctx context.Context, digest canonical.Digest, offset, limit int64) ([]byte, int64, error) {
	r, err := h.client.ReadArtifact(ctx, &executorv1.ReadArtifactRequest{
		Call: wire.FromCall(h.call), Digest: string(digest), Offset: offset, Limit: limit,
	})
	if err != nil {
		return nil, 0, said(err)
	}
	return r.GetData(), r.GetSize(), nil
}

func (h *link) Offered(ctx context.Context) ([]byte, error) {
	r, err := h.client.Offered(ctx, &executorv1.OfferedRequest{Call: wire.FromCall(h.call)})
	if err != nil {
		return nil, said(err)
	}
	return r.GetPayload(), nil
}

func (h *link) Log(ctx context.Context, level Level, message string) {
	if len(message) > wire.MaxLog {
		message = message[:wire.MaxLog]
	}
	// Nothing depends on a log line, least of all the answer to the call.
	_, _ = h.client.Log(ctx, &executorv1.LogRequest{Call: wire.FromCall(h.call), Level: string(level), Message: wire.Printable(message)})
}

func (h *link) effect(c protocol.Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := wire.Effect{Key: c.Operation, Digest: c.Digest}
	if !slices.Contains(h.effects, e) {
		h.effects = append(h.effects, e)
	}
}

func (h *link) made() []wire.Effect {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.effects)
}

// readBundle reads the bundle of the call from the host: a process that was started again has not seen it.
func (h *link) readBundle(ctx context.Context) (*Bundle, error) {
	var raw []byte
	for size := int64(1); int64(len(raw)) < size; {
		part, n, err := h.ReadArtifact(ctx, h.call.Bundle, int64(len(raw)), wire.MaxRead)
		if err != nil {
			return nil, err
		}
		if n > wire.MaxBundle || len(part) == 0 {
			return nil, reason.New(reason.AdapterProtocol, fmt.Sprintf("the host serves a bundle of %d bytes", n), string(h.call.Bundle), "report it")
		}
		raw, size = append(raw, part...), n
	}
	return ParseBundle(raw, h.call.Bundle)
}

// said returns the refusal that an error carries, or the error.
func said(err error) error {
	if r, ok := wire.RefusalOf(err); ok {
		return r
	}
	return fmt.Errorf("host service: %w", err)
}

func launched(c protocol.Call, record []byte) (Launched, error) {
	l := Launched{Key: c.Operation, Digest: c.Digest}
	if len(record) == 0 {
		return l, nil
	}
	l.Record = new(operation.Record)
	if err := canonical.DecodeCanonical(record, l.Record); err != nil {
		return Launched{}, fmt.Errorf("record of %s: %w", c.Operation, err)
	}
	return l, nil
}

// refused makes a refusal of an outcome that is no success.
func refused(key operation.Key, out operation.Outcome) error {
	code := out.Code
	if !code.Registered() {
		code = reason.OperationUnknownOutcome
	}
	what := out.Detail
	if what == "" {
		what = "the launch did not take place"
	}
	return reason.New(code, what, string(key), "see the receipt of the launch")
}
