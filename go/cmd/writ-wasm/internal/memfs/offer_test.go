package memfs_test

import (
	"slices"
	"strings"
	"testing"

	sys "github.com/tetratelabs/wazero/experimental/sys"

	"github.com/writ-runtime/writ/go/cmd/writ-wasm/internal/memfs"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
)

// The file of offers: closing it after writing offers what it holds, and nothing else does.
func TestOffers(t *testing.T) {
	const next, most = "checkpoint/next.json", 10
	f := memfs.New(limits())
	if errno := write(t, f, next, "early"); errno != sys.ENOENT {
		t.Errorf("before there is such a file: %v", errno)
	}
	var got []string
	f.Offers(most, func(payload []byte) { got = append(got, string(payload)) })
	for _, text := range []string{"one", "twotwo", "x"} {
		if errno := write(t, f, next, text); errno != 0 {
			t.Errorf("write %q: %v", text, errno)
		}
	}
	if text, errno := read(t, f, next); text != "x" || errno != 0 {
		t.Errorf("read %q, %v", text, errno)
	}
	if errno := write(t, f, next, ""); errno != 0 {
		t.Errorf("write nothing: %v", errno)
	}
	if errno := write(t, f, next, strings.Repeat("y", most+1)); errno != sys.EIO {
		t.Errorf("write too much: %v", errno)
	}
	// A part of it was written before the rest was too much: still no offer.
	h, errno := f.OpenFile(next, sys.O_WRONLY|sys.O_TRUNC, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	if _, errno := h.Write([]byte("part")); errno != 0 {
		t.Errorf("write a part: %v", errno)
	}
	if _, errno := h.Write([]byte(strings.Repeat("z", most))); errno != sys.EIO {
		t.Errorf("write the rest: %v", errno)
	}
	if errno := max(h.Close(), h.Close()); errno != 0 {
		t.Errorf("close twice: %v", errno)
	}
	if errno := write(t, f, next, strings.Repeat("w", most)); errno != 0 {
		t.Errorf("write the whole bound: %v", errno)
	}
	if want := []string{"one", "twotwo", "x", strings.Repeat("w", most)}; !slices.Equal(got, want) {
		t.Errorf("offered %q, want %q", got, want)
	}
	if touched := f.Touched(); !slices.Equal(touched, []wire.Limit{wire.LimitOffer}) {
		t.Errorf("touched %v", touched)
	}
	if f.Bytes() != 0 || len(f.List()) != 0 {
		t.Errorf("the workspace holds %d bytes and %v", f.Bytes(), f.List())
	}
	for what, errno := range map[string]sys.Errno{
		"create": write(t, f, "checkpoint/other", "x"), "mkdir": f.Mkdir("checkpoint/dir", 0), "unlink": f.Unlink(next),
		"rename out": f.Rename(next, "work/out"), "rename the directory": f.Rename("checkpoint", "work/checkpoint"),
	} {
		if errno != sys.EROFS {
			t.Errorf("%s: %v", what, errno)
		}
	}
}
