package adapterhost

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	pluginrunner "github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	executorv1 "github.com/writ-runtime/writ/go/api/executor/v1"
	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/reason"
)

// process is one start of the adapter. It is never restarted: after its end there is another process.
type process struct {
	runner *runner
	client *plugin.Client
	dir    *folder
	// starter is bounded to this start; it ends with it.
	starter *confine.Starter
	calls   executorv1.ExecutorClient
	serves  *services
}

// newProcess starts the adapter and waits for its first answer. Whatever the adapter does, this returns within the
// start timeout, and leaves nothing behind when it fails. It fails with adapter.unavailable, adapter.protocol or
// adapter.lied.
func newProcess(ctx context.Context, c Config, serves *services) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeouts.Start)
	defer cancel()
	dir, err := newFolder(c.Folder)
	if err != nil {
		return nil, unavailable(c.Name, "the folder of its sockets cannot be made", err)
	}
	tlsConfig, keys, err := wire.NewKeys(rand.Reader, time.Now())
	if err != nil {
		dir.remove()
		return nil, unavailable(c.Name, "the keys of its connection cannot be made", err)
	}
	// A thread of its own for each start: its folder is the one place where this process may write.
	starter := confine.NewContained(dir.path, c.Denied)
	p := &process{dir: dir, starter: starter, runner: newRunner(c.Sealed, starter, keys), serves: serves}
	p.client = plugin.NewClient(p.config(c, tlsConfig))
	type started struct {
		calls executorv1.ExecutorClient
		err   error
	}
	done := make(chan started, 1)
	go func() {
		calls, err := p.connect(ctx, c)
		done <- started{calls, err}
	}()
	var s started
	select {
	case s = <-done:
	case <-ctx.Done():
		// Killing the process ends every wait in there.
		p.kill()
		s = <-done
		s.err = fmt.Errorf("no answer within %s: %w", c.Timeouts.Start, errors.Join(ctx.Err(), s.err))
	}
	if s.err != nil {
		p.close()
		return nil, p.explain(c, s.err)
	}
	p.calls = s.calls
	return p, nil
}

func (p *process) config(c Config, tlsConfig *tls.Config) *plugin.ClientConfig {
	return &plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: wire.CookieKey, MagicCookieValue: wire.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{wire.Version: {wire.Plugin: &hosted{server: p.serves, tls: tlsConfig}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (pluginrunner.Runner, error) {
			p.runner.take(cmd)
			return p.runner, nil
		},
		TLSConfig:    tlsConfig,
		StartTimeout: c.Timeouts.Start,
		Logger:       hclog.NewNullLogger(),
		// What an adapter prints through go-plugin's streams goes nowhere: it has Log.
		SyncStdout: io.Discard, SyncStderr: io.Discard,
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(wire.MaxMessage), grpc.MaxCallSendMsgSize(wire.MaxMessage))},
		SkipHostEnv: true,
		// The host services come over the adapter's own socket: it needs none that it connects to.
		GRPCBrokerMultiplex: true,
		UnixSocketConfig:    &plugin.UnixSocketConfig{TempDir: p.dir.path},
	}
}

// connect starts the process, connects to it, and holds its own word about its capabilities against the pinned one.
func (p *process) connect(ctx context.Context, c Config) (executorv1.ExecutorClient, error) {
	if _, err := p.client.Start(); err != nil {
		return nil, err
	}
	connection, err := p.client.Client()
	if err != nil {
		return nil, err
	}
	raw, err := connection.Dispense(wire.Plugin)
	if err != nil {
		return nil, err
	}
	calls, ok := raw.(executorv1.ExecutorClient)
	if !ok {
		return nil, fmt.Errorf("go-plugin dispensed %T", raw)
	}
	said, err := calls.Capabilities(ctx, &executorv1.CapabilitiesRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for capabilities: %w", err)
	}
	pinned, err := c.Capabilities.Digest()
	if err != nil {
		return nil, err
	}
	if got := canonical.Sum(said.GetCapabilities()); got != pinned {
		return nil, reason.New(reason.AdapterLied, fmt.Sprintf("the adapter declares capabilities %s, its pinned manifest is %s", got, pinned),
			c.Name, "pin the manifest that the vendor ships with this binary")
	}
	return calls, nil
}

// explain says why a start failed, from what the host saw: go-plugin's errors are words only.
func (p *process) explain(c Config, err error) error {
	if r, ok := reason.As(err); ok {
		return r
	}
	line := p.runner.handshake()
	parts := strings.Split(strings.TrimSpace(line), "|")
	switch {
	case line == "":
		return unavailable(c.Name, "it ended or kept silent before it said anything"+p.words(), err)
	case len(parts) < 5 || parts[4] != string(plugin.ProtocolGRPC):
		return reason.New(reason.AdapterProtocol, "the adapter does not begin with go-plugin's handshake over gRPC, but with "+wire.Clip(line),
			c.Name, "build the adapter with the sdk of this release").Because(err)
	case parts[1] != fmt.Sprint(wire.Version):
		return reason.New(reason.AdapterProtocol, fmt.Sprintf("the adapter speaks version %s of the executor protocol, this host speaks %d", wire.Clip(parts[1]), wire.Version),
			c.Name, "use an adapter of this release, or the release that the adapter was built for").Because(err)
	}
	return unavailable(c.Name, "it does not answer"+p.words(), err)
}

// words are the last words of the process, as part of a sentence.
func (p *process) words() string {
	if last := p.runner.tail.last(); last != "" {
		return "; its last words were " + wire.Clip(last)
	}
	return ""
}

// alive reports whether the process has not ended.
func (p *process) alive() bool {
	child := p.runner.process()
	return child != nil && child.Alive()
}

// kill kills the process. It does not wait.
func (p *process) kill() { _ = p.runner.Kill(context.Background()) }

// end kills the process and returns when it is dead and nothing that it asked for is under way any more.
func (p *process) end() {
	p.kill()
	p.runner.gone()
	p.serves.close()
}

// close ends the process and removes its folder.
func (p *process) close() {
	p.end()
	// Only now: go-plugin asks a living adapter to shut down, and waits for it as long as it likes.
	p.client.Kill()
	p.starter.Close()
	p.dir.remove()
}

func unavailable(name, what string, cause error) *reason.Refusal {
	return reason.New(reason.AdapterUnavailable, "the adapter cannot be used: "+what, name,
		"see its log lines; if it goes on, choose another executor").Because(cause)
}

// hosted is the adapter as go-plugin dispenses it to this host.
type hosted struct {
	plugin.NetRPCUnsupportedPlugin
	server executorv1.HostServicesServer
	tls    *tls.Config
}
