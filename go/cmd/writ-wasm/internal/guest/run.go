package guest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/writ-runtime/writ/go/cmd/writ-wasm/internal/memfs"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
)

// The causes for which a guest's context ends.
var (
	errWall  = errors.New("wall time")
	errStdio = errors.New("printed too much")
	// ErrCPU is the cause with which a caller ends the context when the kernel says that the processor time is over.
	ErrCPU = errors.New("processor time")
)

// Result is how a guest ended and what it printed.
type Result struct {
	Exit           wire.Exit
	Stdout, Stderr []byte
}

// Run runs the tool once, on a fresh instance, and returns when it has ended. It never fails: whatever happens to
// a guest is a result. ctx may be ended with the cause ErrCPU.
func (t *Tool) Run(ctx context.Context, tree *memfs.FS, req wire.Run) Result {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(req.WallMillis)*time.Millisecond, errWall)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	printed := newStdio(t.limits.StdioBytes, func() { stop(errStdio) })
	mem := &allocator{limit: uint64(t.limits.MemoryPages) * pageSize}
	began := time.Now()
	err := t.instantiate(experimental.WithMemoryAllocator(ctx, mem), tree, req, printed)
	took := time.Since(began)
	e := ended(ctx, err)
	e.Touched = t.touched(ctx, tree, printed, mem)
	if e.Kind == wire.ExitCode && e.Code == 0 {
		if i := slices.IndexFunc(e.Touched, wire.Limit.Spoils); i >= 0 {
			e = wire.Exit{Kind: wire.ExitLimit, Limit: e.Touched[i], Touched: e.Touched}
		}
	} else if len(e.Touched) > 0 {
		// The guest failed after it ran into limits: they are the better explanation, the ones that stopped it first.
		e = wire.Exit{Kind: wire.ExitLimit, Limit: e.Touched[0], Touched: e.Touched}
	}
	e.StdoutBytes, e.StderrBytes = int64(len(printed.out.data)), int64(len(printed.err.data))
	e.MemoryPages, e.WallMicros = int64(mem.largest/pageSize), took.Microseconds()
	return Result{Exit: e, Stdout: printed.out.data, Stderr: printed.err.data}
}

func (t *Tool) instantiate(ctx context.Context, tree *memfs.FS, req wire.Run, printed *stdio) (err error) {
	// A module whose memory is not exported can ask for more than its limit at its start, upon which wazero panics.
	// That must end the guest and not the worker.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the runtime gave up: %v", p)
		}
	}()
	c := &clock{}
	config := wazero.NewModuleConfig().WithName("").WithArgs(req.Args...).WithEnv("PWD", "/"+memfs.Work).
		WithStdout(&printed.out).WithStderr(&printed.err).
		WithFSConfig(wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(tree, "/")).
		WithWalltime(c.walltime, resolution(step)).WithNanotime(c.nanotime, resolution(step)).
		WithNanosleep(c.sleep).WithOsyield(func() { c.sleep(step) }).
		WithRandSource(random(req.Seed)).WithStartFunctions("_start")
	m, err := t.runtime.InstantiateModule(ctx, t.compiled, config)
	if m != nil {
		err = errors.Join(err, m.Close(ctx))
	}
	return err
}

// ended classifies the end of a guest, limits aside.
func ended(ctx context.Context, err error) wire.Exit {
	var exit *wsys.ExitError
	switch {
	case ctx.Err() != nil && err != nil && !trapped(err):
		return wire.Exit{Kind: wire.ExitLimit}
	case err == nil:
		return wire.Exit{Kind: wire.ExitCode}
	case errors.As(err, &exit):
		return wire.Exit{Kind: wire.ExitCode, Code: exit.ExitCode()}
	default:
		return wire.Exit{Kind: wire.ExitTrap, Trap: firstLine(err.Error())}
	}
}

func trapped(err error) bool {
	var exit *wsys.ExitError
	return !errors.As(err, &exit)
}

// touched returns the limits that the guest ran into: first the one that ended its context, then those of its
// files in the order in which it met them, then its memory.
func (t *Tool) touched(ctx context.Context, tree *memfs.FS, printed *stdio, mem *allocator) []wire.Limit {
	var out []wire.Limit
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errWall):
		out = append(out, wire.LimitWall)
	case errors.Is(cause, ErrCPU):
		out = append(out, wire.LimitCPU)
	case printed.exceeded:
		out = append(out, wire.LimitStdio)
	}
	out = append(out, tree.Touched()...)
	if mem.refused || mem.failed != nil {
		out = append(out, wire.LimitMemory)
	}
	return out
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	line = strings.TrimPrefix(line, "module[] function[_start] failed: ")
	if len(line) > 200 {
		line = line[:200]
	}
	return strings.ToValidUTF8(line, "?")
}
