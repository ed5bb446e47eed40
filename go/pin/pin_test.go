package pin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/reason"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func entry(name string, data []byte, more string) string {
	return fmt.Sprintf(`{"name":%q,"kind":"tool","version":"0.1.0","platform":"wasip1/wasm","path":"tools/%s.wasm","sha256":%q,"size":%d%s}`, name, name, canonical.Sum(data), len(data), more)
}

func lock(entries ...string) string {
	return `{"kind":"writ.lock.tools.v1","entries":[` + strings.Join(entries, ",") + `]}`
}

// dist lays out a distribution with one tool, and returns its directory and the tool's file.
func dist(t *testing.T, data []byte, text string) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "tools"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, pin.ToolsFile), []byte(text), 0o600))
	file = filepath.Join(dir, "tools", "one.wasm")
	must(t, os.WriteFile(file, data, 0o600))
	return dir, file
}

func open(t *testing.T, dir string) *pin.Set {
	t.Helper()
	s, err := pin.Open(dir)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func TestLockedBytes(t *testing.T) {
	data := []byte("the tool")
	text := lock(entry("one", data, `,"manifest":{"args":["--input"],"version":1}`), entry("another", []byte("x"), ""))
	dir, _ := dist(t, data, text)
	s := open(t, dir)
	if d, ok := s.Digest(pin.ToolsFile); !ok || d != canonical.Sum([]byte(text)) {
		t.Errorf("digest of the lock file: %s %t", d, ok)
	}
	if _, ok := s.Digest(pin.AdaptersFile); ok {
		t.Error("an absent lock file has a digest")
	}
	if all := s.Entries(); len(all) != 2 || all[0].Name != "another" || all[1].Name != "one" {
		t.Errorf("entries %v", all)
	}
	e, err := s.Entry("tool", "one")
	must(t, err)
	if string(e.Manifest) != `{"args":["--input"],"version":1}` {
		t.Errorf("manifest %s", e.Manifest)
	}
	got, err := s.Bytes(context.Background(), e)
	must(t, err)
	if !bytes.Equal(got, data) {
		t.Errorf("bytes %q", got)
	}
	if _, err := s.Entry("tool", "two"); !reason.Is(err, reason.PinNotLocked) || !strings.Contains(err.Error(), `no tool named "two" is pinned `) || !strings.Contains(err.Error(), "one (wasip1/wasm)") {
		t.Errorf("an unknown tool: %v", err)
	}
	if _, err := s.Entry("adapter", "one"); !reason.Is(err, reason.PinNotLocked) {
		t.Errorf("an unknown kind: %v", err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Bytes(cancelled, e); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestOtherBytesAreRefused(t *testing.T) {
	data := []byte("the tool")
	for name, change := range map[string]func(file string) error{
		"flipped":   func(f string) error { return os.WriteFile(f, []byte("thE tool"), 0o600) },
		"shorter":   func(f string) error { return os.Truncate(f, 3) },
		"longer":    func(f string) error { return os.WriteFile(f, append(data, "x"...), 0o600) },
		"huge":      func(f string) error { return os.Truncate(f, 1<<40) },
		"gone":      os.Remove,
		"directory": func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) },
		"fifo":      func(f string) error { return errors.Join(os.Remove(f), syscall.Mkfifo(f, 0o600)) },
		"dangling":  func(f string) error { return errors.Join(os.Remove(f), os.Symlink("nowhere", f)) },
		"device":    func(f string) error { return errors.Join(os.Remove(f), os.Symlink("/dev/zero", f)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, file := dist(t, data, lock(entry("one", data, "")))
			s := open(t, dir)
			e, err := s.Entry("tool", "one")
			must(t, err)
			must(t, change(file))
			want := reason.PinUnreadable
			if name == "flipped" || name == "shorter" || name == "longer" || name == "huge" {
				want = reason.PinDigestMismatch
			}
			_, err = s.Bytes(context.Background(), e)
			_, sealErr := s.Sealed(context.Background(), e)
			for _, err := range []error{err, sealErr} {
				if !reason.Is(err, want) {
					t.Errorf("answered %v, want %s", err, want)
				}
				if want == reason.PinDigestMismatch && (!strings.Contains(err.Error(), string(e.Digest)) || strings.Count(err.Error(), "sha256:") != 2) {
					t.Errorf("does not show both digests: %v", err)
				}
			}
		})
	}
}

func TestLinkedDistribution(t *testing.T) {
	// Build systems lay out a distribution as links into their store.
	data := []byte("the tool")
	dir, file := dist(t, data, lock(entry("one", data, "")))
	elsewhere := filepath.Join(t.TempDir(), "store")
	must(t, errors.Join(os.Rename(file, elsewhere), os.Symlink(elsewhere, file)))
	s := open(t, dir)
	e, err := s.Entry("tool", "one")
	must(t, err)
	if _, err := s.Bytes(context.Background(), e); err != nil {
		t.Error(err)
	}
}

func TestMalformedLockFiles(t *testing.T) {
	data := []byte("x")
	good := entry("one", data, "")
	for name, text := range map[string]string{
		"no JSON":         "tools:",
		"another kind":    `{"kind":"writ.lock.adapters.v1","entries":[]}`,
		"unknown field":   lock(strings.Replace(good, `"version"`, `"colour":"red","version"`, 1)),
		"duplicate key":   lock(strings.Replace(good, `"version"`, `"name":"two","version"`, 1)),
		"same name twice": lock(good, good),
		"no name":         lock(strings.Replace(good, `"one"`, `""`, 1)),
		"short digest":    lock(strings.Replace(good, string(canonical.Sum(data)), "sha256:00", 1)),
		"absolute path":   lock(strings.Replace(good, "tools/one.wasm", "/etc/passwd", 1)),
		"path leads out":  lock(strings.Replace(good, "tools/one.wasm", "../one.wasm", 1)),
		"unclean path":    lock(strings.Replace(good, "tools/one.wasm", "tools/../one.wasm", 1)),
		"no size":         lock(strings.Replace(good, `"size":1`, `"size":0`, 1)),
		"huge size":       lock(strings.Replace(good, `"size":1`, `"size":268435457`, 1)),
	} {
		dir, _ := dist(t, data, text)
		if _, err := pin.Open(dir); !reason.Is(err, reason.PinMalformed) {
			t.Errorf("%s: answered %v", name, err)
		}
	}
	if _, err := pin.Open(t.TempDir()); !reason.Is(err, reason.PinUnreadable) {
		t.Errorf("no lock file: %v", err)
	}
}

func TestPlatforms(t *testing.T) {
	data := []byte("x")
	dir, _ := dist(t, data, lock(strings.Replace(entry("one", data, ""), "wasip1/wasm", "plan9/mips", 1)))
	if _, err := open(t, dir).Entry("tool", "one"); !reason.Is(err, reason.PinNotLocked) || !strings.Contains(err.Error(), "is pinned for "+runtime.GOOS) || !strings.Contains(err.Error(), "plan9/mips") {
		t.Errorf("another platform: %v", err)
	}
	dir, _ = dist(t, data, lock(strings.Replace(entry("one", data, ""), "wasip1/wasm", runtime.GOOS+"/"+runtime.GOARCH, 1)))
	if _, err := open(t, dir).Entry("tool", "one"); err != nil {
		t.Error(err)
	}
}

func TestSealedBytesRunAndCannotChange(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	data, err := os.ReadFile(self)
	must(t, err)
	dir, file := dist(t, data, lock(entry("one", data, "")))
	s := open(t, dir)
	e, err := s.Entry("tool", "one")
	must(t, err)
	x, err := s.Sealed(context.Background(), e)
	must(t, err)
	// What happens to the file afterwards does not matter any more.
	must(t, os.WriteFile(file, []byte("#!/bin/false"), 0o700))
	again, err := s.Sealed(context.Background(), e)
	must(t, err)
	if again != x || x.Digest() != e.Digest || x.Size() != e.Size || x.Name() != "one" {
		t.Error("the sealed bytes are not the ones that were locked, or were sealed twice")
	}
	cmd := x.Command([]string{"-test.run=^TestInSealedChild$", "-test.v"})
	cmd.Env = append(cmd.Env, "WRIT_TEST_SEALED_CHILD=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS: TestInSealedChild") || !strings.Contains(string(out), "in sealed memory") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Sealing is refused by the kernel while a page of the file is held for writing. That passes, and is no reason to fail.
func TestSealingWaitsForPagesThatAreHeld(t *testing.T) {
	data := []byte("the tool")
	dir, _ := dist(t, data, lock(entry("one", data, "")))
	for name, test := range map[string]struct {
		// asked is how often the context is asked before the page is let go, 0 for never: twice while the bytes are
		// copied, and then before each further try.
		asked int
		want  error
	}{"for a while": {6, nil}, "for good": {0, unix.EBUSY}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, dir)
			e, err := s.Entry("tool", "one")
			must(t, err)
			h := &holder{Context: t.Context(), t: t, release: test.asked}
			x, err := s.Sealed(h, e)
			if !errors.Is(err, test.want) || (err == nil) != (x != nil) {
				t.Errorf("sealed %v, %v", x, err)
			}
			if h.asked < 6 {
				t.Errorf("asked %d times: it was not tried again", h.asked)
			}
		})
	}
}

