package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// The bounds of one input, where the work order sets none.
const (
	defaultInputFiles = 10_000
	defaultInputBytes = 256 << 20
	maxInputDepth     = protocol.MaxPathDepth
)

// Sources reads the input folders of one work order. It never follows a link: what a
// folder shows is what it holds.
type Sources struct {
	origin string
	inputs []workorder.Input
	// checkpoint is the one file of the input workorder.CheckpointInput, nil where there is none.
	checkpoint []byte
}

// NewSources returns the sources of a work order. Relative sources are taken from
// origin, an absolute folder.
func NewSources(origin string, inputs []workorder.Input) Sources {
	return Sources{origin: origin, inputs: inputs}
}

// WithCheckpoint returns the sources with the payload of a checkpoint among them.
func (s Sources) WithCheckpoint(payload []byte) Sources {
	s.checkpoint = payload
	return s
}

// Scan lists and digests every file of every input. The error is a *reason.Refusal for
// an input that is missing, too large, or holds anything but files and folders.
func (s Sources) Scan(ctx context.Context) (protocol.InputManifest, error) {
	m := protocol.InputManifest{Kind: protocol.InputsKind, Inputs: []protocol.InputMount{}}
	for _, in := range s.inputs {
		mount, err := s.scan(ctx, in)
		if err != nil {
			return protocol.InputManifest{}, err
		}
		m.Inputs = append(m.Inputs, mount)
	}
	return m, nil
}

// Open opens one file of an input for materialization. Whether it still has the
// digest of the manifest is for whoever takes it in to check.
func (s Sources) Open(_ context.Context, mount, path string) (io.ReadCloser, error) {
	if mount == workorder.CheckpointInput && path == workorder.CheckpointFile && s.checkpoint != nil {
		return io.NopCloser(bytes.NewReader(s.checkpoint)), nil
	}
	for _, in := range s.inputs {
		if in.Name != mount {
			continue
		}
		root, single, err := s.root(in)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		if single != "" && path == single {
			return openBeneath(root, single, in.Source)
		}
		return openBeneath(root, path, in.Source)
	}
	return nil, reason.New(reason.MaterializeMissing, "the work order names no such input", mount, "name it under inputs")
}

func (s Sources) scan(ctx context.Context, in workorder.Input) (protocol.InputMount, error) {
	w := &walk{ctx: ctx, input: in, files: in.MaxFiles, bytes: in.MaxBytes, mount: protocol.InputMount{Name: in.Name, Files: []protocol.InputFile{}}}
	if w.files == 0 {
		w.files = defaultInputFiles
	}
	if w.bytes == 0 {
		w.bytes = defaultInputBytes
	}
	root, single, err := s.root(in)
	if err != nil {
		return protocol.InputMount{}, err
	}
	defer root.Close()
	if single != "" {
		err = w.entry(root, single, single)
	} else {
		err = w.folder(root, "", 1)
	}
	if err != nil {
		return protocol.InputMount{}, err
	}
	slices.SortFunc(w.mount.Files, func(a, b protocol.InputFile) int { return strings.Compare(a.Path, b.Path) })
	return w.mount, nil
}

// root opens the folder of an input; for an input that is one file it opens the
// file's folder and returns the file's name.
func (s Sources) root(in workorder.Input) (folder *os.File, single string, err error) {
	path := in.Source
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.origin, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", missing(in, path, err)
	}
	if !info.IsDir() {
		path, single = filepath.Split(path)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", missing(in, path, err)
	}
	return os.NewFile(uintptr(fd), path), single, nil
}

func missing(in workorder.Input, path string, err error) error {
	what := "cannot be read"
	if errors.Is(err, os.ErrNotExist) {
		what = "does not exist"
	}
	return reason.New(reason.MaterializeMissing, fmt.Sprintf("the source of input %q %s", in.Name, what), path,
		"correct inputs.source; it is taken from the folder of the work order's file").Because(err)
}

// walk gathers the files of one input within its bounds.
type walk struct {
	ctx          context.Context
	input        workorder.Input
	files, bytes int64
	mount        protocol.InputMount
}

func (w *walk) folder(dir *os.File, prefix string, depth int) error {
	if depth > maxInputDepth {
		return w.refuse(reason.MaterializeTooLarge, prefix, fmt.Sprintf("nests deeper than %d folders", maxInputDepth), "give a flatter folder")
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return missing(w.input, dir.Name(), err)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		path := name
		if prefix != "" {
			path = prefix + "/" + name
		}
		if err := w.step(dir, name, path, depth); err != nil {
			return err
		}
	}
	return nil
}

// step takes one entry of a folder: a folder is walked, a file is digested.
func (w *walk) step(dir *os.File, name, path string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return missing(w.input, path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return w.entry(dir, name, path)
	}
	fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: beneath})
	if err != nil {
		return missing(w.input, path, err)
	}
	sub := os.NewFile(uintptr(fd), path)
	defer sub.Close()
	return w.folder(sub, path, depth+1)
}

func (w *walk) entry(dir *os.File, name, path string) error {
	if err := protocol.CheckPath(path); err != nil {
		return w.refuse(reason.MaterializeUnsupportedEntry, path, "has a name that cannot be materialized: "+err.What, "rename it")
	}
	f, err := openBeneath(dir, name, w.input.Source)
	if err != nil {
		return err
	}
	defer f.Close()
	if int64(len(w.mount.Files)) >= w.files {
		return w.refuse(reason.MaterializeTooLarge, path, fmt.Sprintf("is one file more than the input may have (%d)", w.files),
			"give a smaller folder, or raise max_files")
	}
	h := canonical.NewHasher()
	n, err := io.Copy(h, io.LimitReader(f, w.bytes+1))
	if err != nil {
		return missing(w.input, path, err)
	}
	if w.bytes -= n; w.bytes < 0 {
		return w.refuse(reason.MaterializeTooLarge, path, "takes the input over its bytes", "give a smaller folder, or raise max_bytes")
	}
	w.mount.Files = append(w.mount.Files, protocol.InputFile{Path: path, Size: n, Digest: h.Digest()})
	return nil
}

func (w *walk) refuse(code reason.Code, path, what, remedy string) error {
	return reason.New(code, fmt.Sprintf("input %q: %s %s", w.input.Name, path, what), filepath.Join(w.input.Source, path), remedy)
}

// beneath is how every path of an input is resolved: nothing leads out of its folder.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// openBeneath opens a regular file beneath a folder without following any link.
func openBeneath(dir *os.File, path, source string) (*os.File, error) {
	unsupported := func(what string) error {
		return reason.New(reason.MaterializeUnsupportedEntry, fmt.Sprintf("%s is %s; inputs are files and folders only", path, what),
			filepath.Join(source, path), "put a copy of the file in its place")
	}
	gone := func(err error) error {
		return reason.New(reason.MaterializeMissing, path+" cannot be opened", filepath.Join(source, path),
			"put the file back, or submit the work order again").Because(err)
	}
	// Looked at first and opened after, by the same descriptor: opening a queue or a
	// device can have effects of its own.
	fd, err := unix.Openat2(int(dir.Fd()), path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: beneath})
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, unsupported("a symbolic link, or lies behind one")
	case err != nil:
		return nil, gone(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, unsupported("no regular file")
	}
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, gone(err)
	}
	return f, nil
}
