package ingress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/reason"
)

// roleEnv has this very program be a host, or a process that asks one, over the state
// folder of stateEnv: who is a person is a question about processes.
const (
	roleEnv  = "WRIT_TEST_ROLE"
	stateEnv = "WRIT_TEST_STATE"
)

// play plays a role, and says on standard output how far it is.
func play(role, state string) int {
	orders := bufio.NewScanner(os.Stdin)
	role, argument, _ := strings.Cut(role, " ")
	switch role {
	case "host":
		return beHost(state, argument, orders)
	case "send":
		return say(ask(state, argument))
	case "raw":
		return say(raw(state, argument, func() {}))
	case "half":
		return say(raw(state, argument, func() { fmt.Println("connected") }))
	case "idle":
		n, _ := strconv.Atoi(argument)
		for range n {
			if _, err := connect(state); err != nil {
				return say(err.Error())
			}
		}
		fmt.Println("idle")
		orders.Scan()
		return 0
	case "earlier", "shell":
		// A host of which something survives that has cut itself loose; or no host at all.
		cmd := &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", argument, os.Args[0]}, Stdin: os.Stdin, Stdout: os.Stdout,
			Env: []string{"PATH=" + os.Getenv("PATH"), roleEnv + "=send", stateEnv + "=" + state}}
		if role == "shell" {
			_ = cmd.Run()
			return 0
		}
		child, err := confine.NewStarter().Start(context.Background(), cmd)
		if err != nil {
			return say(err.Error())
		}
		_, _ = child.Wait(context.Background())
		return 0
	}
	return 2
}

func say(text string) int {
	fmt.Println(text)
	return 0
}

// ask sends a request with a content of so many bytes, "hold" among them to be held.
func ask(state, argument string) string {
	r := ingress.Request{ID: "dlv_1", Verb: ingress.Command, Content: argument}
	if n, err := strconv.Atoi(argument); err == nil {
		r.Verb, r.Content = ingress.Submit, strings.Repeat("x", n)
	}
	var answer string
	served, err := ingress.Send(context.Background(), state, r, &answer)
	return fmt.Sprintf("%t %q %v", served, answer, err)
}

// raw sends bytes, leaves its end open, and returns what it is told until the other end is
// closed.
func raw(state, text string, connected func()) string {
	conn, err := connect(state)
	if err != nil {
		return err.Error()
	}
	connected()
	_, _ = io.WriteString(conn, strings.ReplaceAll(text, "~", "\n"))
	told, err := io.ReadAll(conn)
	if errors.Is(err, unix.ECONNRESET) {
		err = nil // It was closed with something unread.
	}
	return fmt.Sprintf("%s %v", strings.TrimSpace(string(told)), err)
}

func connect(state string) (net.Conn, error) {
	if err := os.Chdir(state); err != nil { // The name of a socket is short.
		return nil, err
	}
	return net.Dial("unix", "command.sock")
}

// beHost serves until it is told to close, or its standard input ends. It holds requests
// that say so until it is told to release one.
func beHost(state, argument string, orders *bufio.Scanner) int {
	local, err := ingress.Listen(state)
	if err != nil {
		return say(err.Error())
	}
	var full []*os.File
	if argument == "full" {
		if full, err = fill(); err != nil {
			return say(err.Error())
		}
	}
	release := make(chan struct{})
	go func() {
		err := local.Serve(context.Background(), func(_ context.Context, principal string, r ingress.Request) (any, error) {
			if r.Content == "hold" || r.Verb == ingress.Submit {
				fmt.Println("holding")
				<-release
				fmt.Println("released")
			}
			return fmt.Sprintf("%s %d", principal, len(r.Content)), nil
		})
		if err != nil {
			fmt.Println("dead", err)
		}
	}()
	fmt.Println("listening")
	for orders.Scan() && orders.Text() != "close" {
		switch orders.Text() {
		case "release":
			release <- struct{}{}
		case "free":
			for _, f := range full {
				_ = f.Close()
			}
		}
	}
	ended := make(chan error)
	go func() { ended <- local.Close() }()
	for {
		lines := make(chan bool)
		go func() { lines <- orders.Scan() }()
		select {
		case err := <-ended:
			fmt.Println("closed", err)
			return 0
		case more := <-lines:
			if more {
				release <- struct{}{}
				continue
			}
			fmt.Println("closed", <-ended)
			return 0
		}
	}
}

