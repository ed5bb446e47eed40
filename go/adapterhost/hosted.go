package adapterhost

import (
	"context"
	"errors"
	"fmt"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	executorv1 "github.com/writ-runtime/writ/go/api/executor/v1"
	"github.com/writ-runtime/writ/go/api/wire"
)

// maxStreams bounds the calls that an adapter has open at once on a connection.
const maxStreams = 64

// GRPCServer is the adapter's side, which a host has not.
func (h *hosted) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("a host is no adapter")
}

// GRPCClient opens the host services to the adapter and returns the client of its calls. The services end with the
// connection.
func (h *hosted) GRPCClient(ctx context.Context, broker *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	listener, err := broker.Accept(wire.HostServicesID)
	if err != nil {
		return nil, fmt.Errorf("open host services: %w", err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(h.tls)), grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxRecvMsgSize(wire.MaxMessage), grpc.MaxSendMsgSize(wire.MaxMessage))
	executorv1.RegisterHostServicesServer(server, h.server)
	// ctx is go-plugin's: it ends when the process has ended.
	context.AfterFunc(ctx, server.Stop)
	go func() { _ = server.Serve(listener) }()
	return executorv1.NewExecutorClient(conn), nil
}
