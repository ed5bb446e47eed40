package main

import (
	"context"
	"crypto/tls"
	"os"
	"strconv"
	"sync"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	executorv1 "github.com/writ-runtime/writ/go/api/executor/v1"
	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// raw speaks the protocol without the sdk, and breaks it.
type raw struct {
	plugin.NetRPCUnsupportedPlugin
	executorv1.UnimplementedExecutorServer
	mode   string
	broker *plugin.GRPCBroker

	mu       sync.Mutex
	prepared int
	client   executorv1.HostServicesClient
}

func serveRaw(r *raw, keys func() (*tls.Config, error)) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: wire.CookieKey, MagicCookieValue: wire.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{wire.Version: {wire.Plugin: r}},
		TLSProvider:      keys,
		GRPCServer:       plugin.DefaultGRPCServer,
		Logger:           hclog.NewNullLogger(),
	})
}

func inherited() (*tls.Config, error) { return wire.ReadKeys(os.NewFile(wire.KeysFD, "keys")) }

// GRPCServer registers the adapter.
func (r *raw) GRPCServer(broker *plugin.GRPCBroker, s *grpc.Server) error {
	r.broker = broker
	executorv1.RegisterExecutorServer(s, r)
	return nil
}

// GRPCClient is not used.
func (r *raw) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

// Capabilities shows the pinned manifest.
func (r *raw) Capabilities(context.Context, *executorv1.CapabilitiesRequest) (*executorv1.CapabilitiesResponse, error) {
	c, err := canonical.Canonicalize(manifest)
	return &executorv1.CapabilitiesResponse{Capabilities: c}, err
}

// Prepare gives a new answer each time, or one that is none.
func (r *raw) Prepare(_ context.Context, m *executorv1.PrepareRequest) (*executorv1.PrepareResponse, error) {
	r.mu.Lock()
	r.prepared++
	handle := "handle"
	if r.mode == "twoanswers" {
		handle += strconv.Itoa(r.prepared)
	}
	r.mu.Unlock()
	a := say(m.GetCall(), protocol.PrepareResult{Handle: handle}, nil)
	switch r.mode {
	case "badclaim":
		a.Claim = append([]byte(" "), a.Claim...)
	case "hugeanswer":
		a.Result = make([]byte, wire.MaxMessage+1)
	case "badcode":
		a.Refusal, a.Result = &executorv1.Refusal{Code: "vendor.made_up", What: "no"}, nil
	}
	return &executorv1.PrepareResponse{Answer: a}, nil
}

// Start calls the host with something that is not its own, and passes on how it was refused.
func (r *raw) Start(ctx context.Context, m *executorv1.StartRequest) (*executorv1.StartResponse, error) {
	if r.mode == "lieclaim" {
		claimed := wire.Effect{Key: "writ/a/b/launch/main", Digest: canonical.Sum(nil)}
		return &executorv1.StartResponse{Answer: say(m.GetCall(), protocol.StartResult{Handle: m.GetHandle()}, []wire.Effect{claimed})}, nil
	}
	own, err := wire.ToCall(m.GetCall())
	if err != nil {
		return nil, err
	}
	c, request := launch(own)
	parent := own.Operation
	switch r.mode {
	case "foreignfence":
		c.Fence.Generation++
	case "foreignbundle":
		c.Bundle = canonical.Sum([]byte("another"))
	case "foreignattempt":
		c.Fence.Attempt = "att_01939a3c-7c1e-7000-8000-00000000dead"
	case "foreignparent":
		parent = operation.Key("writ/" + own.Operation.Scope() + "/" + own.Operation.Actor() + "/prepare/main")
	case "foreignkey":
		c.Operation, _ = operation.NewKey("writ", own.Operation.Scope(), "another", operation.Launch, "main")
	case "otherdigest":
		c.Digest = canonical.Sum([]byte("another"))
	}
	message := wire.FromCall(c)
	if r.mode == "nocall" {
		message = nil
	}
	client, err := r.host()
	if err != nil {
		return nil, err
	}
	_, err = client.Launch(ctx, &executorv1.LaunchRequest{Call: message, ParentKey: string(parent), Request: request})
	if refused, ok := wire.RefusalOf(err); ok {
		return nil, wire.StatusOf(refused)
	}
	if r.mode == "otherhandle" {
		return &executorv1.StartResponse{Answer: say(m.GetCall(), protocol.StartResult{Handle: "another"}, []wire.Effect{{Key: c.Operation, Digest: c.Digest}})}, nil
	}
	return &executorv1.StartResponse{Answer: say(m.GetCall(), protocol.StartResult{Handle: m.GetHandle()}, []wire.Effect{{Key: c.Operation, Digest: c.Digest}})}, nil
}

// Poll reports the completion of what still runs.
func (r *raw) Poll(_ context.Context, m *executorv1.PollRequest) (*executorv1.PollResponse, error) {
	own, err := wire.ToCall(m.GetCall())
	if err != nil {
		return nil, err
	}
	c, _ := launch(own)
	report, err := canonical.Marshal(protocol.CompletionReport{
		Handle: m.GetHandle(), Launches: []operation.Key{c.Operation}, Ended: []protocol.LaunchResult{{Ended: protocol.EndedExited}},
	})
	return &executorv1.PollResponse{Phase: executorv1.PollResponse_PHASE_COMPLETED, Report: report}, err
}

func (r *raw) host() (executorv1.HostServicesClient, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == nil {
		conn, err := r.broker.Dial(wire.HostServicesID)
		if err != nil {
			return nil, err
		}
		r.client = executorv1.NewHostServicesClient(conn)
	}
	return r.client, nil
}

// launch is a launch of a tool that the test's services accept whatever it is.
func launch(own protocol.Call) (protocol.Call, []byte) {
	actor := own.Operation.Actor()
	r, _ := protocol.NewRequest(operation.Launch, own.Bundle, own.Fence.Attempt, actor, "main",
		protocol.LaunchParameters{Tool: canonical.Sum(nil), Arguments: []string{}, Seed: canonical.Sum(nil)})
	in, _ := r.Intent("writ", own.Operation, operation.Reconcilable, "resource")
	body, _ := canonical.Marshal(r)
	return protocol.Call{Bundle: own.Bundle, Fence: own.Fence, Operation: in.Key, Digest: in.Digest}, body
}

func say(c *executorv1.Call, result any, effects []wire.Effect) *executorv1.Answer {
	body, _ := canonical.Marshal(result)
	claim, _ := canonical.Marshal(wire.Claim{
		Kind: wire.ClaimKind, Operation: operation.Key(c.GetOperationKey()), Digest: canonical.Digest(c.GetCollisionDigest()),
		Knowledge: operation.Applied, Code: reason.Code(""), Result: canonical.Sum(body), Effects: effects,
	})
	return &executorv1.Answer{Result: body, Claim: claim}
}
