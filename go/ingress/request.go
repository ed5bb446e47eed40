package ingress

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
)

// maxHead bounds the line that begins a request, in bytes: two paths of the longest kind,
// and room for what stands around them.
const maxHead = 16 << 10

// answerWithin is how long a host may take to answer. It may have to wait for the end of
// what the supervisor of an attempt is just doing.
const answerWithin = time.Minute

// Request is what a person's process asks of the process that holds the state folder. It
// travels as a line of JSON, its head, that says how many bytes of content follow.
type Request struct {
	ID   string `json:"id"`
	Verb Verb   `json:"verb"`
	// Content is the command, or for a submission the work order in canonical JSON.
	Content string `json:"-"`
	// Name and Origin are the file of a submission and the absolute folder that its
	// sources are relative to.
	Name   string `json:"name,omitempty"`
	Origin string `json:"origin,omitempty"`
}

type head struct {
	Request
	// Size is the length of the content in bytes.
	Size int `json:"size"`
}

// limit is how many bytes of content a verb may have.
func limit(v Verb) int {
	if v == Submit {
		return schema.MaxDocumentBytes
	}
	return MaxContent
}

func (r Request) write(w io.Writer) error {
	line, err := json.Marshal(head{r, len(r.Content)})
	if err != nil {
		return err
	}
	_, err = w.Write(append(append(line, '\n'), r.Content...))
	return err
}

// readHead reads the line that begins a request, and refuses what is larger than its verb
// allows before any of it is read.
func readHead(from *bufio.Reader) (head, error) {
	line, err := from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return head{}, reason.New(reason.IngressTooLarge, fmt.Sprintf("the head of a request has at most %d bytes", from.Size()), LocalChannel, "use shorter paths")
	}
	if err != nil {
		return head{}, notWhole(err)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var h head
	if err := d.Decode(&h); err != nil || d.More() || h.Size < 0 {
		return head{}, reason.New(reason.IngressMalformed, "the request is not in the form of this release", LocalChannel, "use the writ of the same release").Because(err)
	}
	if most := limit(h.Verb); h.Size > most {
		return head{}, reason.New(reason.IngressTooLarge, fmt.Sprintf("the content of %q has at most %d bytes, this one has %d", h.Verb, most, h.Size), LocalChannel, "send less")
	}
	return h, nil
}

// readContent reads what follows the head.
func (h *head) readContent(from io.Reader) (Request, error) {
	content := make([]byte, h.Size)
	if _, err := io.ReadFull(from, content); err != nil {
		return Request{}, notWhole(err)
	}
	h.Content = string(content)
	return h.Request, nil
}

func notWhole(err error) error {
	return reason.New(reason.IngressMalformed, "the request did not arrive whole", LocalChannel, "send it again").Because(err)
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

// Send asks the process that holds a state folder, and decodes its answer into value. It
// returns false if no process takes requests there. A process that gives no answer within
// a minute is refused with ingress.unserved.
func Send(ctx context.Context, state string, r Request, value any) (bool, error) {
	return send(ctx, state, r, value, answerWithin)
}

func send(ctx context.Context, state string, r Request, value any, within time.Duration) (bool, error) {
	conn, err := dial(ctx, state)
	if err != nil || conn == nil {
		return false, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(within))
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past()) })()
	// Who is refused before all was read still gets the answer.
	unsent := r.write(conn)
	var answer Response
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		what := "the process that holds the state folder gave no answer"
		if ctx.Err() == nil && errors.Is(err, os.ErrDeadlineExceeded) {
			what = fmt.Sprintf("the process that holds the state folder did not answer within %s", within)
		}
		return true, reason.New(reason.IngressUnserved, what, r.ID,
			"see whether it still runs and is not stopped; the same request may be sent under the same id again: it is applied once").Because(errors.Join(unsent, err))
	}
	if f := answer.Refused; f != nil {
		return true, reason.New(f.Code, f.What, f.Where, f.Remedy)
	}
	return true, json.Unmarshal(answer.Value, value)
}

// dial connects to the process that holds a state folder; nil if there is none.
func dial(ctx context.Context, state string) (conn net.Conn, err error) {
	err = within(state, func(short string) (err error) {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "unix", filepath.Join(short, socketName))
		return err
	})
	where := filepath.Join(state, socketName)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED):
		return nil, nil
	case errors.Is(err, syscall.EAGAIN):
		return nil, reason.New(reason.IngressUnserved, "too many requests wait for the process that holds the state folder", where,
			"see whether it still runs and is not stopped, and send it again").Because(err)
	}
	return nil, reason.New(reason.IngressUnserved, "the process that holds the state folder cannot be asked", where,
		"check the permissions of the state folder").Because(err)
}
