package confine_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/reason"
)

// waiting starts a child that prints its environment and then waits for ever. It returns what it printed.
func waiting(t *testing.T, s *confine.Starter) (*confine.Child, string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := &exec.Cmd{Path: probePath(t), Args: []string{"confineprobe", "wait"}, Stdout: w}
	child, err := s.Start(context.Background(), cmd)
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return child, line
}

func end(t *testing.T, c *confine.Child) syscall.WaitStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	state, err := c.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return state.Sys().(syscall.WaitStatus)
}

// onNewThread returns no_new_privs of a thread that is made for it.
func onNewThread(t *testing.T) int {
	t.Helper()
	answer := make(chan int)
	go func() {
		runtime.LockOSThread() // Never unlocked: it ends with its goroutine, and the next is another.
		n, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		answer <- n
	}()
	return <-answer
}

func TestChildIsAloneAndEmptyHanded(t *testing.T) {
	t.Setenv("SECRET_OF_THE_HOST", "1")
	s := confine.NewStarter()
	defer s.Close()
	child, printed := waiting(t, s)
	if printed != "environment []\n" {
		t.Errorf("the child has %s", printed)
	}
	if sid, err := unix.Getsid(child.PID()); err != nil || sid != child.PID() {
		t.Errorf("session %d of child %d, %v", sid, child.PID(), err)
	}
	if start, err := confine.StartTime(child.PID()); err != nil || start != child.StartTime() || start == 0 {
		t.Errorf("start time %d, %d at the start, %v", start, child.StartTime(), err)
	}
	// It is marked for ever, and this process is not: see the peers of go/ingress.
	own, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if status, err := os.ReadFile("/proc/" + strconv.Itoa(child.PID()) + "/status"); err != nil || !strings.Contains(string(status), "NoNewPrivs:\t1\n") {
		t.Errorf("the child may gain new privileges: %v\n%s", err, status)
	}
	for range 10 {
		// On threads that were made after the starter's.
		if now := onNewThread(t); now != own {
			t.Fatalf("no_new_privs of this process became %d, it was %d", now, own)
		}
	}
	if !child.Alive() {
		t.Error("not alive")
	}
	for range 2 {
		if err := child.Kill(); err != nil {
			t.Error(err)
		}
		if status := end(t, child); status.Signal() != syscall.SIGKILL {
			t.Errorf("ended by %v", status.Signal())
		}
	}
	if child.Alive() {
		t.Error("alive after its end")
	}
}

func TestChildrenDieWithTheStarter(t *testing.T) {
	s := confine.NewStarter()
	child, _ := waiting(t, s)
	s.Close()
	if status := end(t, child); status.Signal() != syscall.SIGKILL {
		t.Errorf("ended by %v", status.Signal())
	}
	if _, err := s.Start(context.Background(), &exec.Cmd{Path: probePath(t)}); !reason.Is(err, reason.EnvironmentStartFailed) {
		t.Errorf("a closed starter answered %v", err)
	}
}

func TestStartOfNothing(t *testing.T) {
	s := confine.NewStarter()
	defer s.Close()
	_, err := s.Start(context.Background(), &exec.Cmd{Path: "/nonexistent", Args: []string{"nothing"}})
	if !reason.Is(err, reason.EnvironmentStartFailed) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("answered %v", err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	s := confine.NewStarter()
	defer s.Close()
	child, _ := waiting(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := child.Wait(ctx); !errors.Is(err, context.Canceled) || !child.Alive() {
		t.Errorf("answered %v, alive %t", err, child.Alive())
	}
}

func TestKillIfKillsOnlyTheOneMeant(t *testing.T) {
	s := confine.NewStarter()
	defer s.Close()
	child, _ := waiting(t, s)
	is := func(start uint64) func() (bool, error) {
		return func() (bool, error) {
			now, err := confine.StartTime(child.PID())
			return now == start, err
		}
	}
	if hit, err := confine.KillIf(child.PID(), is(child.StartTime()+1)); hit || err != nil || !child.Alive() {
		t.Errorf("another process: %t %v", hit, err)
	}
	if hit, err := confine.KillIf(child.PID(), is(child.StartTime())); !hit || err != nil {
		t.Errorf("the process: %t %v", hit, err)
	}
	end(t, child)
	if hit, err := confine.KillIf(child.PID(), func() (bool, error) { return true, nil }); hit || err != nil {
		t.Errorf("a process that is gone: %t %v", hit, err)
	}
}

func TestCloseInherited(t *testing.T) {
	leak, err := os.CreateTemp(t.TempDir(), "leak")
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	for what, leaks := range map[string]bool{"descriptors": true, "inherit": false} {
		cmd := exec.Command(probePath(t), what)
		cmd.ExtraFiles = []*os.File{leak}
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), leak.Name()) != leaks {
			t.Errorf("%s: %v, printed %q, want the leaked file in it: %t", what, err, out, leaks)
		}
	}
}
