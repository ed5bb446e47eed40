package ingress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/reason"
)

// LocalChannel is the name of the channel of people on this machine.
const LocalChannel = "local"

// socketName is the socket of the process that holds a state folder, within it.
const socketName = "command.sock"

// maxRequest bounds what one connection may send, in bytes: a work order, and room for
// its escapes in JSON.
const maxRequest = 8 << 20

// patience is how long a connection may take to send its request.
const patience = 10 * time.Second

// Request is what a person's process asks of the process that holds the state folder.
type Request struct {
	ID   string `json:"id"`
	Verb Verb   `json:"verb"`
	// Content is the command, or for a submission the work order in canonical JSON.
	Content string `json:"content"`
	// Name and Origin are the file of a submission and the absolute folder that its
	// sources are relative to.
	Name   string `json:"name,omitempty"`
	Origin string `json:"origin,omitempty"`
}

// Response answers a request: with a value, or with why there is none.
type Response struct {
	Value   json.RawMessage `json:"value,omitempty"`
	Refused *Refused        `json:"refused,omitempty"`
}

// Refused is a refusal on its way to another process.
type Refused struct {
	Code   reason.Code `json:"code"`
	What   string      `json:"what"`
	Where  string      `json:"where,omitempty"`
	Remedy string      `json:"remedy,omitempty"`
}

// Handler answers a request of a principal that the kernel has authenticated.
type Handler func(ctx context.Context, principal string, r Request) (any, error)

// Local is the channel of people on this machine: a socket in the state folder, whose
// peers the kernel names.
type Local struct {
	listener *net.UnixListener
	path     string
	done     sync.WaitGroup
}

// Listen opens the channel of a state folder. Preconditions: the process holds the writer
// lock of the folder, so that a socket that stands there is nobody's.
func Listen(state string) (*Local, error) {
	// Who loses its parent stays below this process, so that no process of an attempt can
	// pass for a person's by forking twice.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of orphans: %w", err)
	}
	path := filepath.Join(state, socketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, unserved(path, err)
	}
	var l *net.UnixListener
	err := within(state, func(short string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, socketName), Net: "unix"})
		return err
	})
	if err != nil {
		return nil, unserved(path, err)
	}
	l.SetUnlinkOnClose(false) // Its name is not the one that it was bound to.
	return &Local{listener: l, path: path}, nil
}

// within gives a folder a name that fits into the address of a socket.
func within(folder string, f func(short string) error) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer d.Close()
	return f("/proc/self/fd/" + strconv.Itoa(int(d.Fd())))
}

func unserved(path string, err error) error {
	return reason.New(reason.IngressUnserved, "the socket for commands cannot be opened", path, "check the permissions of the state folder").Because(err)
}

// Serve answers requests until Close.
func (l *Local) Serve(ctx context.Context, h Handler) {
	for {
		conn, err := l.listener.AcceptUnix()
		if err != nil {
			return
		}
		l.done.Go(func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			value, err := serve(ctx, conn, h)
			_ = conn.SetDeadline(time.Now().Add(patience))
			_ = json.NewEncoder(conn).Encode(respond(value, err))
			// What is closed with something unread takes its last words with it.
			_ = conn.CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
		})
	}
}

func serve(ctx context.Context, conn *net.UnixConn, h Handler) (any, error) {
	principal, err := peer(conn)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(conn, maxRequest+1))
	if err != nil {
		return nil, reason.New(reason.IngressMalformed, "the request did not arrive whole", LocalChannel, "send it again").Because(err)
	}
	if len(raw) > maxRequest {
		return nil, reason.New(reason.IngressTooLarge, fmt.Sprintf("a request has at most %d bytes", maxRequest), LocalChannel, "send less")
	}
	var r Request
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, reason.New(reason.IngressMalformed, "the request is not in the form of this release", LocalChannel, "use the writ of the same release").Because(err)
	}
	return h(ctx, principal, r)
}

func respond(value any, err error) Response {
	if err == nil {
		var raw json.RawMessage
		if raw, err = json.Marshal(value); err == nil {
			return Response{Value: raw}
		}
	}
	if r, ok := reason.As(err); ok {
		return Response{Refused: &Refused{r.Code, r.What, r.Where, r.Remedy}}
	}
	return Response{Refused: &Refused{Code: reason.InternalBug, What: err.Error(), Remedy: "this is a fault of Writ: please report it"}}
}

// peer returns who is at the other end, by the kernel's word. A process of an attempt or
// of an adapter is no person, whatever its user: it descends from this process.
func peer(conn *net.UnixConn) (string, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return "", err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return "", err
	}
	if failed != nil {
		return "", fmt.Errorf("credentials of the peer: %w", failed)
	}
	below, err := descends(int(cred.Pid), os.Getpid())
	if err != nil || below {
		return "", reason.New(reason.IngressNotAPerson, "the request comes from a process of an attempt or of an adapter, or from one that cannot be looked at",
			"process "+strconv.Itoa(int(cred.Pid)), "only a person's own process may command").Because(err)
	}
	return Person(int(cred.Uid)), nil
}

// descends reports whether a process is below another. A process that cannot be looked at
// is an error: it may be any.
func descends(pid, from int) (bool, error) {
	if pid <= 0 {
		return false, errors.New("it is in a process namespace that cannot be seen from here")
	}
	for pid > 1 {
		if pid == from {
			return true, nil
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return false, err
		}
		// pid (name) state ppid; the name may hold anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 {
			return false, fmt.Errorf("the state of process %d is %q", pid, stat)
		}
		if pid, err = strconv.Atoi(fields[1]); err != nil {
			return false, err
		}
	}
	return pid == from, nil // 1 or 0: there is nobody above.
}

// Close takes no more requests, and waits for those under way.
func (l *Local) Close() error {
	err := errors.Join(l.listener.Close(), os.Remove(l.path))
	l.done.Wait()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Send asks the process that holds a state folder, and decodes its answer into value. It
// returns false if no process takes requests there.
func Send(ctx context.Context, state string, r Request, value any) (bool, error) {
	var conn net.Conn
	err := within(state, func(short string) (err error) {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "unix", filepath.Join(short, socketName))
		return err
	})
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return false, nil
	}
	if err != nil {
		return false, reason.New(reason.IngressUnserved, "the process that holds the state folder cannot be asked", filepath.Join(state, socketName),
			"check the permissions of the state folder").Because(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	lost := func(err error) error {
		return reason.New(reason.IngressUnserved, "the process that holds the state folder gave no answer", r.ID,
			"send the same request under the same id again: it is applied once").Because(err)
	}
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return true, lost(err)
	}
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		return true, lost(err)
	}
	var answer Response
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return true, lost(err)
	}
	if f := answer.Refused; f != nil {
		return true, reason.New(f.Code, f.What, f.Where, f.Remedy)
	}
	return true, json.Unmarshal(answer.Value, value)
}