// fill takes every descriptor that this process may have.
func fill() (files []*os.File, err error) {
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}); err != nil {
		return nil, err
	}
	for {
		f, err := os.Open("/dev/null")
		if errors.Is(err, unix.EMFILE) {
			return files, nil
		}
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
}

// actor is a process that plays a role.
type actor struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string
}

func begin(t *testing.T, state, role string) *actor {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := &actor{t: t, cmd: exec.Command(self), lines: make(chan string, 1000)}
	a.cmd.Env = append(os.Environ(), roleEnv+"="+role, stateEnv+"="+state)
	a.cmd.Stderr = os.Stderr
	if a.stdin, err = a.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	a.cmd.Stdout = outWrite
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = outWrite.Close()
	go func() {
		defer close(a.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			a.lines <- s.Text()
		}
		_ = out.Close()
	}()
	t.Cleanup(func() { _ = a.cmd.Process.Kill(); _ = a.cmd.Wait() })
	return a
}

// host begins a host that listens.
func host(t *testing.T, role string) (*actor, string) {
	t.Helper()
	state := t.TempDir()
	h := begin(t, state, role)
	h.expect("listening")
	return h, state
}

// line is the next line that it says. Nothing here takes as long as the channel's own
// patience.
func (a *actor) line() string {
	a.t.Helper()
	select {
	case line, ok := <-a.lines:
		if !ok {
			a.t.Fatal("it ended without a word")
		}
		return line
	case <-time.After(ingress.Patience * 2 / 3):
		a.t.Fatal("it says nothing")
	}
	return ""
}

func (a *actor) expect(want string) {
	a.t.Helper()
	if line := a.line(); !strings.Contains(line, want) {
		a.t.Fatalf("it says %q, want %q", line, want)
	}
}

func (a *actor) order(text string) {
	a.t.Helper()
	if _, err := io.WriteString(a.stdin, text+"\n"); err != nil {
		a.t.Fatal(err)
	}
}

