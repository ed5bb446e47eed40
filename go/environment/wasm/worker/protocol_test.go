package worker_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment/wasm/worker"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/reason"
)

func holdLock(t *testing.T, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = f.Close() })
	return unix.Flock(int(f.Fd()), unix.LOCK_EX)
}

// raw is a worker without the host's side: a test speaks for the host.
type raw struct {
	socket *os.File
	cmd    *exec.Cmd
	stderr *strings.Builder
}

func startRaw(t *testing.T) *raw {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	must(t, unix.SetNonblock(fds[0], true))
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	lock, err := os.CreateTemp(t.TempDir(), "lock")
	must(t, err)
	defer lock.Close()
	defer theirs.Close()
	r := &raw{socket: ours, cmd: pinned(t, shared.workerPath(t)).Command(nil, theirs, lock), stderr: &strings.Builder{}}
	r.cmd.Stderr = r.stderr
	must(t, r.cmd.Start())
	t.Cleanup(func() { _ = ours.Close(); _ = r.cmd.Process.Kill(); _ = r.cmd.Wait() })
	must(t, ours.SetDeadline(time.Now().Add(time.Minute)))
	return r
}

func (r *raw) send(t *testing.T, req wire.Request, body []byte) {
	t.Helper()
	must(t, wire.WriteFrame(r.socket, &req, body))
}

func (r *raw) receive(t *testing.T) wire.Response {
	t.Helper()
	var resp wire.Response
	_, err := wire.ReadFrame(r.socket, &resp, func() int64 { return wire.MaxAnswer })
	if err != nil {
		t.Fatalf("%v; worker said %s", err, r.stderr)
	}
	return resp
}

// gone waits for the end of the worker.
func (r *raw) gone(t *testing.T) {
	t.Helper()
	b := make([]byte, 1)
	if _, err := r.socket.Read(b); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the worker did not end: %v", err)
	}
}

func hello() wire.Request {
	return wire.Request{Order: ordered(), ID: 1, Verb: wire.VerbHello, Hello: &wire.Hello{Name: "one", Limits: limits()}}
}

func TestWorkerRefusesRequestsOutOfOrder(t *testing.T) {
	for name, second := range map[string]wire.Request{
		"run before the tool":    {Verb: wire.VerbRun, Run: &wire.Run{Args: []string{"x"}, WallMillis: 1}},
		"list before the tool":   {Verb: wire.VerbList},
		"read before the tool":   {Verb: wire.VerbRead, Read: &wire.Read{Path: "x"}},
		"put before the tool":    {Verb: wire.VerbPut, Put: &wire.Put{Mount: "m", Path: "p"}},
		"hello twice":            hello(),
		"unknown verb":           {Verb: "format"},
		"verb without member":    {Verb: wire.VerbRun},
		"member of another verb": {Verb: wire.VerbList, Read: &wire.Read{Path: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := startRaw(t)
			r.send(t, hello(), nil)
			if resp := r.receive(t); resp.Refusal != nil {
				t.Fatal(resp.Refusal.Err())
			}
			second.Order, second.ID = ordered(), 2
			r.send(t, second, nil)
			if resp := r.receive(t); resp.Refusal == nil || resp.Refusal.Code != reason.EnvironmentProtocol || resp.ID != 2 {
				t.Errorf("answered %+v", resp)
			}
		})
	}
}

// A worker does nothing for another order than the one that its hello was of: not for another
// bundle, attempt or generation, nor for none, whatever it is asked (B14).
func TestWorkerServesOneOrder(t *testing.T) {
	others := map[string]func(*wire.Order){
		"no bundle": func(o *wire.Order) { o.Bundle = "" }, "another bundle": func(o *wire.Order) { o.Bundle = canonical.Sum([]byte("other")) },
		"no attempt": func(o *wire.Order) { o.Attempt = "" }, "another attempt": func(o *wire.Order) { o.Attempt += "0" },
		"no fence": func(o *wire.Order) { o.Generation = 0 }, "an older fence": func(o *wire.Order) { o.Generation-- }, "a newer fence": func(o *wire.Order) { o.Generation++ },
	}
	requests := []wire.Request{
		{Verb: wire.VerbProvision, Provision: &wire.Provision{Digest: canonical.Sum(nil)}}, {Verb: wire.VerbPut, Put: &wire.Put{Mount: "m", Path: "p", Last: true}},
		{Verb: wire.VerbRun, Run: &wire.Run{Args: []string{"x"}, WallMillis: 1}}, {Verb: wire.VerbList}, {Verb: wire.VerbRead, Read: &wire.Read{Path: "x"}},
	}
	for name, change := range others {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := ordered()
			change(&other)
			code := reason.KernelStaleFence
			if strings.HasPrefix(name, "no ") {
				code = reason.EnvironmentProtocol
				r := startRaw(t)
				first := hello()
				first.Order = other
				r.send(t, first, nil)
				if resp := r.receive(t); resp.Refusal == nil || resp.Refusal.Code != code {
					t.Errorf("hello: answered %+v", resp)
				}
				r.gone(t)
			}
			for _, request := range requests {
				r := startRaw(t)
				r.send(t, hello(), nil)
				r.receive(t)
				request.Order, request.ID = other, 2
				r.send(t, request, nil)
				if resp := r.receive(t); resp.Refusal == nil || resp.Refusal.Code != code {
					t.Errorf("%s: answered %+v", request.Verb, resp)
				}
			}
		})
	}
}

