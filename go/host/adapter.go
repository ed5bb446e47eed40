package host

import (
	"context"
	"errors"
	"os"

	"github.com/writ-runtime/writ/go/adapterhost"
	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/supervisor"
	"github.com/writ-runtime/writ/go/workorder"
)

// adapter starts the pinned adapter that a bundle names, for one attempt.
func (h *Host) adapter(ctx context.Context, b *attemptbundle.Compiled, fence workorder.Fence) func(supervisor.Services) (supervisor.Executor, error) {
	return func(s supervisor.Services) (supervisor.Executor, error) {
		entry, err := h.pins.Entry("adapter", b.Bundle().Pins.Adapter.Name)
		if err != nil {
			return nil, err
		}
		capabilities, err := executor.ParseCapabilities(entry.Manifest, entry.Name)
		if err != nil {
			return nil, err
		}
		sealed, err := h.pins.Sealed(ctx, entry)
		if err != nil {
			return nil, err
		}
		host, err := adapterhost.Launch(ctx, adapterhost.Config{
			Name: entry.Name, Sealed: sealed, Capabilities: capabilities, Folder: socketFolder(),
			Denied: func(what string) {
				s.Log(ctx, protocol.Call{}, "warn", "the adapter tried by itself, and was denied: "+wire.Printable(wire.Clip(what)))
			},
		})
		if err != nil {
			return nil, err
		}
		session, err := host.Activate(b, fence, s)
		if err != nil {
			return nil, errors.Join(err, host.Close())
		}
		return hosted{session, host}, nil
	}
}

// socketFolder is where adapters have their sockets. A folder for temporary files can
// have a path that leaves no room for a socket's name; then it is the system's own.
func socketFolder() string {
	if dir := os.TempDir(); len(dir) <= adapterhost.MaxFolder {
		return dir
	}
	return "/tmp"
}

// hosted is a session that owns its host.
type hosted struct {
	*adapterhost.Session
	host *adapterhost.Host
}

// Close ends the adapter's process.
func (h hosted) Close() error { return h.host.Close() }
