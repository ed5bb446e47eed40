package memfs_test

import (
	"testing"

	sys "github.com/tetratelabs/wazero/experimental/sys"

	"github.com/writ-runtime/writ/go/cmd/writ-wasm/internal/memfs"
)

// A wiped tree is as a fresh one: the bytes themselves are gone, and what cannot be found any
// more is counted.
func TestWipeLeavesNothingUncounted(t *testing.T) {
	fill := func() (*memfs.FS, []byte) {
		f := memfs.New(limits())
		input := []byte("input")
		if err := f.AddInput("docs", "a/b.txt", input); err != nil {
			t.Fatal(err)
		}
		f.Offers(100, func([]byte) {})
		if errno := max(f.Mkdir("work/d", 0), write(t, f, "work/d/x", "some text"), write(t, f, "work/y", ""), write(t, f, "checkpoint/next.json", "{}")); errno != 0 {
			t.Fatal(errno)
		}
		return f, input
	}
	f, input := fill()
	// docs, docs/a, docs/a/b.txt; d, d/x, y; next.json.
	if files, bytes := f.Left(); files != 7 || bytes != 5+9+2 {
		t.Errorf("before: %d files, %d bytes", files, bytes)
	}
	f.Wipe()
	if files, bytes := f.Left(); files != 0 || bytes != 0 {
		t.Errorf("after: %d files, %d bytes", files, bytes)
	}
	if string(input) != "\x00\x00\x00\x00\x00" {
		t.Errorf("the bytes of an input are still %q", input)
	}
	if inputs, work := f.Counts(); inputs != 0 || work != 0 || len(f.List()) != 0 || f.Bytes() != 0 {
		t.Errorf("counts %d, %d, lists %v", inputs, work, f.List())
	}
	for _, path := range []string{"work/y", "inputs/docs/a/b.txt", "checkpoint/next.json"} {
		if _, errno := read(t, f, path); errno != sys.ENOENT {
			t.Errorf("%s: %v", path, errno)
		}
	}

	// What has lost its name and is open leads from nowhere, and is not forgotten.
	f, _ = fill()
	h, errno := f.OpenFile("work/d/x", sys.O_RDWR, 0)
	if errno = max(errno, f.Unlink("work/d/x")); errno != 0 {
		t.Fatal(errno)
	}
	f.Wipe()
	if files, bytes := f.Left(); files != 1 || bytes != 9 {
		t.Errorf("with an open file: %d files, %d bytes", files, bytes)
	}
	h.Close()
	if files, bytes := f.Left(); files != 0 || bytes != 0 {
		t.Errorf("once it is closed: %d files, %d bytes", files, bytes)
	}
}
