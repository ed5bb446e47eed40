package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

func (c *command) artifactsCommand() *cobra.Command {
	parent := &cobra.Command{
		Use:   "artifacts",
		Short: "List and copy out what attempts produced",
		RunE: func(_ *cobra.Command, args []string) error {
			what := "artifacts needs a verb"
			if len(args) > 0 {
				what = fmt.Sprintf("artifacts has no verb %q", args[0])
			}
			return reason.New(reason.UsageInvalid, what, "", "write `writ artifacts list ATTEMPT` or `writ artifacts get ATTEMPT PATH`")
		},
	}
	var to target
	get := &cobra.Command{
		Use:   "get ATTEMPT PATH | get DIGEST",
		Short: "Copy an artifact out, checked against its digest",
		Long: "Prints the artifact, or with -o writes it to a file. A file appears only whole. What stands at its path is left\n" +
			"alone: a file is replaced with --force only, and a folder, a link, a device or a pipe never.",
		Args: between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("output") && to.path == "" {
				return reason.New(reason.UsageInvalid, "--output is empty", "", "name a file, or - for standard output")
			}
			if to.path == "-" {
				to.path = ""
			}
			if to.path != "" {
				to.path = c.path(to.path)
			}
			return c.getArtifact(cmd.Context(), args, to)
		},
	}
	get.Flags().StringVarP(&to.path, "output", "o", "", "the file to write; - is standard output")
	get.Flags().BoolVar(&to.force, "force", false, "replace a file that stands there already")
	list := &cobra.Command{
		Use:   "list ATTEMPT",
		Short: "List the frozen outputs of an attempt",
		Args:  exact("ATTEMPT"),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.listArtifacts(cmd.Context(), args[0]) },
	}
	parent.AddCommand(list, get)
	return parent
}

func (c *command) listArtifacts(ctx context.Context, id string) error {
	r, err := host.Read(ctx, c.state)
	if err != nil {
		return err
	}
	defer r.Close()
	s, _, err := r.Attempt(ctx, id)
	if err != nil {
		return err
	}
	m, err := environment.ReadManifest(ctx, r.Artifacts, s)
	if err != nil {
		return err
	}
	return c.print(m, func(w io.Writer) {
		if len(m.Entries) == 0 {
			fmt.Fprintf(w, "%s froze no outputs.\n", s.Attempt)
		}
		var rows [][]string
		for _, e := range m.Entries {
			rows = append(rows, []string{plain(e.Path), size(e.Size), e.MediaType, string(e.Digest)})
		}
		for _, line := range columns(rows) {
			fmt.Fprintln(w, line)
		}
	})
}

func (c *command) getArtifact(ctx context.Context, args []string, to target) error {
	if len(args) == 1 && (strings.HasPrefix(args[0], "att_") || strings.HasPrefix(args[0], "wo_")) {
		return reason.New(reason.UsageInvalid, "which output of the attempt is not said", args[0],
			"name the path too: `writ artifacts list "+args[0]+"`")
	}
	if to.path != "" {
		if err := to.free(); err != nil {
			return err
		}
	}
	r, err := host.Read(ctx, c.state)
	if err != nil {
		return err
	}
	defer r.Close()
	digest := canonical.Digest(args[0])
	if len(args) == 2 {
		s, _, err := r.Attempt(ctx, args[0])
		if err != nil {
			return err
		}
		m, err := environment.ReadManifest(ctx, r.Artifacts, s)
		if err != nil {
			return err
		}
		if digest, err = entry(m, args[1], string(s.Attempt)); err != nil {
			return err
		}
	}
	body, err := r.Artifacts.Open(ctx, digest)
	if err != nil {
		return err
	}
	defer body.Close()
	if to.path == "" {
		_, err := io.Copy(guarded{c.out, unprinted}, body)
		return err
	}
	return to.write(body)
}

// guarded makes refusals of the errors of a writer: in a copy, those of the reader are
// others.
type guarded struct {
	io.Writer
	refuse func(error) error
}

// Write implements io.Writer.
func (g guarded) Write(b []byte) (int, error) {
	n, err := g.Writer.Write(b)
	if err != nil {
		err = errors.Join(g.refuse(err), err)
	}
	return n, err
}

// entry returns the digest of a frozen path, or a refusal that names those there are.
func entry(m protocol.ArtifactManifest, path, attempt string) (canonical.Digest, error) {
	for _, e := range m.Entries {
		if e.Path == path {
			return e.Digest, nil
		}
	}
	remedy := "see with `writ explain " + attempt + "` why it froze none at all"
	if len(m.Entries) > 0 {
		remedy = "list what it froze with `writ artifacts list " + attempt + "`"
	}
	return "", reason.New(reason.ArtifactMissing, fmt.Sprintf("%s froze no output %q", attempt, path), "", remedy)
}

// target is where an artifact is written; an empty path is standard output.
type target struct {
	path  string
	force bool
}

// free refuses a path at which something stands that is not to be replaced. Whatever is no
// regular file never is: a rename would put a file in its place.
func (t target) free() error {
	info, err := os.Lstat(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return t.unwritten(err)
	case !info.Mode().IsRegular():
		return reason.New(reason.UsageInvalid, "a "+kindOf(info.Mode())+" stands where the artifact is to be written", t.path,
			"name the path of a file, or - for standard output")
	case !t.force:
		return reason.New(reason.UsageInvalid, "a file stands there already", t.path, "name another path, or replace it with --force")
	}
	return nil
}

// kindOf names what is no regular file.
func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeDevice != 0:
		return "device"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "special file"
}

func (t target) unwritten(err error) error {
	return reason.New(reason.ArtifactIO, "the artifact cannot be written", t.path, "choose a folder that exists and can be written").Because(err)
}

// write writes a file that appears under its name only once it is complete.
func (t target) write(body io.Reader) (err error) {
	f, err := os.CreateTemp(filepath.Dir(t.path), ".writ-*")
	if err != nil {
		return t.unwritten(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := io.Copy(guarded{f, t.unwritten}, body); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return t.unwritten(err)
	}
	return t.place(f.Name())
}

// place gives the written file its name. What came to stand there meanwhile is left alone.
func (t target) place(written string) error {
	err := unix.Renameat2(unix.AT_FDCWD, written, unix.AT_FDCWD, t.path, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EINVAL) {
		// EINVAL is a file system that cannot promise it.
		if err := t.free(); err != nil {
			return err
		}
		err = os.Rename(written, t.path)
	}
	if err != nil {
		return t.unwritten(err)
	}
	return nil
}
