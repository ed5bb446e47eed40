package ingress

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/reason"
)

// LocalChannel is the name of the channel of people on this machine.
const LocalChannel = "local"

// socketName is the socket of the process that holds a state folder, within it.
const socketName = "command.sock"

const (
	// maxConnections bounds the connections under way. Who comes after them waits.
	maxConnections = 32
	// maxLarge bounds the requests under way that are larger than a command.
	maxLarge = 2
	// patience is how long a connection may take to send its request, and to take the
	// answer.
	patience = 10 * time.Second
	// grace is how long it may take to take the answer while the channel closes.
	grace = time.Second
	// breath is how long the channel waits for room, at most, before it tries again.
	breath = 100 * time.Millisecond
)

// past is a deadline that is over.
func past() time.Time { return time.Unix(1, 0) }

// Handler answers a request of a principal that the kernel has authenticated.
type Handler func(ctx context.Context, principal string, r Request) (any, error)

// Local is the channel of people on this machine: a socket in the state folder, whose
// peers the kernel names.
type Local struct {
	listener *net.UnixListener
	path     string
	// made is the socket as it was made: another host may have put its own in its place.
	made   fs.FileInfo
	sentry sentry

	// closing ends when the channel takes no more requests.
	closing context.Context
	close   context.CancelFunc
	// slots and large hold one item for each connection and each large request under way.
	slots, large chan struct{}
	// freed has an item once a connection was closed.
	freed chan struct{}
	done  sync.WaitGroup
}

// Listen opens the channel of a state folder. Preconditions: the process holds the writer
// lock of the folder, so that a socket that stands there is nobody's.
func Listen(state string) (*Local, error) {
	// Who loses its parent stays below this process, so that no process of an attempt can
	// pass for a person's by forking twice.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of orphans: %w", err)
	}
	sentry, err := newSentry()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(state, socketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, unserved(path, err)
	}
	var listener *net.UnixListener
	err = within(state, func(short string) (err error) {
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, socketName), Net: "unix"})
		return err
	})
	if err != nil {
		return nil, unserved(path, err)
	}
	listener.SetUnlinkOnClose(false) // Its name is not the one that it was bound to.
	made, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(unserved(path, err), listener.Close())
	}
	l := &Local{
		listener: listener, path: path, made: made, sentry: sentry,
		slots: make(chan struct{}, maxConnections), large: make(chan struct{}, maxLarge), freed: make(chan struct{}, 1),
	}
	l.closing, l.close = context.WithCancel(context.Background())
	return l, nil
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

// Serve answers requests until Close, and then returns nil. It fails with ingress.unserved
// when the socket takes no connections any more, for good.
func (l *Local) Serve(ctx context.Context, h Handler) error {
	for {
		select {
		case l.slots <- struct{}{}:
		case <-l.closing.Done():
			return nil
		}
		conn, err := l.listener.AcceptUnix()
		if err == nil {
			l.done.Go(func() { l.answer(ctx, conn, h) })
			continue
		}
		<-l.slots
		switch {
		case l.closing.Err() != nil:
			return nil
		case !passing(err):
			return reason.New(reason.IngressUnserved, "the socket for commands takes no connections any more", l.path, "start the host again").Because(err)
		}
		l.rest()
	}
}

// passing reports whether an error of accept says nothing of the socket itself: the next
// connection may be had.
func passing(err error) bool {
	for _, one := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOBUFS, unix.ECONNABORTED, unix.EINTR} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// rest waits until there may be room for another connection.
func (l *Local) rest() {
	timer := time.NewTimer(breath)
	defer timer.Stop()
	select {
	case <-l.freed:
	case <-timer.C:
	case <-l.closing.Done():
	}
}

// answer answers the request of one connection, and closes it.
func (l *Local) answer(ctx context.Context, conn *net.UnixConn, h Handler) {
	defer func() {
		_ = conn.Close()
		<-l.slots
		select {
		case l.freed <- struct{}{}:
		default:
		}
	}()
	defer context.AfterFunc(l.closing, func() { _ = conn.SetReadDeadline(past()) })()
	value, err := l.take(ctx, conn, h)
	_ = conn.SetWriteDeadline(time.Now().Add(patience))
	defer context.AfterFunc(l.closing, func() { _ = conn.SetWriteDeadline(time.Now().Add(grace)) })()
	_ = json.NewEncoder(conn).Encode(respond(value, err))
}

// take reads a request and has it handled. Nothing is read of one that is refused, and no
// more than its verb allows of any other.
func (l *Local) take(ctx context.Context, conn *net.UnixConn, h Handler) (any, error) {
	accepted, err := ticks()
	if err != nil {
		return nil, err
	}
	principal, err := l.sentry.admit(conn, accepted)
	if err != nil {
		return nil, err
	}
	l.expect(conn)
	from := bufio.NewReaderSize(conn, maxHead)
	head, err := readHead(from)
	if err != nil {
		return nil, l.why(err)
	}
	if head.Size > MaxContent {
		select {
		case l.large <- struct{}{}:
			defer func() { <-l.large }()
		case <-l.closing.Done():
			return nil, l.why(l.closing.Err())
		}
		l.expect(conn) // It was not its fault that it waited.
	}
	r, err := head.readContent(from)
	if err != nil {
		return nil, l.why(err)
	}
	return h(ctx, principal, r)
}

// expect sets the time for what has to be read next.
func (l *Local) expect(conn *net.UnixConn) {
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if l.closing.Err() != nil {
		_ = conn.SetReadDeadline(past()) // Close may have set it before.
	}
}

// why is the answer to a request that could not be read, because of err.
func (l *Local) why(err error) error {
	if l.closing.Err() == nil {
		return err
	}
	return reason.New(reason.IngressUnserved, "the process that holds the state folder is ending, and took nothing of the request", l.path, "send it again").Because(err)
}

// Close takes no more requests. It ends those that are still being read, and waits for
// those that are being handled.
func (l *Local) Close() error {
	l.close()
	err := l.listener.Close()
	l.done.Wait()
	if now, serr := os.Lstat(l.path); serr == nil && os.SameFile(l.made, now) {
		err = errors.Join(err, os.Remove(l.path))
	}
	return err
}
