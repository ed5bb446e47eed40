package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// Bounds of a frame in bytes. A module travels in one body, files in pieces.
const (
	MaxHeader = 256 << 10
	MaxModule = 128 << 20
	MaxPiece  = 1 << 20
	MaxAnswer = 256 << 20 // a listing of very many files
	MaxOffer  = 64 << 10  // a checkpoint that the guest offers
)

// WriteFrame writes one frame: the lengths of header and body as big-endian 32-bit numbers, the header as
// canonical JSON, the body as it is.
func WriteFrame(w io.Writer, header any, body []byte) error {
	h, err := canonical.Marshal(header)
	if err != nil {
		return fmt.Errorf("encode frame header: %w", err)
	}
	if len(h) > MaxHeader {
		return broken("a header is larger than its limit", fmt.Sprintf("%d bytes", len(h)))
	}
	buf := make([]byte, 8, 8+len(h))
	binary.BigEndian.PutUint32(buf[0:], uint32(len(h)))
	binary.BigEndian.PutUint32(buf[4:], uint32(len(body)))
	if _, err := w.Write(append(buf, h...)); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	if len(body) > 0 {
		if _, err := w.Write(body); err != nil {
			return fmt.Errorf("write frame body: %w", err)
		}
	}
	return nil
}

// ReadFrame reads one frame into header and returns its body. maxBody is asked once the header is known, and
// before anything of the body is taken. It returns io.EOF when the other end closed between frames.
func ReadFrame(r io.Reader, header any, maxBody func() int64) ([]byte, error) {
	var sizes [8]byte
	if _, err := io.ReadFull(r, sizes[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, fmt.Errorf("read frame: %w", err)
	}
	h, b := binary.BigEndian.Uint32(sizes[0:]), binary.BigEndian.Uint32(sizes[4:])
	if h == 0 || h > MaxHeader {
		return nil, broken("a header has a length outside its limit", fmt.Sprintf("%d bytes", h))
	}
	buf := make([]byte, h)
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, fmt.Errorf("read frame header: %w", err)
	}
	if err := canonical.DecodeCanonical(buf, header); err != nil {
		return nil, broken("a header is malformed", "").Because(err)
	}
	// Decoding lets members be absent. The other end writes them all, so what it sent is what we would write.
	if again, err := canonical.Marshal(header); err != nil || !bytes.Equal(again, buf) {
		return nil, broken("a header lacks a member", "").Because(err)
	}
	if int64(b) > maxBody() {
		return nil, broken("a body is larger than its limit", fmt.Sprintf("%d bytes, limit %d", b, maxBody()))
	}
	if b == 0 {
		return nil, nil
	}
	body := make([]byte, b)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("read frame body: %w", err)
	}
	return body, nil
}

// MaxBody returns the largest body that goes with the request.
func (r *Request) MaxBody() int64 {
	switch r.Verb {
	case VerbProvision:
		return MaxModule
	case VerbPut:
		return MaxPiece
	default:
		return 0
	}
}

// Check refuses a request that has another member than its verb's.
func (r *Request) Check() error {
	want := map[Verb]bool{VerbHello: r.Hello != nil, VerbProvision: r.Provision != nil, VerbPut: r.Put != nil, VerbRun: r.Run != nil, VerbRead: r.Read != nil}
	set := 0
	for _, there := range want {
		if there {
			set++
		}
	}
	if needs, hasMember := want[r.Verb]; hasMember && needs && set == 1 || (r.Verb == VerbList || r.Verb == VerbReset) && set == 0 {
		return nil
	}
	return broken("a request does not fit its verb", string(r.Verb))
}

// Wrap returns err as a refusal to send, with the code environment.protocol where it is none.
func Wrap(err error) *Refusal {
	if r, ok := reason.As(err); ok {
		return &Refusal{Code: r.Code, What: r.What, Where: r.Where, Remedy: r.Remedy}
	}
	return &Refusal{Code: reason.EnvironmentProtocol, What: err.Error()}
}

// Err returns the refusal as an error.
func (r *Refusal) Err() error { return reason.New(r.Code, r.What, r.Where, r.Remedy) }

func broken(what, where string) *reason.Refusal {
	return reason.New(reason.EnvironmentProtocol, "host and worker do not understand each other: "+what, where,
		"worker and host have to come from one build; build the distribution again")
}
