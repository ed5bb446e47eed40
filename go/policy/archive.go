package policy

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/writ-runtime/writ/go/reason"
)

// ReadArchive returns the policy files of an OPA bundle (.tar.gz) that was built with the target rego. The caller has verified the bytes against the
// lock of policies; this bounds what it unpacks nevertheless.
func ReadArchive(r io.Reader) (Files, error) {
	gz, err := gzip.NewReader(r)
	if err != nil {
		return nil, badArchive(err)
	}
	// Twice the total: what is skipped counts as well.
	archive := tar.NewReader(io.LimitReader(gz, 2*maxTotal))
	files, total := Files{}, 0
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, badArchive(err)
		}
		if path.Base(header.Name) == "policy.wasm" {
			// The compiler takes comments and entry points out of the modules it puts beside a policy.wasm.
			return nil, reason.New(reason.PolicyLoad, "the bundle was built for Wasm, and its modules are not the source any more", header.Name,
				"build it with the target rego")
		}
		if header.Typeflag == tar.TypeDir || !wanted(header.Name) {
			continue
		}
		if header.Typeflag != tar.TypeReg {
			return nil, badFile(header.Name, "it is no regular file")
		}
		b, err := io.ReadAll(io.LimitReader(archive, maxFile+1))
		if err != nil {
			return nil, badArchive(err)
		}
		if len(b) > maxFile {
			return nil, badFile(header.Name, "it is larger than 4 MiB")
		}
		if err := files.add(header.Name, b, &total); err != nil {
			return nil, err
		}
	}
}

func badArchive(err error) error {
	return fmt.Errorf("read policy bundle: %w", reason.New(reason.PolicyLoad, "the bundle is no readable .tar.gz", "", "build it anew").Because(err))
}
