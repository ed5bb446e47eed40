package worker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/environment/wasm/worker"
	"github.com/writ-runtime/writ/go/reason"
)

// hostRole is a host in a process of its own: it starts a worker whose guest loops, says so, and waits to be killed.
func hostRole() int {
	if err := host(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func host(workspaces, dist, binary, tool string) error {
	sealed, _, err := seal(dist, binary)
	if err != nil {
		return err
	}
	ctx := context.Background()
	w, err := worker.Start(ctx, worker.StartRequest{Binary: sealed, Starter: confine.NewStarter(), Dir: workspaces, Name: "one", Limits: limits(), Order: ordered()})
	if err != nil {
		return err
	}
	module, err := os.ReadFile(tool)
	if err != nil {
		return err
	}
	if _, err := w.Provision(ctx, module, worker.Provision{Digest: canonical.Sum(module)}); err != nil {
		return err
	}
	fmt.Println("worker", w.PID())
	_, err = w.Run(ctx, worker.RunRequest{Args: []string{"badtools", "loop"}, Seed: "s", WallMillis: 600_000})
	return err
}

func TestNothingOutlivesAKilledHost(t *testing.T) {
	workspaces := t.TempDir()
	tool := filepath.Join(t.TempDir(), "tool.wasm")
	must(t, os.WriteFile(tool, shared.badtools(t), 0o600))
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, workspaces, t.TempDir(), shared.workerPath(t), tool)
	cmd.Env = append(os.Environ(), "WRIT_TEST_ROLE=host")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "worker ")))
	must(t, err)
	start, err := confine.StartTime(pid)
	must(t, err)
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()

	for range 2 { // what is resolved once stays resolved
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		state, err := worker.Resolve(ctx, workspaces, "one")
		cancel()
		must(t, err)
		if !state.Gone {
			t.Errorf("state %+v", state)
		}
	}
	if now, err := confine.StartTime(pid); err == nil && now == start {
		// Dead processes whose parent is gone too are reaped by whoever inherits them, in their time.
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if !strings.Contains(string(status), "State:\tZ") && len(status) > 0 {
			t.Errorf("the worker lives:\n%s", status)
		}
	}
	if entries, err := os.ReadDir(workspaces); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestResolveKillsWhatBearsTheName(t *testing.T) {
	for _, hint := range []string{"as written", "absent", "of another process", "malformed"} {
		t.Run("pid file "+hint, func(t *testing.T) {
			dir := t.TempDir()
			w, err := worker.Start(context.Background(), worker.StartRequest{
				Binary: pinned(t, shared.workerPath(t)), Starter: shared.starter, Dir: dir, Name: "one", Limits: limits(), Order: ordered(),
			})
			must(t, err)
			pidFile := filepath.Join(dir, "one", "pid")
			switch hint {
			case "absent":
				must(t, os.Remove(pidFile))
			case "of another process":
				must(t, os.WriteFile(pidFile, fmt.Appendf(nil, `{"pid":%d,"start_time":1}`, os.Getpid()), 0o600))
			case "malformed":
				must(t, os.WriteFile(pidFile, []byte("who knows"), 0o600))
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			state, err := worker.Resolve(ctx, dir, "one")
			must(t, err)
			if state != (worker.State{Gone: true, WasAlive: true, Existed: true}) {
				t.Errorf("state %+v", state)
			}
			must(t, w.Wait(ctx))
			if _, err := w.List(ctx); !reason.Is(err, reason.EnvironmentDead) {
				t.Errorf("a dead worker answered %v", err)
			}
			must(t, w.Close(ctx))
		})
	}
}

func TestResolveWaitsNoLongerThanItsContext(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "one")
	must(t, os.Mkdir(root, 0o700))
	// The lock is held, but by no worker: by this process, as another host would that resolves the same name.
	must(t, holdLock(t, filepath.Join(root, "lock")))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	state, err := worker.Resolve(ctx, dir, "one")
	if !errors.Is(err, context.DeadlineExceeded) || !reason.Is(err, reason.OperationUnknownOutcome) || state.Gone {
		t.Errorf("state %+v, %v", state, err)
	}
}

func TestResolveOfWhatNeverWas(t *testing.T) {
	dir := t.TempDir()
	state, err := worker.Resolve(context.Background(), dir, "one")
	must(t, err)
	if state != (worker.State{Gone: true}) {
		t.Errorf("state %+v", state)
	}
	// A host may die between making the directory and its lock.
	must(t, os.Mkdir(filepath.Join(dir, "one"), 0o700))
	state, err = worker.Resolve(context.Background(), dir, "one")
	must(t, err)
	if state != (worker.State{Gone: true, Existed: true}) {
		t.Errorf("state %+v", state)
	}
	for _, name := range []string{"", ".", "..", "a/b", "../x", strings.Repeat("n", 201)} {
		if _, err := worker.Resolve(context.Background(), dir, name); err == nil {
			t.Errorf("took the name %q", name)
		}
	}
}

func TestNamesAreUsedOnce(t *testing.T) {
	dir := t.TempDir()
	req := worker.StartRequest{Binary: pinned(t, shared.workerPath(t)), Starter: shared.starter, Dir: dir, Name: "one", Limits: limits(), Order: ordered()}
	w, err := worker.Start(context.Background(), req)
	must(t, err)
	if _, err := worker.Start(context.Background(), req); !reason.Is(err, reason.EnvironmentResourceExists) {
		t.Errorf("a second start answered %v", err)
	}
	if !w.Alive() {
		t.Error("the second start hurt the first worker")
	}
	must(t, w.Close(context.Background()))
	must(t, w.Close(context.Background()))
	req.Limits.MemoryPages = 0
	if _, err := worker.Start(context.Background(), req); !reason.Is(err, reason.EnvironmentUnsupported) {
		t.Errorf("limits outside their range answered %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestCancelledCallKillsTheWorker(t *testing.T) {
	w, _ := provisioned(t, limits(), shared.badtools(t))
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, err := w.Run(ctx, worker.RunRequest{Args: []string{"badtools", "loop"}, Seed: "s", WallMillis: 600_000}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("answered %v", err)
	}
	must(t, w.Wait(context.Background()))
}
