package memfs_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	sys "github.com/tetratelabs/wazero/experimental/sys"
	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/cmd/writ-wasm/internal/memfs"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
)

func limits() wire.Limits {
	return wire.Limits{
		MemoryPages: 1, CPUSeconds: 1, StdioBytes: 1, WorkspaceBytes: 1000, WorkspaceFiles: 10, FileBytes: 600, NameBytes: 40, Depth: 4, OpenFiles: 5,
		InputBytes: 1000, InputFiles: 10,
	}
}

func write(t testing.TB, f *memfs.FS, path, text string) sys.Errno {
	t.Helper()
	h, errno := f.OpenFile(path, sys.O_CREAT|sys.O_WRONLY|sys.O_TRUNC, 0o600)
	if errno != 0 {
		return errno
	}
	_, errno = h.Write([]byte(text))
	return max(errno, h.Close())
}

func read(t testing.TB, f *memfs.FS, path string) (string, sys.Errno) {
	t.Helper()
	h, errno := f.OpenFile(path, sys.O_RDONLY, 0)
	if errno != 0 {
		return "", errno
	}
	defer h.Close()
	var out bytes.Buffer
	buf := make([]byte, 7)
	for {
		n, errno := h.Read(buf)
		if errno != 0 {
			return "", errno
		}
		if n == 0 {
			return out.String(), 0
		}
		out.Write(buf[:n])
	}
}

