package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

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
	var output string
	get := &cobra.Command{
		Use:   "get ATTEMPT PATH | get DIGEST",
		Short: "Copy an artifact out, checked against its digest",
		Long:  "Prints the artifact, or with -o writes it to a file. A file appears only whole.",
		Args:  between(1, 2),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.getArtifact(cmd.Context(), args, output) },
	}
	get.Flags().StringVarP(&output, "output", "o", "", "the file to write")
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

func (c *command) getArtifact(ctx context.Context, args []string, output string) error {
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
	if output == "" {
		_, err := io.Copy(guarded{c.out, unprinted}, body)
		return err
	}
	return writeWhole(c.path(output), body)
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

// writeWhole writes a file that appears under its name only once it is complete.
func writeWhole(path string, body io.Reader) (err error) {
	cannot := func(err error) error {
		return reason.New(reason.UsageInvalid, "the artifact cannot be written", path, "choose a folder that exists and can be written").Because(err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".writ-*")
	if err != nil {
		return cannot(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := io.Copy(guarded{f, cannot}, body); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return cannot(err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return cannot(err)
	}
	return nil
}
