package adapterhost

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/pin"
)

// runner starts the sealed bytes for go-plugin: as the leader of a session of its own that dies with this host, with
// nothing of the host's environment, and with exactly the registered descriptors.
type runner struct {
	sealed  *pin.Sealed
	starter *confine.Starter
	keys    []byte
	env     []string

	// stdout is what go-plugin reads. What the adapter prints on stderr is kept in tail and goes no further.
	stdout, stderr *os.File
	tail           *tail
	// drained is closed when stderr has ended, spoken when stdout has.
	drained, spoken chan struct{}

	// mu guards the rest.
	mu     sync.Mutex
	child  *confine.Child
	killed bool
	line   string
}

func newRunner(sealed *pin.Sealed, starter *confine.Starter, keys []byte) *runner {
	return &runner{
		sealed: sealed, starter: starter, keys: keys, env: []string{}, tail: new(tail),
		drained: make(chan struct{}), spoken: make(chan struct{}),
	}
}

// take takes from go-plugin's command the registered variables and nothing else.
func (r *runner) take(cmd *exec.Cmd) {
	for _, name := range wire.Variables() {
		for _, v := range cmd.Env {
			if strings.HasPrefix(v, name+"=") {
				r.env = append(r.env, v)
			}
		}
	}
}

// Start starts the process.
func (r *runner) Start(ctx context.Context) error {
	var files []*os.File
	pipe := func() (*os.File, *os.File, error) {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, nil, fmt.Errorf("make pipe: %w", err)
		}
		files = append(files, read, write)
		return read, write, nil
	}
	fail := func(err error) error {
		for _, f := range files {
			_ = f.Close()
		}
		return err
	}
	out, outWrite, err := pipe()
	if err != nil {
		return fail(err)
	}
	errs, errsWrite, err := pipe()
	if err != nil {
		return fail(err)
	}
	keys, keysWrite, err := pipe()
	if err != nil {
		return fail(err)
	}
	// The keys fit into the pipe's buffer, so this does not wait for a reader.
	if _, err := keysWrite.Write(r.keys); err != nil {
		return fail(fmt.Errorf("hand over keys: %w", err))
	}
	if err := keysWrite.Close(); err != nil {
		return fail(fmt.Errorf("hand over keys: %w", err))
	}
	cmd := r.sealed.Command(nil, keys)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = r.env, "/", outWrite, errsWrite
	child, err := r.starter.Start(ctx, cmd)
	if err != nil {
		return fail(err)
	}
	for _, f := range []*os.File{outWrite, errsWrite, keys} {
		_ = f.Close()
	}
	r.stdout, r.stderr = out, errs
	go r.drain()
	go r.end(child)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.child = child; r.killed {
		return child.Kill()
	}
	return nil
}

// drain keeps the last words of the adapter; a flood costs it its own time and nothing else.
func (r *runner) drain() {
	defer close(r.drained)
	_, _ = io.Copy(r.tail, r.stderr)
}

// end ends reading after the process has ended: whoever else holds the pipes must not hold up this host.
func (r *runner) end(child *confine.Child) {
	<-child.Done()
	late := time.After(time.Second)
	for _, read := range []<-chan struct{}{r.drained, r.spoken} {
		select {
		case <-read:
		case <-late:
		}
	}
	_ = r.stderr.Close()
	_ = r.stdout.Close()
}

// Stdout is the handshake, and whatever comes after it. The first line is remembered.
func (r *runner) Stdout() io.ReadCloser { return &stdout{r: r} }

// Stderr ends with the process. go-plugin would parse and log every line.
func (r *runner) Stderr() io.ReadCloser { return &silent{r.drained} }

// Wait waits for the end of the process.
func (r *runner) Wait(ctx context.Context) error {
	if child := r.process(); child != nil {
		_, err := child.Wait(ctx)
		return err
	}
	return nil
}

// Kill kills the process and its group, also one that is only about to start.
func (r *runner) Kill(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed = true
	if r.child == nil {
		return nil
	}
	return r.child.Kill()
}

// process returns the process, nil before it was started.
func (r *runner) process() *confine.Child {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.child
}

// gone waits until the process has ended and its last words were read, if it was started at all.
func (r *runner) gone() {
	if child := r.process(); child != nil {
		<-child.Done()
		<-r.drained
	}
}

// Name names the adapter.
func (r *runner) Name() string { return r.sealed.Name() }

// ID is the number of the process.
func (r *runner) ID() string {
	if child := r.process(); child != nil {
		return strconv.Itoa(child.PID())
	}
	return ""
}

// Diagnose adds nothing: the host explains a failed start by what it saw itself.
func (r *runner) Diagnose(context.Context) string { return "" }

// PluginToHost and HostToPlugin leave addresses as they are: both ends see the same folder.
func (r *runner) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin is the other direction.
func (r *runner) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// handshake returns the first line that the process printed, at most 512 bytes of it.
func (r *runner) handshake() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	line, _, _ := strings.Cut(r.line, "\n")
	return line
}

// stdout is the standard output of a runner.
type stdout struct {
	r    *runner
	done sync.Once
}

// Read remembers the beginning of what is read, and says when it has ended.
func (s *stdout) Read(b []byte) (int, error) {
	const kept = 512
	n, err := s.r.stdout.Read(b)
	s.r.mu.Lock()
	s.r.line += string(b[:min(n, kept-len(s.r.line))])
	s.r.mu.Unlock()
	if err != nil {
		s.done.Do(func() { close(s.r.spoken) })
	}
	return n, err
}

// Close closes the reading end.
func (s *stdout) Close() error { return s.r.stdout.Close() }

type silent struct{ ended <-chan struct{} }

// Read waits for the end.
func (s *silent) Read([]byte) (int, error) {
	<-s.ended
	return 0, io.EOF
}

// Close has nothing to close.
func (s *silent) Close() error { return nil }