func TestCallsAnswerAsDocumented(t *testing.T) {
	f := memfs.New(limits())
	if err := f.AddInput("docs", "a/b.txt", []byte("input")); err != nil {
		t.Fatal(err)
	}
	if errno := write(t, f, "work/file", "text"); errno != 0 {
		t.Fatal(errno)
	}
	if errno := f.Mkdir("work/dir", 0o700); errno != 0 {
		t.Fatal(errno)
	}
	if errno := write(t, f, "work/dir/inner", "x"); errno != 0 {
		t.Fatal(errno)
	}
	open := func(path string, flag sys.Oflag) func() sys.Errno {
		return func() sys.Errno {
			h, errno := f.OpenFile(path, flag, 0)
			if errno == 0 {
				return h.Close()
			}
			return errno
		}
	}
	for _, c := range []struct {
		name string
		call func() sys.Errno
		want sys.Errno
	}{
		{"open nothing", open("work/none", sys.O_RDONLY), sys.ENOENT},
		{"open below a file", open("work/file/x", sys.O_RDONLY), sys.ENOTDIR},
		{"open a file as directory", open("work/file", sys.O_DIRECTORY), sys.ENOTDIR},
		{"open a file with a slash", open("work/file/", sys.O_RDONLY), sys.ENOTDIR},
		{"open a directory for writing", open("work/dir", sys.O_RDWR), sys.EISDIR},
		{"create over a directory", open("work/dir", sys.O_CREAT), sys.EISDIR},
		{"create what exists exclusively", open("work/file", sys.O_CREAT|sys.O_EXCL|sys.O_WRONLY), sys.EEXIST},
		{"create with a slash", open("work/new/", sys.O_CREAT|sys.O_WRONLY), sys.ENOENT},
		{"create in no directory", open("work/none/x", sys.O_CREAT|sys.O_WRONLY), sys.ENOENT},
		{"create in the root", open("new", sys.O_CREAT|sys.O_WRONLY), sys.EROFS},
		{"create among inputs", open("inputs/new", sys.O_CREAT|sys.O_WRONLY), sys.EROFS},
		{"create in an input", open("inputs/docs/a/new", sys.O_CREAT|sys.O_WRONLY), sys.EROFS},
		{"write an input", open("inputs/docs/a/b.txt", sys.O_WRONLY), sys.EROFS},
		{"truncate an input", open("inputs/docs/a/b.txt", sys.O_TRUNC), sys.EROFS},
		{"lead out", open("../etc/passwd", sys.O_RDONLY), sys.EPERM},
		{"lead out from below", open("work/dir/../../../etc", sys.O_RDONLY), sys.EPERM},
		{"broken UTF-8", open("work/\xff", sys.O_CREAT|sys.O_WRONLY), sys.EINVAL},
		{"zero byte", open("work/a\x00b", sys.O_CREAT|sys.O_WRONLY), sys.EINVAL},
		{"make what exists", func() sys.Errno { return f.Mkdir("work/dir", 0) }, sys.EEXIST},
		{"make in an input", func() sys.Errno { return f.Mkdir("inputs/docs/new", 0) }, sys.EROFS},
		{"make the root", func() sys.Errno { return f.Mkdir("/", 0) }, sys.EPERM},
		{"remove a full directory", func() sys.Errno { return f.Rmdir("work/dir") }, sys.ENOTEMPTY},
		{"remove a file as directory", func() sys.Errno { return f.Rmdir("work/file") }, sys.ENOTDIR},
		{"unlink a directory", func() sys.Errno { return f.Unlink("work/dir") }, sys.EISDIR},
		{"unlink an input", func() sys.Errno { return f.Unlink("inputs/docs/a/b.txt") }, sys.EROFS},
		{"remove the workspace", func() sys.Errno { return f.Rmdir("work") }, sys.EROFS},
		{"rename an input away", func() sys.Errno { return f.Rename("inputs/docs", "work/docs") }, sys.EROFS},
		{"rename onto an input", func() sys.Errno { return f.Rename("work/file", "inputs/docs/a/b.txt") }, sys.EROFS},
		{"rename a directory into itself", func() sys.Errno { return f.Rename("work/dir", "work/dir/dir") }, sys.EINVAL},
		{"rename onto a full directory", func() sys.Errno { return f.Rename("work/file", "work/dir") }, sys.EISDIR},
		{"rename a directory onto a file", func() sys.Errno { return f.Rename("work/dir", "work/file") }, sys.ENOTDIR},
		{"rename nothing", func() sys.Errno { return f.Rename("work/none", "work/x") }, sys.ENOENT},
		{"rename onto itself", func() sys.Errno { return f.Rename("work/file", "work/file") }, 0},
		{"symlink", func() sys.Errno { return f.Symlink("/etc", "work/link") }, sys.EPERM},
		{"hardlink", func() sys.Errno { return f.Link("work/file", "work/link") }, sys.EPERM},
		{"readlink", func() sys.Errno { _, errno := f.Readlink("work/file"); return errno }, sys.EINVAL},
		{"chmod", func() sys.Errno { return f.Chmod("work/file", 0o777) }, 0},
		{"utimens", func() sys.Errno { return f.Utimens("work/file", 1, 1) }, 0},
	} {
		if got := c.call(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if text, errno := read(t, f, "inputs/docs/a/b.txt"); text != "input" || errno != 0 {
		t.Errorf("the input reads %q, %v", text, errno)
	}
	st, _ := f.Stat("work/file")
	if st.Mode != 0o600 || st.Size != 4 || st.Mtim != memfs.Epoch*1_000_000_000 {
		t.Errorf("stat %+v", st)
	}
	if st, _ := f.Stat("inputs/docs/a/b.txt"); st.Mode != 0o400 {
		t.Errorf("stat of an input %+v", st)
	}
	if touched := f.Touched(); len(touched) != 0 {
		t.Errorf("touched %v", touched)
	}
}

func TestReadingAndWriting(t *testing.T) {
	f := memfs.New(limits())
	h, errno := f.OpenFile("work/file", sys.O_CREAT|sys.O_RDWR, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	step := func(what string, errno sys.Errno, want string) {
		t.Helper()
		got, readErrno := read(t, f, "work/file")
		if errno != 0 || readErrno != 0 || got != want {
			t.Fatalf("%s: %v %v, the file is %q, want %q", what, errno, readErrno, got, want)
		}
	}
	_, errno = h.Write([]byte("hello world"))
	step("write", errno, "hello world")
	_, errno = h.Pwrite([]byte("HELLO"), 0)
	step("pwrite", errno, "HELLO world")
	step("truncate", h.Truncate(5), "HELLO")
	step("grow", h.Truncate(7), "HELLO\x00\x00")
	_, errno = h.Write([]byte("!")) // still behind the old end
	step("write beyond the end", errno, "HELLO\x00\x00\x00\x00\x00\x00!")
	step("append mode", h.SetAppend(true), "HELLO\x00\x00\x00\x00\x00\x00!")
	step("shrink", h.Truncate(0), "")
	_, errno = h.Write([]byte("again"))
	step("append", errno, "again")
	for _, c := range []struct {
		offset int64
		whence int
		want   int64
		errno  sys.Errno
	}{{2, io.SeekStart, 2, 0}, {1, io.SeekCurrent, 3, 0}, {-1, io.SeekEnd, 4, 0}, {-1, io.SeekStart, 0, sys.EINVAL}, {1<<63 - 1, io.SeekCurrent, 0, sys.EINVAL}, {0, 9, 0, sys.EINVAL}} {
		if got, errno := h.Seek(c.offset, c.whence); got != c.want || errno != c.errno {
			t.Errorf("seek %d from %d: %d, %v", c.offset, c.whence, got, errno)
		}
	}
	if _, errno := h.Pread(make([]byte, 1), -1); errno != sys.EINVAL {
		t.Errorf("pread before the beginning: %v", errno)
	}
	if _, errno := h.Pwrite([]byte("x"), 1<<62); errno == 0 {
		t.Error("wrote very far away")
	}
	if h.Close() != 0 || h.Close() != 0 {
		t.Error("close")
	}
	if _, errno := h.Write([]byte("x")); errno != sys.EBADF {
		t.Errorf("write after close: %v", errno)
	}
}

func TestListingsAreSortedAndCanBeRewound(t *testing.T) {
	f := memfs.New(limits())
	for _, name := range []string{"c", "a", "b"} {
		write(t, f, "work/"+name, name)
	}
	h, errno := f.OpenFile("work", sys.O_DIRECTORY, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	for range 2 {
		var names []string
		for {
			list, errno := h.Readdir(2)
			if errno != 0 || len(list) == 0 {
				break
			}
			for _, e := range list {
				names = append(names, e.Name)
			}
		}
		if !slices.Equal(names, []string{"a", "b", "c"}) {
			t.Errorf("listed %v", names)
		}
		if _, errno := h.Seek(0, io.SeekStart); errno != 0 {
			t.Error(errno)
		}
	}
}

// TestQuotasHold does random things and checks after each that nothing exceeds its limit and that the accounts are
// those of what is there.
func TestQuotasHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limits()
		f := memfs.New(l)
		names := rapid.SampledFrom([]string{"a", "b", "dir", "dir/x", "dir/y/z", "dir/y", strings.Repeat("n", 50), "p/q/r/s/t", "dir/" + strings.Repeat("m", 38)})
		var handles []sys.File
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				flags := rapid.SampledFrom([]sys.Oflag{sys.O_RDONLY, sys.O_RDWR | sys.O_CREAT, sys.O_WRONLY | sys.O_CREAT | sys.O_TRUNC, sys.O_WRONLY | sys.O_APPEND}).Draw(t, "flags")
				if h, errno := f.OpenFile("work/"+names.Draw(t, "name"), flags, 0); errno == 0 {
					handles = append(handles, h)
				}
			},
			"close": func(t *rapid.T) {
				if len(handles) > 0 {
					i := rapid.IntRange(0, len(handles)-1).Draw(t, "handle")
					handles[i].Close()
					handles = slices.Delete(handles, i, i+1)
				}
			},
			"write": func(t *rapid.T) {
				if len(handles) > 0 {
					h := handles[rapid.IntRange(0, len(handles)-1).Draw(t, "handle")]
					h.Pwrite(make([]byte, rapid.IntRange(0, 400).Draw(t, "bytes")), rapid.Int64Range(0, 700).Draw(t, "offset"))
				}
			},
			"truncate": func(t *rapid.T) {
				if len(handles) > 0 {
					handles[rapid.IntRange(0, len(handles)-1).Draw(t, "handle")].Truncate(rapid.Int64Range(0, 700).Draw(t, "size"))
				}
			},
			"mkdir":  func(t *rapid.T) { f.Mkdir("work/"+names.Draw(t, "name"), 0) },
			"rmdir":  func(t *rapid.T) { f.Rmdir("work/" + names.Draw(t, "name")) },
			"unlink": func(t *rapid.T) { f.Unlink("work/" + names.Draw(t, "name")) },
			"rename": func(t *rapid.T) { f.Rename("work/"+names.Draw(t, "from"), "work/"+names.Draw(t, "to")) },
			"": func(t *rapid.T) {
				var listed int64
				for _, e := range f.List() {
					listed += e.Size
					if e.Size > l.FileBytes || int64(len(e.Path)) > l.NameBytes || int64(strings.Count(e.Path, "/"))+1 > l.Depth {
						t.Fatalf("beyond its limits: %+v", e)
					}
				}
				// Bytes of deleted files that are still open count too.
				seen := map[uint64]bool{}
				for _, h := range handles {
					st, _ := h.Stat()
					if st.Mode&fs.ModeDir == 0 && !seen[st.Ino] && !linked(f, st.Ino) {
						listed += st.Size
					}
					seen[st.Ino] = true
				}
				_, entries := f.Counts()
				if n := int64(len(f.List())); entries != n || n > l.WorkspaceFiles || listed > l.WorkspaceBytes || int64(len(handles)) > l.OpenFiles {
					t.Fatalf("%d entries, counted %d, %d bytes, %d handles", n, entries, listed, len(handles))
				}
				if f.Bytes() != listed {
					t.Fatalf("accounts say %d bytes, there are %d", f.Bytes(), listed)
				}
			},
		})
	})
}

