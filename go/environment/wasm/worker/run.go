package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/reason"
)

// wallGrace is what the host gives a worker beyond the guest's wall time to stop the guest itself. A worker that
// does not is killed, and its workspace is lost.
const wallGrace = 2 * time.Second

// RunRequest starts the guest. It gets no environment but PWD=/work, and an empty standard input.
type RunRequest struct {
	// Args are the guest's arguments, its own name first.
	Args []string
	// Seed makes the guest's random source: equal seeds, equal bytes. At most 256 bytes.
	Seed string
	// WallMillis is the wall time after which the guest is stopped, above zero.
	WallMillis int64
	// MaxOffer is how many bytes the guest may offer at once as a checkpoint, 64 KiB at most; 0 lets it offer none.
	MaxOffer int64
	// Offered is told of each offer while the guest runs, in order, and must not wait. Nil with a MaxOffer of 0.
	Offered func(payload []byte)
}

// Exit says how the guest ended; see wire.Exit for the fields it has in common with the wire.
type Exit struct {
	wire.Exit
	// Stdout and Stderr are what the guest printed, within the limit of both together.
	Stdout, Stderr []byte
	// WorkerGone says that the worker had to be killed with its guest: there is no workspace to read.
	WorkerGone bool
}

// Err returns nil for a guest that ended with status 0 within its limits, and a refusal otherwise:
// tool.exit_nonzero, tool.trapped, or the code of the limit.
func (e Exit) Err(where string) error {
	switch {
	case e.Kind == wire.ExitCode && e.Code == 0:
		return nil
	case e.Kind == wire.ExitCode:
		return reason.New(reason.ToolExitNonzero, fmt.Sprintf("the tool ended with status %d%s", e.Code, said(e.Stderr)), where, "see what it printed")
	case e.Kind == wire.ExitTrap:
		return reason.New(reason.ToolTrapped, "the tool trapped: "+e.Trap+said(e.Stderr), where, "the tool is at fault; report it to its maker")
	default:
		return reason.New(e.Limit.Code(), "the tool reached its limit "+string(e.Limit), where, "raise the limit in the work order, if the tool may need more")
	}
}

func said(stderr []byte) string {
	if line := firstLine(string(stderr)); line != "" {
		return "; it said: " + line
	}
	return ""
}

// Run lets the guest run, once, and returns how it ended. An error means that this is not known: the worker died
// (environment.dead, or the code of the limit that killed it), refused, or the context ended.
func (w *Worker) Run(ctx context.Context, r RunRequest) (Exit, error) {
	wall := time.Duration(r.WallMillis) * time.Millisecond
	if wall <= 0 {
		return Exit{}, reason.New(reason.EnvironmentUnsupported, "a wall time has to be above zero", w.name, "give the tool a wall time")
	}
	timed, cancel := context.WithTimeoutCause(ctx, wall+wallGrace, errWall)
	defer cancel()
	run := &wire.Run{Args: r.Args, Seed: r.Seed, WallMillis: r.WallMillis, MaxOffer: r.MaxOffer}
	resp, body, err := w.running(timed, wire.Request{Verb: wire.VerbRun, Run: run}, r.Offered)
	if errors.Is(err, errWall) && ctx.Err() == nil {
		return Exit{Exit: wire.Exit{Kind: wire.ExitLimit, Limit: wire.LimitWall, Touched: []wire.Limit{wire.LimitWall}}, WorkerGone: true}, nil
	}
	if err != nil {
		return Exit{}, fmt.Errorf("run in worker %s: %w", w.name, err)
	}
	if resp.Exit == nil || resp.Exit.StdoutBytes < 0 || resp.Exit.StderrBytes < 0 || resp.Exit.StdoutBytes+resp.Exit.StderrBytes != int64(len(body)) {
		return Exit{}, w.broken("it answered run without a well-formed exit")
	}
	n := resp.Exit.StdoutBytes
	return Exit{Exit: *resp.Exit, Stdout: body[:n:n], Stderr: body[n:]}, nil
}

// running is call for a request that may be answered with offers first.
func (w *Worker) running(ctx context.Context, req wire.Request, offered func([]byte)) (wire.Response, []byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.exchange(ctx, req, nil, true, offered)
}

// errWall is the cause of a context that ended because the guest's wall time is over.
var errWall = errors.New("the wall time of the guest is over")
