package adapterhost_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/adapterhost"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// A start that cannot come to an answer ends in a coded refusal within its deadline, and leaves nothing behind.
func TestStartIsContained(t *testing.T) {
	for mode, want := range map[string]struct {
		code reason.Code
		says string
	}{
		"silent":        {reason.AdapterUnavailable, "kept silent"},
		"dies":          {reason.AdapterUnavailable, "the vendor forgot something"},
		"garbage":       {reason.AdapterProtocol, "handshake"},
		"longline":      {reason.AdapterProtocol, "handshake"},
		"oldversion":    {reason.AdapterProtocol, "version"},
		"nokeys":        {reason.AdapterUnavailable, "does not answer"},
		"othermanifest": {reason.AdapterLied, "manifest"},
	} {
		t.Run(mode, func(t *testing.T) {
			c := config(t, mode, bad(t))
			c.Timeouts.Start = 5 * time.Second
			begun := time.Now()
			_, err := adapterhost.Launch(t.Context(), c)
			if !reason.Is(err, want.code) || !strings.Contains(err.Error(), want.says) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("got %v", err)
			}
			if took := time.Since(begun); took > c.Timeouts.Start+5*time.Second {
				t.Errorf("it took %s", took)
			}
			nothingLeft(t, c)
		})
	}
}

// What has to be executed beside the pinned bytes is not: an adapter is one static executable.
func TestAProgramThatNeedsAnotherIsRefused(t *testing.T) {
	script := filepath.Join(t.TempDir(), "adapter")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := config(t, "script", script)
	_, err := adapterhost.Launch(t.Context(), c)
	r, ok := reason.As(err)
	if !ok || r.Code != reason.EnvironmentStartFailed || !strings.Contains(r.Remedy, "static executable") {
		t.Errorf("got %v", err)
	}
	nothingLeft(t, c)
}