// linked reports whether the file with that number still has a name.
func linked(f *memfs.FS, ino uint64) bool {
	for _, e := range f.List() {
		if st, errno := f.Stat("work/" + e.Path); errno == 0 && st.Ino == ino {
			return true
		}
	}
	return false
}

func TestWhichLimitIsNamed(t *testing.T) {
	for want, do := range map[wire.Limit]func(f *memfs.FS) sys.Errno{
		wire.LimitFileBytes: func(f *memfs.FS) sys.Errno { return write(t, f, "work/a", strings.Repeat("x", 601)) },
		wire.LimitWorkspaceBytes: func(f *memfs.FS) sys.Errno {
			return max(write(t, f, "work/a", strings.Repeat("x", 600)), write(t, f, "work/b", strings.Repeat("x", 600)))
		},
		wire.LimitNameBytes: func(f *memfs.FS) sys.Errno { return write(t, f, "work/"+strings.Repeat("n", 41), "") },
		wire.LimitDepth: func(f *memfs.FS) sys.Errno {
			path := "work"
			for range 5 {
				path += "/d"
				if errno := f.Mkdir(path, 0); errno != 0 {
					return errno
				}
			}
			return 0
		},
		wire.LimitWorkspaceFiles: func(f *memfs.FS) sys.Errno {
			for i := range 11 {
				if errno := write(t, f, fmt.Sprintf("work/%d", i), ""); errno != 0 {
					return errno
				}
			}
			return 0
		},
		wire.LimitOpenFiles: func(f *memfs.FS) sys.Errno {
			for range 6 {
				if _, errno := f.OpenFile("work", sys.O_RDONLY, 0); errno != 0 {
					return errno
				}
			}
			return 0
		},
	} {
		f := memfs.New(limits())
		if errno := do(f); errno != sys.EIO || !slices.Equal(f.Touched(), []wire.Limit{want}) {
			t.Errorf("%s: answered %v, touched %v", want, errno, f.Touched())
		}
	}
}