// sockets counts those that it has open.
func (a *actor) sockets() (n int) {
	a.t.Helper()
	folder := fmt.Sprintf("/proc/%d/fd", a.cmd.Process.Pid)
	open, err := os.ReadDir(folder)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, e := range open {
		if to, err := os.Readlink(filepath.Join(folder, e.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// served demands that a person is answered.
func served(t *testing.T, state string) {
	t.Helper()
	begin(t, state, "send hello").expect(fmt.Sprintf("true \"%s 5\" <nil>", ingress.Person(os.Getuid())))
}

// A host without descriptors takes no connection, and goes on when it has some again.
func TestDescriptorsRunOut(t *testing.T) {
	h, state := host(t, "host full")
	waiting := begin(t, state, "send hello")
	refused := begin(t, state, "idle 3")
	refused.expect("idle")
	h.order("free")
	waiting.expect("true")
	served(t, state)
	h.order("close")
	h.expect("closed <nil>")
}

// A socket that is broken is no reason to wait.
func TestABrokenSocketEndsServing(t *testing.T) {
	local, err := ingress.Listen(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil && listens == 1 {
			if err := unix.Dup3(int(null.Fd()), fd, unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := local.Serve(t.Context(), nil); !reason.Is(err, reason.IngressUnserved) || !strings.Contains(err.Error(), "takes no connections any more") {
		t.Errorf("serving ended with %v", err)
	}
	if err := local.Close(); err != nil {
		t.Error(err)
	}
}

// So many connections are under way at once, and no more; the others wait, and get their
// turn.
func TestConnectionsAreBounded(t *testing.T) {
	h, state := host(t, "host")
	before := h.sockets()
	idle := begin(t, state, fmt.Sprint("idle ", 3*ingress.MaxConnections))
	idle.expect("idle")
	for h.sockets() < before+ingress.MaxConnections {
		if t.Context().Err() != nil {
			t.Fatal("they are not taken")
		}
	}
	waiting := begin(t, state, "send hello")
	another := begin(t, t.TempDir(), "send hello") // Time enough for the host to take more of them.
	another.expect("false")
	if n := h.sockets(); n > before+ingress.MaxConnections {
		t.Errorf("%d connections are under way, %d may be", n-before, ingress.MaxConnections)
	}
	idle.order("end")
	waiting.expect("true")
	h.order("close")
	h.expect("closed <nil>")
}

// What is larger than a command is taken a few at a time, and holds up no command.
func TestLargeRequestsAreBounded(t *testing.T) {
	h, state := host(t, "host")
	var large []*actor
	for range ingress.MaxLarge + 1 {
		large = append(large, begin(t, state, "send 1000000"))
	}
	for range ingress.MaxLarge {
		h.expect("holding")
	}
	for range 3 {
		served(t, state)
	}
	h.order("release")
	h.expect("released") // Before the third is taken.
	h.expect("holding")
	h.order("release")
	h.order("release")
	for _, one := range large {
		one.expect("1000000")
	}
}

// Who is refused is told so at once, however much it still has to say, or means to.
func TestRefusedAtOnce(t *testing.T) {
	_, state := host(t, "host")
	for name, c := range map[string]struct {
		text string
		code reason.Code
	}{
		"a large command":       {`{"id":"dlv_1","verb":"command","size":8193}~`, reason.IngressTooLarge},
		"a large submission":    {`{"id":"dlv_1","verb":"submit","size":1048577}~`, reason.IngressTooLarge},
		"a large anything":      {`{"id":"dlv_1","verb":"anything","size":8193}~` + strings.Repeat("x", 8193), reason.IngressTooLarge},
		"a long head":           {`{"id":"dlv_1","verb":"submit","name":"` + strings.Repeat("x", 16<<10), reason.IngressTooLarge},
		"less than nothing":     {`{"id":"dlv_1","verb":"command","size":-1}~`, reason.IngressMalformed},
		"an unknown field":      {`{"id":"dlv_1","verb":"command","content":"/writ wake","size":0}~`, reason.IngressMalformed},
		"more than one":         {`{"id":"dlv_1","verb":"command","size":0} {}~`, reason.IngressMalformed},
		"what is no request":    {`GET / HTTP/1.1~`, reason.IngressMalformed},
		"the largest submitted": {`{"id":"dlv_1","verb":"command","size":3}~abc`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := string(c.code)
			if want == "" {
				want = `{"value":"` + ingress.Person(os.Getuid()) + ` 3"}`
			}
			begin(t, state, "raw "+c.text).expect(want)
		})
	}
	// A command that is too large is refused with its own answer, though it cannot be sent.
	begin(t, state, "send "+strings.Repeat("x", 100<<10)).expect("ingress.too_large")
}

// What a host started is refused before it has said anything.
func TestNobodyIsHeardOut(t *testing.T) {
	state := t.TempDir()
	local, err := ingress.Listen(state)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = local.Serve(t.Context(), nil) }()
	begin(t, state, "raw").expect(string(reason.IngressNotAPerson))
	if err := local.Close(); err != nil {
		t.Error(err)
	}
}

// Closing waits for nobody but those whose requests are being handled.
func TestClose(t *testing.T) {
	h, state := host(t, "host")
	idle := begin(t, state, "idle 3")
	idle.expect("idle")
	half := begin(t, state, `half {"id":"dlv_1","verb":"submit","size":10000}~begun`)
	half.expect("connected") // It is taken before what comes next is.
	held := begin(t, state, "send hold")
	h.expect("holding")
	begun := time.Now()
	h.order("close")
	half.expect("is ending")
	h.order("release")
	h.expect("released")
	h.expect("closed <nil>")
	if took := time.Since(begun); took > ingress.Patience/2 {
		t.Errorf("closing took %s", took)
	}
	held.expect(`4" <nil>`)
}

// The socket of another host that has taken the place stays.
func TestCloseLeavesAnothersSocket(t *testing.T) {
	state := t.TempDir()
	first, err := ingress.Listen(state)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ingress.Listen(state)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	socket := filepath.Join(state, "command.sock")
	if _, err := os.Lstat(socket); err != nil {
		t.Errorf("the socket of the second: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its socket after it closed: %v", err)
	}
}

// A host that does not answer keeps nobody for ever.
func TestNoAnswer(t *testing.T) {
	state := t.TempDir()
	silent, err := net.Listen("unix", filepath.Join(state, "command.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	r := ingress.Request{ID: "dlv_1", Verb: ingress.Submit, Content: strings.Repeat("x", 1<<20)}
	served, err := ingress.SendWithin(t.Context(), state, r, new(string), 50*time.Millisecond)
	if !served || !reason.Is(err, reason.IngressUnserved) || !strings.Contains(err.Error(), "did not answer within 50ms") {
		t.Errorf("%t, %v", served, err)
	}
	// One whose process is stopped takes no more than so many, and then refuses at once.
	for range 1 << 16 {
		conn, err := net.Dial("unix", filepath.Join(state, "command.sock"))
		if errors.Is(err, unix.EAGAIN) {
			served, err := ingress.Send(t.Context(), state, r, new(string))
			if served || !reason.Is(err, reason.IngressUnserved) || !strings.Contains(err.Error(), "too many requests wait") {
				t.Errorf("%t, %v", served, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	t.Error("it takes connections without end")
}

// What survived an earlier host is below no host any more. It is no person all the same:
// neither the process, which is older than this host, nor what it starts now.
func TestSurvivorsOfAnEarlierHost(t *testing.T) {
	bound, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ script, want string }{
		"a younger child": {`"$0"`, "no new privileges"},
		// Clearing its environment does not help it, nor a session of its own.
		"a child that hides": {`setsid env -i ` + roleEnv + `=send ` + stateEnv + `="$` + stateEnv + `" "$0"`, "no new privileges"},
	} {
		t.Run(name, func(t *testing.T) {
			if bound != 0 {
				t.Skip("everything here may gain no new privileges: then it is no mark")
			}
			survive(t, "earlier", c.script, c.want)
		})
	}
	t.Run("the process itself", func(t *testing.T) { survive(t, "shell", `exec "$0"`, "older than this host") })
}

// survive has a process survive its host, waits for the next one, and demands what that
// answers to what the script sends then.
func survive(t *testing.T, role, script, want string) {
	t.Helper()
	state := t.TempDir()
	loose := ` setsid sh -c 'cd "$` + stateEnv + `" || exit; echo loose; until [ -S command.sock ]; do [ -d "$` + stateEnv + `" ] || exit; done; ` + script + `' "$0" & read end`
	earlier := begin(t, state, role+loose)
	earlier.expect("loose")
	earlier.order("end")
	if err := earlier.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	// The kernel tells ages in ticks of 10 ms.
	for begun := bootTicks(t); bootTicks(t) == begun; {
	}
	h := begin(t, state, "host")
	h.expect("listening")
	line := earlier.line()
	if !strings.Contains(line, string(reason.IngressNotAPerson)) || !strings.Contains(line, want) {
		t.Errorf("it is told %s", line)
	}
	served(t, state)
}

func bootTicks(t *testing.T) int64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		t.Fatal(err)
	}
	return now.Nano() / int64(10*time.Millisecond)
}
