package policy

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// Files are policy files by their slash-separated path, which begins with "policies/". Only Rego modules and
// JSON data are kept. The bytes must not be changed.
type Files map[string][]byte

// Bounds of what is read as policies.
const (
	maxFile  = 4 << 20
	maxFiles = 512
	maxTotal = 32 << 20

	root = "policies/"
)

// Read returns the policy files below the root of fsys, for example policies.FS.
func Read(fsys fs.FS) (Files, error) {
	files := Files{}
	total := 0
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || !wanted(path) {
			return nil
		}
		if !d.Type().IsRegular() {
			return badFile(path, "it is neither a file nor a folder")
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Size() > maxFile {
			return badFile(path, "it is larger than 4 MiB")
		}
		b, err := fs.ReadFile(fsys, path)
		if err != nil {
			return err
		}
		return files.add(path, b, &total)
	})
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	return files, nil
}

// ReadDir returns the policy files of a folder. Links that lead out of the folder are refused.
func ReadDir(dir string) (Files, error) {
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return nil, reason.New(reason.PolicyLoad, "the folder of policies cannot be opened", dir, "give a folder that holds constitution, role, mode, deployment and lib").Because(err)
	}
	files, err := Read(folder.FS())
	if closing := folder.Close(); err == nil && closing != nil {
		err = fmt.Errorf("close %s: %w", dir, closing)
	}
	return files, err
}

// Merge returns the files of all sources. The same path with other bytes is refused.
func Merge(sources ...Files) (Files, error) {
	all, total := Files{}, 0
	for _, source := range sources {
		for _, path := range slices.Sorted(maps.Keys(source)) {
			if err := all.add(path, source[path], &total); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func (f Files) add(path string, b []byte, total *int) error {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "/"), root)
	if !fs.ValidPath(path) {
		return badFile(path, "its path leads out of the policies")
	}
	if path == "data.json" {
		return f.addMerged(b, total)
	}
	path = root + path
	if other, taken := f[path]; taken {
		if bytes.Equal(other, b) {
			return nil
		}
		return badFile(path, "it stands twice with other bytes")
	}
	*total += len(b)
	if len(f) >= maxFiles || *total > maxTotal {
		return badFile(path, "the policies have more than 512 files or 32 MiB")
	}
	f[path] = b
	return nil
}

// addMerged takes the data.json at the root of a bundle, which holds the data of all its layers, apart again: the
// bundles of two layers have one each.
func (f Files) addMerged(b []byte, total *int) error {
	value, err := canonical.Parse(b, canonical.Limits{})
	if err != nil {
		return fmt.Errorf("policy data data.json: %w", err)
	}
	for _, m := range value.Members() {
		if !fs.ValidPath(m.Name) || strings.Contains(m.Name, "/") {
			return badFile("data.json", fmt.Sprintf("its key %q is no layer", m.Name))
		}
		one, err := canonical.NewObject([]canonical.Member{m})
		if err != nil {
			return fmt.Errorf("policy data data.json: %w", err)
		}
		if err := f.add(m.Name+"/data.json", one.AppendCanonical(nil), total); err != nil {
			return err
		}
	}
	return nil
}

// wanted leaves out what decides nothing: tests, manifests, compiled forms, build files.
func wanted(path string) bool {
	return (strings.HasSuffix(path, ".rego") && !strings.HasSuffix(path, "_test.rego")) ||
		path == "data.json" || strings.HasSuffix(path, "/data.json")
}

func badFile(path, what string) error {
	return reason.New(reason.PolicyLoad, "a policy file is not accepted: "+what, path, "remove or mend the file")
}