func TestWorkerEndsAtMalformedFrames(t *testing.T) {
	frame := func(header, body uint32, text string) []byte {
		b := make([]byte, 8)
		binary.BigEndian.PutUint32(b, header)
		binary.BigEndian.PutUint32(b[4:], body)
		return append(b, text...)
	}
	with := func(body uint32, text string) []byte { return frame(uint32(len(text)), body, text) }
	whole := func(text string) []byte { return with(0, text) }
	raw, err := canonical.Marshal(ordered())
	must(t, err)
	order := `"order":` + string(raw)
	for name, bytes := range map[string][]byte{
		"no header":        frame(0, 0, ""),
		"huge header":      frame(1<<31, 0, ""),
		"no JSON":          whole("hello!"),
		"unknown field":    whole(`{"id":1,` + order + `,"surprise":true,"verb":"list"}`),
		"duplicate key":    whole(`{"id":1,"id":2,` + order + `,"verb":"list"}`),
		"not canonical":    whole(`{"verb":"list", ` + order + `,"id":1}`),
		"negative number":  whole(`{"id":-1,` + order + `,"verb":"list"}`),
		"body of no verb":  with(1<<30, `{"id":1,`+order+`,"verb":"list"}`),
		"module too large": with(wire.MaxModule+1, `{"id":1,`+order+`,"verb":"provision"}`),
	} {
		t.Run(name, func(t *testing.T) {
			r := startRaw(t)
			_, err := r.socket.Write(bytes)
			must(t, err)
			r.gone(t)
		})
	}
}

func TestWorkerEndsWithItsHost(t *testing.T) {
	r := startRaw(t)
	r.send(t, hello(), nil)
	r.receive(t)
	must(t, r.socket.Close())
	must(t, r.cmd.Wait())
}

func TestWorkerChecksItsTool(t *testing.T) {
	module := shared.empty(t)
	for name, c := range map[string]struct {
		module []byte
		digest canonical.Digest
		code   reason.Code
	}{
		"other bytes":     {module, canonical.Sum([]byte("other")), reason.PinDigestMismatch},
		"no module":       {[]byte("#!/bin/sh"), canonical.Sum([]byte("#!/bin/sh")), reason.EnvironmentUnsupported},
		"no command":      {empty, canonical.Sum(empty), reason.EnvironmentUnsupported},
		"foreign imports": {foreign, canonical.Sum(foreign), reason.EnvironmentUnsupported},
	} {
		w := begin(t, limits())
		if _, err := w.Provision(context.Background(), c.module, worker.Provision{Digest: c.digest, CacheDir: shared.cache}); !reason.Is(err, c.code) {
			t.Errorf("%s: answered %v", name, err)
		}
	}
	small := limits()
	small.MemoryPages = 1
	w := begin(t, small)
	if _, err := w.Provision(context.Background(), module, worker.Provision{Digest: canonical.Sum(module), CacheDir: shared.cache}); !reason.Is(err, reason.EnvironmentLimitMemory) {
		t.Errorf("a tool that begins larger than its limit: %v", err)
	}
}

func TestSharedCacheIsRefused(t *testing.T) {
	module := shared.empty(t)
	cache := t.TempDir()
	must(t, os.Chmod(cache, 0o770))
	w := begin(t, limits())
	if _, err := w.Provision(context.Background(), module, worker.Provision{Digest: canonical.Sum(module), CacheDir: cache}); !reason.Is(err, reason.EnvironmentUnsupported) {
		t.Errorf("answered %v", err)
	}
}

