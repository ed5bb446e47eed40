package worker_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment/wasm/worker"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/reason"
)

func TestGuestEndings(t *testing.T) {
	module := shared.badtools(t)
	small := func(change func(*worker.Limits)) worker.Limits {
		l := limits()
		change(&l)
		return l
	}
	for _, c := range []struct {
		way    string
		args   []string
		limits worker.Limits
		wall   int64
		kind   wire.ExitKind
		code   uint32
		limit  worker.Limit
		reason reason.Code
		says   string // in trap, standard output or standard error
	}{
		{way: "nothing", kind: wire.ExitCode},
		{way: "exit-3", kind: wire.ExitCode, code: 3, reason: reason.ToolExitNonzero},
		{way: "panic", kind: wire.ExitCode, code: 2, reason: reason.ToolExitNonzero, says: "panic: as asked"},
		{way: "trap", kind: wire.ExitTrap, reason: reason.ToolTrapped, says: "wasm error: out of bounds memory access"},
		{way: "loop", wall: 300, kind: wire.ExitLimit, limit: wire.LimitWall, reason: reason.EnvironmentLimitWall},
		{way: "loop", limits: small(func(l *worker.Limits) { l.CPUSeconds = 1 }), wall: 60_000, kind: wire.ExitLimit, limit: wire.LimitCPU, reason: reason.EnvironmentLimitCpu},
		{way: "sleep", kind: wire.ExitCode},
		{way: "memory", kind: wire.ExitLimit, limit: wire.LimitMemory, reason: reason.EnvironmentLimitMemory},
		{way: "print", kind: wire.ExitLimit, limit: wire.LimitStdio, reason: reason.EnvironmentLimitStdio},
		{way: "huge", kind: wire.ExitLimit, limit: wire.LimitFileBytes, reason: reason.EnvironmentLimitOutput},
		{way: "huge", limits: small(func(l *worker.Limits) { l.FileBytes = 1 << 30 }), kind: wire.ExitLimit, limit: wire.LimitWorkspaceBytes, reason: reason.EnvironmentLimitOutput},
		{way: "sparse", kind: wire.ExitLimit, limit: wire.LimitFileBytes, reason: reason.EnvironmentLimitOutput},
		{way: "hoard", kind: wire.ExitLimit, limit: wire.LimitWorkspaceBytes, reason: reason.EnvironmentLimitOutput},
		{way: "files", kind: wire.ExitLimit, limit: wire.LimitWorkspaceFiles, reason: reason.EnvironmentLimitFiles},
		{way: "depth", kind: wire.ExitLimit, limit: wire.LimitDepth, reason: reason.EnvironmentLimitFiles},
		{way: "name", kind: wire.ExitLimit, limit: wire.LimitNameBytes, reason: reason.EnvironmentLimitFiles},
		{way: "open", kind: wire.ExitLimit, limit: wire.LimitOpenFiles, reason: reason.EnvironmentLimitFiles},
		{way: "symlink", kind: wire.ExitCode},
		{way: "hardlink", kind: wire.ExitCode},
		{way: "outside", kind: wire.ExitCode},
		{way: "inputs", args: []string{"docs/a.txt"}, kind: wire.ExitCode},
		{way: "network", kind: wire.ExitCode},
	} {
		t.Run(c.way+" "+string(c.limit), func(t *testing.T) {
			if c.limits == (worker.Limits{}) {
				c.limits = limits()
			}
			if c.wall == 0 {
				c.wall = 30_000
			}
			w, _ := provisioned(t, c.limits, module)
			input := []byte("the input\n")
			must(t, w.Materialize(context.Background(), []worker.File{{Mount: "docs", Path: "a.txt", Digest: canonical.Sum(input), Bytes: input}}))
			exit, err := w.Run(context.Background(), worker.RunRequest{Args: append([]string{"badtools", c.way}, c.args...), Seed: "s", WallMillis: c.wall})
			must(t, err)
			if exit.Kind != c.kind || exit.Code != c.code || exit.Limit != c.limit {
				t.Errorf("ended %s code %d limit %q trap %q touched %v, stderr %s", exit.Kind, exit.Code, exit.Limit, exit.Trap, exit.Touched, exit.Stderr)
			}
			if got := reason.CodeOf(exit.Err("tool")); got != c.reason {
				t.Errorf("reason %q, want %q", got, c.reason)
			}
			if said := exit.Trap + string(exit.Stdout) + string(exit.Stderr); !strings.Contains(said, c.says) {
				t.Errorf("said %q, want %q in it", said, c.says)
			}
			if got := int64(len(exit.Stdout) + len(exit.Stderr)); got > c.limits.StdioBytes {
				t.Errorf("printed %d bytes, limit %d", got, c.limits.StdioBytes)
			}
			if !w.Alive() || exit.WorkerGone {
				t.Error("the worker did not survive its guest")
			}
			checkWorkspace(t, w, c.limits)
		})
	}
}

// checkWorkspace holds what a worker lists against its limits and reads it all.
func checkWorkspace(t *testing.T, w *worker.Worker, l worker.Limits) {
	t.Helper()
	entries, err := w.List(context.Background())
	must(t, err)
	var bytes int64
	for _, e := range entries {
		if e.Dir {
			continue
		}
		data, err := io.ReadAll(w.Open(context.Background(), e.Path))
		must(t, err)
		if int64(len(data)) != e.Size {
			t.Errorf("%s: listed with %d bytes, read %d", e.Path, e.Size, len(data))
		}
		bytes += e.Size
	}
	if int64(len(entries)) > l.WorkspaceFiles || bytes > l.WorkspaceBytes {
		t.Errorf("the workspace holds %d entries with %d bytes", len(entries), bytes)
	}
}

func TestSameInputSameBytes(t *testing.T) {
	module := shared.badtools(t)
	observe := func(seed string) (stdout, file []byte) {
		w, _ := provisioned(t, limits(), module)
		exit, err := w.Run(context.Background(), worker.RunRequest{Args: []string{"badtools", "observe"}, Seed: seed, WallMillis: 30_000})
		must(t, err)
		must(t, exit.Err("tool"))
		file, err = io.ReadAll(w.Open(context.Background(), "observed.txt"))
		must(t, err)
		must(t, w.Close(context.Background()))
		return exit.Stdout, file
	}
	stdout, file := observe("seed")
	t.Logf("%s", file)
	if !bytes.Contains(file, []byte("now 2000-01-01 00:00:00 +0000 UTC")) {
		t.Error("the clock is not the fixed one")
	}
	for i := range 20 {
		again, fileAgain := observe("seed")
		if !bytes.Equal(stdout, again) || !bytes.Equal(file, fileAgain) {
			t.Fatalf("run %d saw something else:\n%s", i, fileAgain)
		}
	}
	if _, other := observe("another seed"); bytes.Equal(file, other) {
		t.Error("the seed changes nothing")
	}
}