// holder is a context that holds a page of the memory file which is being filled, for as often as it is asked whether
// it has ended.
type holder struct {
	context.Context
	t              *testing.T
	asked, release int
	page           []byte
}

// Err implements context.Context.
func (h *holder) Err() error {
	h.asked++
	if h.asked == 1 {
		h.hold()
	}
	if h.asked == h.release {
		must(h.t, unix.Munmap(h.page))
	}
	return nil
}

func (h *holder) hold() {
	entries, err := os.ReadDir("/proc/self/fd")
	must(h.t, err)
	for _, e := range entries {
		name := filepath.Join("/proc/self/fd", e.Name())
		if target, err := os.Readlink(name); err != nil || !strings.HasPrefix(target, "/memfd:writ:one") {
			continue
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		must(h.t, err)
		h.page, err = unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		must(h.t, errors.Join(err, f.Close()))
		if h.release == 0 {
			h.t.Cleanup(func() { must(h.t, unix.Munmap(h.page)) })
		}
		return
	}
	h.t.Error("there is no memory file")
}

// TestInSealedChild is run by the child that TestSealedBytesRunAndCannotChange starts.
func TestInSealedChild(t *testing.T) {
	if os.Getenv("WRIT_TEST_SEALED_CHILD") == "" {
		return
	}
	exe, err := os.Readlink("/proc/self/exe")
	must(t, err)
	if !strings.HasPrefix(exe, "/memfd:writ:one") {
		t.Errorf("runs from %s", exe)
	}
	for what, try := range map[string]func() error{
		"write":    func() error { _, err := unix.Pwrite(pin.BinaryFD, []byte("x"), 0); return err },
		"truncate": func() error { return unix.Ftruncate(pin.BinaryFD, 1) },
		"grow":     func() error { return unix.Ftruncate(pin.BinaryFD, 1<<30) },
		"unseal":   func() error { _, err := unix.FcntlInt(pin.BinaryFD, unix.F_ADD_SEALS, 0); return err },
		"map": func() error {
			_, err := unix.Mmap(pin.BinaryFD, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			return err
		},
	} {
		if err := try(); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s answered %v", what, err)
		}
	}
	t.Log("in sealed memory")
}