// A cache whose files are cut short costs a compilation, not the tool.
func TestDamagedCacheIsGoneAround(t *testing.T) {
	module := shared.empty(t)
	cache := t.TempDir()
	must(t, os.Chmod(cache, 0o700))
	for _, pass := range []string{"fills", "goes around"} {
		w := begin(t, limits())
		if _, err := w.Provision(context.Background(), module, worker.Provision{Digest: canonical.Sum(module), CacheDir: cache}); err != nil {
			t.Fatalf("%s the cache: %v", pass, err)
		}
		files := 0
		must(t, filepath.WalkDir(cache, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files++
			return os.Truncate(path, 64)
		}))
		if files == 0 {
			t.Fatal("the cache holds nothing")
		}
	}
}

// empty is a module of nothing; foreign imports env.f.
var (
	empty   = []byte("\x00asm\x01\x00\x00\x00")
	foreign = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x02\x09\x01\x03env\x01f\x00\x00")
)

func TestMaterializeIsCheckedAndBounded(t *testing.T) {
	module := shared.empty(t)
	data := []byte("bytes")
	good := worker.File{Mount: "docs", Path: "a/b.txt", Digest: canonical.Sum(data), Bytes: data}
	with := func(change func(*worker.File)) []worker.File {
		f := good
		change(&f)
		return []worker.File{f}
	}
	big := make([]byte, limits().InputBytes+1)
	many := make([]worker.File, 0, 17)
	for i := range int(limits().InputFiles) + 1 {
		f := good
		f.Path = strings.Repeat("f", i+1)
		many = append(many, f)
	}
	for name, c := range map[string]struct {
		files []worker.File
		code  reason.Code
	}{
		"another digest":       {with(func(f *worker.File) { f.Digest = canonical.Sum(nil) }), reason.MaterializeChanged},
		"leads out":            {with(func(f *worker.File) { f.Path = "../x" }), reason.MaterializeUnsupportedEntry},
		"absolute":             {with(func(f *worker.File) { f.Path = "/x" }), reason.MaterializeUnsupportedEntry},
		"not clean":            {with(func(f *worker.File) { f.Path = "a//b" }), reason.MaterializeUnsupportedEntry},
		"mount leads out":      {with(func(f *worker.File) { f.Mount = ".." }), reason.MaterializeUnsupportedEntry},
		"mount of two names":   {with(func(f *worker.File) { f.Mount = "a/b" }), reason.MaterializeUnsupportedEntry},
		"twice":                {[]worker.File{good, good}, reason.MaterializeUnsupportedEntry},
		"file and directory":   {append([]worker.File{good}, with(func(f *worker.File) { f.Path = "a" })...), reason.MaterializeUnsupportedEntry},
		"below a file":         {append([]worker.File{good}, with(func(f *worker.File) { f.Path = "a/b.txt/c" })...), reason.MaterializeUnsupportedEntry},
		"too large":            {with(func(f *worker.File) { f.Bytes, f.Digest = big, canonical.Sum(big) }), reason.MaterializeTooLarge},
		"too many":             {many, reason.MaterializeTooLarge},
		"all is well":          {[]worker.File{good}, ""},
		"many pieces are well": {with(func(f *worker.File) { f.Bytes, f.Digest = big[1:], canonical.Sum(big[1:]) }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := provisioned(t, limits(), module)
			err := w.Materialize(context.Background(), c.files)
			if reason.CodeOf(err) != c.code || (err == nil) != (c.code == "") {
				t.Errorf("answered %v", err)
			}
		})
	}
}

func TestAGuestRunsOnce(t *testing.T) {
	w, _ := provisioned(t, limits(), shared.empty(t))
	run := worker.RunRequest{Args: []string{"empty"}, Seed: "s", WallMillis: 30_000}
	exit, err := w.Run(context.Background(), run)
	must(t, err)
	must(t, exit.Err("empty"))
	data, err := io.ReadAll(w.Open(context.Background(), "ok"))
	must(t, err)
	if string(data) != "ok\n" {
		t.Errorf("wrote %q", data)
	}
	for _, path := range []string{"missing", "../inputs", "/etc/passwd", "", "."} {
		if _, err := io.ReadAll(w.Open(context.Background(), path)); err == nil {
			t.Errorf("read %q", path)
		}
	}
	if _, err := w.Run(context.Background(), run); !reason.Is(err, reason.EnvironmentProtocol) {
		t.Errorf("a second run answered %v", err)
	}
}
