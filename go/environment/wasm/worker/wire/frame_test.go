package wire_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/reason"
)

func request() wire.Request {
	return wire.Request{Order: wire.Order{Bundle: canonical.Sum(nil), Attempt: "a", Generation: 3}, ID: 9, Verb: wire.VerbPut, Put: &wire.Put{Mount: "docs", Path: "a/b", Offset: 7, Last: true}}
}

func TestFramesComeBackAsTheyWent(t *testing.T) {
	var b bytes.Buffer
	sent := request()
	for _, body := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("y"), wire.MaxPiece)} {
		if err := wire.WriteFrame(&b, &sent, body); err != nil {
			t.Fatal(err)
		}
		var got wire.Request
		back, err := wire.ReadFrame(&b, &got, got.MaxBody)
		if err != nil {
			t.Fatal(err)
		}
		if got.Order != sent.Order || got.ID != sent.ID || *got.Put != *sent.Put || !bytes.Equal(back, body) {
			t.Errorf("got %+v with %d bytes", got, len(back))
		}
	}
	if _, err := wire.ReadFrame(&b, &wire.Request{}, func() int64 { return 0 }); !errors.Is(err, io.EOF) {
		t.Errorf("nothing more: %v", err)
	}
}

func TestFramesThatBreakOff(t *testing.T) {
	var b bytes.Buffer
	sent := request()
	if err := wire.WriteFrame(&b, &sent, []byte("body")); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	for n := 1; n < len(whole); n++ {
		var got wire.Request
		_, err := wire.ReadFrame(bytes.NewReader(whole[:n]), &got, got.MaxBody)
		if err == nil || err == io.EOF { // an end inside a frame is no end between frames
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

func TestBodiesAreBoundedByTheirVerb(t *testing.T) {
	for verb, limit := range map[wire.Verb]int64{
		wire.VerbHello: 0, wire.VerbProvision: wire.MaxModule, wire.VerbPut: wire.MaxPiece, wire.VerbRun: 0, wire.VerbList: 0, wire.VerbRead: 0, "other": 0,
	} {
		if got := (&wire.Request{Verb: verb}).MaxBody(); got != limit {
			t.Errorf("%s: %d, want %d", verb, got, limit)
		}
	}
	var b bytes.Buffer
	sent := request()
	if err := wire.WriteFrame(&b, &sent, make([]byte, wire.MaxPiece+1)); err != nil {
		t.Fatal(err)
	}
	var got wire.Request
	if _, err := wire.ReadFrame(&b, &got, got.MaxBody); !reason.Is(err, reason.EnvironmentProtocol) {
		t.Errorf("a body beyond its limit: %v", err)
	}
}

func TestLimitsAreChecked(t *testing.T) {
	if err := wire.Defaults().Check(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*wire.Limits){
		func(l *wire.Limits) { l.MemoryPages = 0 }, func(l *wire.Limits) { l.MemoryPages = 65537 }, func(l *wire.Limits) { l.CPUSeconds = -1 },
		func(l *wire.Limits) { l.InputFiles = 1 << 40 }, func(l *wire.Limits) { *l = wire.Limits{} },
	} {
		l := wire.Defaults()
		change(&l)
		if err := l.Check(); !reason.Is(err, reason.EnvironmentUnsupported) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	for _, l := range wire.AllLimits() {
		if !l.Code().Registered() {
			t.Errorf("%s has no registered code", l)
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	var b bytes.Buffer
	sent := request()
	if err := wire.WriteFrame(&b, &sent, []byte("body")); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte{0, 0, 0, 2, 0, 0, 0, 0, '{', '}'})
	f.Fuzz(func(t *testing.T, data []byte) {
		var got wire.Request
		body, err := wire.ReadFrame(bytes.NewReader(data), &got, got.MaxBody)
		if err != nil {
			return
		}
		// What was taken can be sent again, and is then the same bytes.
		var again bytes.Buffer
		if err := wire.WriteFrame(&again, &got, body); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(data, again.Bytes()) {
			t.Fatalf("read %x, wrote %x", data, again.Bytes())
		}
	})
}
