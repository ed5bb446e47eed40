// Package gobuild builds the release set with the go command.
package gobuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/writ-runtime/writ/tools/dist/release"
	"github.com/writ-runtime/writ/tools/lockfile"
	"github.com/writ-runtime/writ/tools/rego/bundle"
)

// Release builds the release set of the tree at root and puts it in place of out.
// An older set stays as it is until the new one is complete.
func Release(ctx context.Context, root, out string) (err error) {
	items, err := release.Items(root)
	if err != nil {
		return err
	}
	if err := replaceable(out); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	// Beside out, so that a rename can put it there.
	work, err := os.MkdirTemp(filepath.Dir(out), ".dist-")
	if err != nil {
		return fmt.Errorf("make work folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	var sources []lockfile.Source
	for i, item := range items {
		s := source(item)
		s.File = filepath.Join(work, fmt.Sprint(i))
		if item.Manifest != "" {
			s.Manifest = filepath.Join(root, filepath.FromSlash(item.Manifest))
		}
		if err := make1(ctx, root, item, s.File); err != nil {
			return fmt.Errorf("build %s %s: %w", item.Kind, item.Name, err)
		}
		sources = append(sources, s)
	}
	set := filepath.Join(work, "set")
	if err := lockfile.WriteDir(set, sources); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return fmt.Errorf("remove the old release set: %w", err)
	}
	if err := os.Rename(set, out); err != nil {
		return fmt.Errorf("put the release set in place: %w", err)
	}
	return nil
}

// replaceable refuses a folder that holds something else than a release set.
func replaceable(out string) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", out, err)
	}
	if _, err := os.Stat(filepath.Join(out, "adapters.lock.json")); err != nil {
		return fmt.Errorf("%s holds other files than a release set: name an empty folder, or a new one", out)
	}
	return nil
}

// source names an item as the dist rule does (tools/bzl/dist.bzl, _KINDS).
func source(item release.Item) lockfile.Source {
	s := lockfile.Source{Kind: item.Kind, Name: item.Name, Version: item.Version}
	switch item.Kind {
	case lockfile.Adapter:
		s.Path, s.Platform = "adapters/"+item.Name, runtime.GOOS+"/"+runtime.GOARCH
	case lockfile.Worker:
		s.Path, s.Platform = "workers/"+item.Name, runtime.GOOS+"/"+runtime.GOARCH
	case lockfile.Tool:
		s.Path, s.Platform = "tools/"+item.Name+".wasm", "wasip1/wasm"
	case lockfile.Policy:
		s.Path, s.Platform = "policies/"+item.Name+".tar.gz", "any"
	}
	return s
}

// make1 builds one item into file.
func make1(ctx context.Context, root string, item release.Item, file string) error {
	switch item.Kind {
	case lockfile.Policy:
		return policy(ctx, root, item.Label, file)
	case lockfile.Tool:
		return program(ctx, root, item.Label, file, "GOOS=wasip1", "GOARCH=wasm")
	}
	return program(ctx, root, item.Label, file)
}

// program compiles a main package as Bazel is told to: no cgo, no paths, no symbol table.
func program(ctx context.Context, root string, l release.Label, file string, env ...string) error {
	abs, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("find %s: %w", file, err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", abs, "./"+l.Package)
	cmd.Dir = root
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out.Bytes())
	}
	return nil
}

// policy compiles a bundle. The paths in it are relative to root, as under Bazel.
func policy(ctx context.Context, root string, l release.Label, file string) error {
	b, err := release.ReadBundle(root, l)
	if err != nil {
		return err
	}
	bytes, err := bundle.Build(ctx, bundle.Options{Root: root, Target: b.Target, Entrypoints: b.Entrypoints, Paths: b.Paths})
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, bytes, 0o600); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}
