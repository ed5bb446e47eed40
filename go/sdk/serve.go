package sdk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	executorv1 "github.com/writ-runtime/writ/go/api/executor/v1"
	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// Serve serves the adapter to the host that started this process. It returns when the host is done with it, and ends
// the process with status 1 when no host started it.
func Serve(a Adapter, info Info) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{MagicCookieKey: wire.CookieKey, MagicCookieValue: wire.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{
			wire.Version: {wire.Plugin: &served{adapter: a, info: info}},
		},
		TLSProvider: inherited,
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, grpc.MaxRecvMsgSize(wire.MaxMessage), grpc.MaxSendMsgSize(wire.MaxMessage))...)
		},
		// Its own words go to the host as log lines; go-plugin's are of no use to anybody.
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: os.Stderr}),
	})
}

// inherited reads the keys of this start, and closes what was inherited for it.
func inherited() (*tls.Config, error) {
	keys := os.NewFile(wire.KeysFD, "keys")
	if keys == nil {
		return nil, errors.New("no host handed over keys")
	}
	c, err := wire.ReadKeys(keys)
	return c, errors.Join(err, keys.Close(), os.NewFile(wire.BinaryFD, "binary").Close())
}

// served is the adapter as go-plugin serves it.
type served struct {
	plugin.NetRPCUnsupportedPlugin
	adapter Adapter
	info    Info
}

// GRPCServer registers the adapter. The connection to the host's services is made at the first call.
func (p *served) GRPCServer(broker *plugin.GRPCBroker, s *grpc.Server) error {
	host := sync.OnceValues(func() (executorv1.HostServicesClient, error) {
		conn, err := broker.DialWithOptions(wire.HostServicesID, grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(wire.MaxMessage), grpc.MaxCallSendMsgSize(wire.MaxMessage)))
		if err != nil {
			return nil, fmt.Errorf("reach the host services: %w", err)
		}
		return executorv1.NewHostServicesClient(conn), nil
	})
	server, err := newServer(p.adapter, p.info, host)
	if err != nil {
		return err
	}
	executorv1.RegisterExecutorServer(s, server)
	return nil
}

// GRPCClient is the host's side, which an adapter has not.
func (p *served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("an adapter is no host")
}

// lost is the domain result of an answer that was lost.
func (s *server) lost(kind operation.Kind, handle string) any {
	switch kind {
	case operation.Prepare:
		return protocol.PrepareResult{Handle: handle}
	case operation.Start:
		return protocol.StartResult{Handle: handle}
	}
	return nil
}

// absent says that an operation that is asked about did not take place.
func absent(c protocol.Call) error {
	return reason.New(reason.IDUnknown, "the operation did not take place", string(c.Operation), "")
}

func badLocator(c protocol.Call, cause error) error {
	r := reason.New(reason.AdapterProtocol, "the locator is not one of the call's execution", string(c.Operation), "ask with the locator of the attempt")
	if cause != nil {
		return r.Because(cause)
	}
	return r
}
