// Package compare holds two folders against each other, file by file, by digest.
package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// Digest returns the SHA-256 of a file in hexadecimal.
func Digest(name string) (string, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("digest: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// Digests returns the SHA-256 of every file below dir, in hexadecimal, by slash-separated
// path. Links are followed: Bazel's output folders are made of them.
func Digests(dir string) (map[string]string, error) {
	sums := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		sums[path], err = Digest(filepath.Join(dir, filepath.FromSlash(path)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("digest the files of %s: %w", dir, err)
	}
	return sums, nil
}

// Report writes a line for each file and returns how many differ. A file that one side
// lacks differs.
func Report(w io.Writer, a, b map[string]string) (int, error) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tFILE\tFIRST\tSECOND")
	differ := 0
	for _, path := range slices.Sorted(maps.Keys(all)) {
		mark := "same"
		if a[path] != b[path] {
			mark = "DIFFERENT"
			differ++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", mark, path, short(a[path]), short(b[path]))
	}
	if err := t.Flush(); err != nil {
		return differ, fmt.Errorf("write report: %w", err)
	}
	return differ, nil
}

func short(sum string) string {
	if sum == "" {
		return "missing"
	}
	return sum[:16]
}