func nothingLeft(t *testing.T, c adapterhost.Config) {
	t.Helper()
	if left, _ := os.ReadDir(c.Folder); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A prepare that crashes, hangs or answers badly is a doubt with a code, and the process that did it is dead.
func TestPrepareIsContained(t *testing.T) {
	for mode, want := range map[string]reason.Code{
		"crashprepare": reason.AdapterUnavailable,
		"hangprepare":  reason.AdapterUnavailable,
		"badclaim":     reason.AdapterProtocol,
		"hugeanswer":   reason.AdapterProtocol,
		"badcode":      reason.AdapterProtocol,
	} {
		t.Run(mode, func(t *testing.T) {
			c := config(t, mode, bad(t))
			c.Timeouts.Call = 2 * time.Second
			r := newRig(t, c)
			call, q := r.call(operation.Prepare)
			_, err := r.session.Prepare(t.Context(), call, q)
			if !reason.Is(err, want) || !errors.As(err, new(*executor.Doubt)) {
				t.Errorf("got %v", err)
			}
			if pid := r.host.PID(); pid != 0 {
				t.Errorf("process %d lives after the doubt", pid)
			}
		})
	}
}

// An adapter that ends at every call is given up, and says so at once.
func TestCrashingAdapterIsGivenUp(t *testing.T) {
	r := newRig(t, config(t, "crashprepare", bad(t)))
	call, q := r.call(operation.Prepare)
	for i := range 5 {
		_, err := r.session.Prepare(t.Context(), call, q)
		if i >= 3 && (errors.As(err, new(*executor.Doubt)) || !reason.Is(err, reason.AdapterUnavailable)) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestTwoAnswersAreALie(t *testing.T) {
	r := newRig(t, config(t, "twoanswers", bad(t)))
	call, q := r.call(operation.Prepare)
	if _, err := r.session.Prepare(t.Context(), call, q); err != nil {
		t.Fatal(err)
	}
	if _, err := r.session.Prepare(t.Context(), call, q); !reason.Is(err, reason.AdapterLied) {
		t.Errorf("got %v", err)
	}
}

func TestPlainErrorIsARefusal(t *testing.T) {
	r := newRig(t, config(t, "plainerror", bad(t)))
	call, q := r.call(operation.Prepare)
	a, err := r.session.Prepare(t.Context(), call, q)
	if err != nil || a.Refusal == nil || a.Refusal.Code != reason.AdapterFailed || !strings.Contains(a.Refusal.What, "something of its own") {
		t.Errorf("got %v, %v", err, a.Refusal)
	}
}

// Floods cost the adapter its own time and reach nobody.
func TestFloodsAreBounded(t *testing.T) {
	r := newRig(t, config(t, "logflood", bad(t)))
	call, q := r.call(operation.Prepare)
	if _, err := r.session.Prepare(t.Context(), call, q); err != nil {
		t.Fatal(err)
	}
	if n := len(r.desk.lines); n != 1000 || !strings.Contains(r.desk.lines[n-1], "dropped") || strings.Contains(r.desk.lines[0], "\x1b") {
		t.Errorf("%d lines, the first %q", n, r.desk.lines[0])
	}
	f := newRig(t, config(t, "stderrflood", bad(t)))
	call, q = f.call(operation.Prepare)
	if _, err := f.session.Prepare(t.Context(), call, q); err != nil {
		t.Errorf("prepare under a flood: %v", err)
	}
}

// The adapter has exactly the registered variables and descriptors.
func TestNothingOfTheHostIsInherited(t *testing.T) {
	t.Setenv("WRIT_SECRET_OF_THE_HOST", "canary")
	r := newRig(t, config(t, "look", bad(t)))
	call, q := r.call(operation.Prepare)
	if _, err := r.session.Prepare(t.Context(), call, q); err != nil {
		t.Fatal(err)
	}
	if got := r.desk.line("info env "); got != "PLUGIN_MULTIPLEX_GRPC PLUGIN_PROTOCOL_VERSIONS PLUGIN_UNIX_SOCKET_DIR WRIT_ADAPTER" {
		t.Errorf("variables: %s", got)
	}
	if got := r.desk.line("info cwd "); got != "/" {
		t.Errorf("works in %s", got)
	}
	if got := r.desk.line("info inherits "); got != "0=/dev/null 1=pipe 2=pipe 3=/memfd 4=pipe" {
		t.Errorf("inherits: %s", got)
	}
	// The binary and the keys are closed once they were read.
	if got := r.desk.line("info holds "); strings.Contains(got, "memfd") {
		t.Errorf("holds: %s", got)
	}
}

// Two hosts of one binary have different keys and processes; a foreign bundle is refused.
func TestActivation(t *testing.T) {
	c := config(t, "reference-local", reference(t))
	r := newRig(t, c)
	if _, err := r.host.Activate(r.bundle, r.fence, r.desk); !reason.Is(err, reason.KernelWrongState) {
		t.Errorf("a second session: %v", err)
	}
	other := config(t, "another", reference(t))
	host, err := adapterhost.Launch(t.Context(), other)
	if err == nil {
		_, err = host.Activate(r.bundle, r.fence, r.desk)
		_ = host.Close()
	}
	if !reason.Is(err, reason.PinDigestMismatch) {
		t.Errorf("a bundle that pins another adapter: %v", err)
	}
}

// What a killed host left is removed, and what a living one uses stays, whatever process
// numbers say: hosts of several process namespaces can share a folder.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"writ-a.dead", "writ-a.living", "writ-a.new", "writ-a.old", "other"} {
		if err := os.Mkdir(dir+"/"+name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"dead", "living"} {
		lock, err := os.Create(dir + "/writ-a." + name + "/lock")
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		if name == "living" {
			if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
				t.Fatal(err)
			}
		}
	}
	hourAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir+"/writ-a.old", hourAgo, hourAgo); err != nil {
		t.Fatal(err)
	}
	if err := adapterhost.Sweep(dir); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if strings.Join(left, " ") != "other writ-a.living writ-a.new" {
		t.Errorf("left: %v", left)
	}
}
