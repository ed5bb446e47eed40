package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds hold a run whose guards are gone: a test that would never end, or would fill the
// disk, is one of the things that a guard may have prevented.
type Bounds struct {
	// Time is how long a run may take.
	Time time.Duration
	// Folder is how many bytes its temporary files may have, File how many one file that it
	// writes may have.
	Folder, File int64
}

// errBounds says which bound a run went beyond.
type errBounds struct{ what string }

// Error says so.
func (e errBounds) Error() string { return e.what }

// looks is how often the size of the temporary files is taken.
const looks = 100 * time.Millisecond

// lasts is how long output is waited for that a process keeps open which its test left behind.
const lasts = 10 * time.Second

// run runs a command whose temporary files are in a folder, and returns what it wrote. It
// ends everything of the command's process group. The error is an errBounds where the
// command went beyond a bound.
func (b Bounds) run(ctx context.Context, cmd *exec.Cmd, tmp string) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = lasts
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end := func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	// What the command starts inherits it.
	most := unix.Rlimit{Cur: uint64(b.File), Max: uint64(b.File)}
	limited := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_FSIZE, &most, nil)
	if limited != nil {
		end()
	}
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		b.watch(ctx, cancel, tmp, ended)
		if ctx.Err() != nil {
			end()
		}
	}()
	err := cmd.Wait()
	close(ended)
	<-watched
	end() // What is left of the group.
	var beyond errBounds
	switch cause := context.Cause(ctx); {
	case limited != nil:
		return out.Bytes(), fmt.Errorf("limit the size of files: %w", limited)
	case errors.As(cause, &beyond):
		return out.Bytes(), beyond
	case cause != nil:
		return out.Bytes(), cause
	case err != nil && tooLarge(out.Bytes()):
		return out.Bytes(), errBounds{fmt.Sprintf("one file would have had more than %d bytes", b.File)}
	}
	return out.Bytes(), err
}

// tooLarge reports whether a process said that it met the bound of a file's size: as an
// error, or as the signal that ends programs which do not look at errors.
func tooLarge(out []byte) bool {
	return bytes.Contains(out, []byte(unix.EFBIG.Error())) || bytes.Contains(out, []byte("SIGXFSZ"))
}

// watch returns once the command has ended, or the context, or a bound was passed: then it
// has cancelled the context with an errBounds.
func (b Bounds) watch(ctx context.Context, cancel context.CancelCauseFunc, tmp string, ended <-chan struct{}) {
	late := time.NewTimer(b.Time)
	defer late.Stop()
	look := time.NewTicker(looks)
	defer look.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			return
		case <-late.C:
			cancel(errBounds{fmt.Sprintf("it took longer than %s", b.Time)})
			return
		case <-look.C:
			if size(tmp) > b.Folder {
				cancel(errBounds{fmt.Sprintf("its temporary files had more than %d bytes", b.Folder)})
				return
			}
		}
	}
}

// size is how many bytes the files below a folder have; what goes away meanwhile, or cannot
// be looked at, has none.
func size(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += st.Blocks * 512
			}
		}
		return nil
	})
	return bytes
}
