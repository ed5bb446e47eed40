package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/tools/repro/compare"
)

// buildOnce builds the targets in dir/tree, and returns the digest of each file that they
// are.
func buildOnce(ctx context.Context, dir string, log io.Writer) (map[string]string, error) {
	tree := filepath.Join(dir, "tree")
	base := "--output_base=" + filepath.Join(dir, "base")
	bazel := func(ctx context.Context, args ...string) error {
		cmd := exec.CommandContext(ctx, "./bazelw", append([]string{base}, args...)...)
		// Bazel's client tells its server to stop when it is interrupted, not when it is killed.
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.Dir = tree
		cmd.Stdout, cmd.Stderr = log, log
		cmd.Env = withoutBazel(os.Environ())
		return cmd.Run()
	}
	// --disk_cache= switches off the one that bazelw would add.
	build := bazel(ctx, append([]string{"build", "--disk_cache="}, slices.Sorted(maps.Keys(targets()))...)...)
	sums := map[string]string{}
	var digest error
	if build == nil {
		for _, where := range targets() {
			digest = errors.Join(digest, add(sums, filepath.Join(tree, "bazel-bin"), where))
		}
	}
	// Also after an interrupt: the server would outlive this program, and its folder.
	return sums, errors.Join(build, digest, bazel(context.WithoutCancel(ctx), "shutdown"))
}

// add enters the files of bin/where, which is a file or a folder.
func add(sums map[string]string, bin, where string) error {
	name := filepath.Join(bin, filepath.FromSlash(where))
	fi, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("find what was built: %w", err)
	}
	if !fi.IsDir() {
		sums[where], err = compare.Digest(name)
		return err
	}
	all, err := compare.Digests(name)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("%s is empty", where)
	}
	for file, sum := range all {
		sums[path.Join(where, file)] = sum
	}
	return nil
}

// withoutBazel drops what `bazel run` set: this build must not know of the outer one.
func withoutBazel(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(s string) bool {
		return strings.HasPrefix(s, "BUILD_") || strings.HasPrefix(s, "RUNFILES_") || strings.HasPrefix(s, "TEST_")
	})
}

// copyTree copies the files of the tree, but no history, no state and no output of Bazel's.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		if rel == ".git" || rel == ".writ" || rel == "user.bazelrc" || strings.HasPrefix(rel, "bazel-") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, fi.Mode().Perm())
	})
}

// removeAll removes dir although Bazel has made what is in it read-only.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(name, 0o700)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}
